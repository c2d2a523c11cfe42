package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
)

// Verdict is the outcome of a verification.
type Verdict struct {
	Name         string       `json:"name"`
	Equal        bool         `json:"equal"`
	AsOf         time.Time    `json:"asOf"` // the server's time of the last change compared
	Topics       int          `json:"topics"`
	Associations int          `json:"associations"`
	Digest       string       `json:"digest,omitempty"` // SHA-256 of the canonical form, where equal
	Differences  []Difference `json:"differences,omitempty"`
	Error        string       `json:"error,omitempty"` // for programs: why there is no verdict
}

// Difference is what the two sides say of one topic, as far as it differs.
type Difference struct {
	TopicSI string   `json:"topicSI"`
	Here    []string `json:"here,omitempty"`   // only the subscriber says
	Server  []string `json:"server,omitempty"` // only the server says
}

// Verify fetches the server's map as of now, brings the source to that point and
// compares the two: they are equal when their canonical forms (ISO 13250-4) are,
// item identifiers and the reifier of the map left out.
func (c *Client) Verify(ctx context.Context, name string) (v *Verdict, err error) {
	var moved error
	for range 3 {
		r, err := c.Sync(ctx, name)
		if err != nil {
			return nil, err
		}
		if v != nil && r.Entries == 0 && !r.CleanStart {
			break
		}
		var later *laterError
		if v, err = c.verifyNow(ctx, name); errors.As(err, &later) {
			moved = err
			continue
		}
		if err != nil || v.Equal {
			return v, err
		}
		// Large fragments, and all records, are of the time at which they are asked for.
		// Where the server has published meanwhile, that may be the whole difference.
	}
	if v == nil {
		return nil, moved
	}
	return v, nil
}

// laterError says that a source is later than the map of the server that it is to be
// compared with.
type laterError struct {
	name       string
	here, asOf time.Time
}

func (e *laterError) Error() string {
	return fmt.Sprintf("%s: the source came to %s while it was compared with the map of %s; try again", e.name, feeds.FormatTime(e.here), feeds.FormatTime(e.asOf))
}

func (c *Client) verifyNow(ctx context.Context, name string) (*Verdict, error) {
	s, err := c.Subscription(ctx, name)
	if err != nil {
		return nil, err
	}
	own, err := c.forSubscription(s)
	if err != nil {
		return nil, err
	}
	server, asOf, err := own.currentMap(ctx, s)
	if err != nil {
		return nil, err
	}
	if _, err := c.syncUntil(ctx, name, asOf); err != nil {
		return nil, err
	}
	v := &Verdict{Name: name, AsOf: asOf}
	err = c.Store.ReadSources(ctx, func(subscriptions []store.Subscription, sources []fragment.Source) error {
		for i := range subscriptions {
			if subscriptions[i].Name == name {
				if at := subscriptions[i].State.Mark.Updated; at.After(asOf) {
					return &laterError{name, at, asOf}
				}
				return v.compare(ctx, s.SP, sources[i], server)
			}
		}
		return &UnknownError{name, names(subscriptions)}
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// currentMap fetches the map as of now and the time of its last change.
func (c *Client) currentMap(ctx context.Context, s *store.Subscription) (*fragment.Map, time.Time, error) {
	var none time.Time
	allowURL, err := c.fetcher().AllowURL(s.FragmentsFeed)
	if err != nil {
		return nil, none, err
	}
	link, err := c.currentLink(ctx, s, allowURL)
	if err != nil {
		return nil, none, err
	}
	m, a, err := c.readMap(ctx, s, "server's map", link, allowURL)
	if err != nil {
		return nil, none, err
	}
	asOf, err := feeds.ParseTime(a.Header.Get("TMShare-Updated"))
	if err != nil {
		return nil, none, fmt.Errorf("%s: the answer does not state its time: %w", a.URL, err)
	}
	return m, asOf, nil
}

// currentLink returns where the map as of now is.
func (c *Client) currentLink(ctx context.Context, s *store.Subscription, allowURL func(*url.URL) error) (string, error) {
	if s.Protocol == store.ResourceSync {
		return c.currentOfSet(ctx, s)
	}
	recent, _, err := c.getFeed(ctx, s.FragmentsFeed, "", allowURL)
	if err != nil {
		return "", err
	}
	link, ok := c.bestLink(recent.Find(feeds.RelCurrentSnapshot))
	if !ok {
		return "", fmt.Errorf("%s: the feed does not link to the map as of now, so there is nothing to compare with", s.FragmentsFeed)
	}
	return link.Href, nil
}

func (v *Verdict) compare(ctx context.Context, sp string, here fragment.Source, server *fragment.Map) error {
	mine, err := canonical(ctx, sp, here)
	if err != nil {
		return err
	}
	theirs, err := canonical(ctx, sp, server)
	if err != nil {
		return err
	}
	for range server.TopicMap().Topics() {
		v.Topics++
	}
	for range server.TopicMap().Associations() {
		v.Associations++
	}
	if v.Equal = bytes.Equal(mine, theirs); v.Equal {
		sum := sha256.Sum256(mine)
		v.Digest = hex.EncodeToString(sum[:])
		return nil
	}
	v.Differences, err = differences(ctx, here, server)
	return err
}

// canonical returns the canonical form of a source.
func canonical(ctx context.Context, sp string, src fragment.Source) ([]byte, error) {
	tm, _, err := merge.Join(ctx, merge.Part{SP: sp, Source: src})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = cxtm.Write(&b, tm, cxtm.Options{Base: tmdm.Locator(sp), OmitItemIdentifiers: true})
	return b.Bytes(), err
}

// differences compares two sources topic by topic.
func differences(ctx context.Context, here fragment.Source, server *fragment.Map) ([]Difference, error) {
	change, err := fragment.Diff(ctx, here, server)
	if err != nil {
		return nil, err
	}
	var list []Difference
	for _, e := range change.Entries {
		mine, err := fragment.Describe(here, e.TopicSI)
		if err != nil {
			return nil, err
		}
		theirs, err := fragment.Describe(server, e.TopicSI)
		if err != nil {
			return nil, err
		}
		list = append(list, Difference{TopicSI: string(e.TopicSI), Here: without(mine, theirs), Server: without(theirs, mine)})
	}
	return list, nil
}

// without returns the lines of a that b lacks.
func without(a, b []string) []string {
	has := map[string]bool{}
	for _, line := range b {
		has[line] = true
	}
	var left []string
	for _, line := range a {
		if !has[line] {
			left = append(left, line)
		}
	}
	return left
}
