package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store"
)

// Verdict is the outcome of a verification.
type Verdict struct {
	Name   string    `json:"name"`
	Equal  bool      `json:"equal"`
	Full   bool      `json:"full"`             // all of both maps was compared, not the digests that both sides keep
	AsOf   time.Time `json:"asOf"`             // the server's time of the last change compared
	Digest string    `json:"digest,omitempty"` // the state digest, where equal

	repairs

	// Unproven is the reason why the copy differs from the source's digest, though it equals the server's map.
	Unproven string `json:"unproven,omitempty"`

	// The server's map, where all of it was compared.
	Topics       int `json:"topics,omitempty"`
	Associations int `json:"associations,omitempty"` // without type-instance relations

	Differences []Difference `json:"differences,omitempty"` // the first 1,000
	More        int          `json:"more,omitempty"`        // other topics that differ

	Error string `json:"error,omitempty"` // for programs: why there is no verdict
}

// Verify brings a source in step and proves it equal to the server's map. If the source states digests, the result is
// the proof of a round. If full is set, or no digest is stated, it checks that all rows of the source are consistent,
// fetches the server's present map, and compares the records of both, without item identifiers and the reifier of the
// map. It repairs damage first; the verdict is about the repaired state.
func (c *Client) Verify(ctx context.Context, name string, full bool) (v *Verdict, err error) {
	own := *c
	c, own.ask = &own, true
	var done repairs
	if !full {
		r, err := c.Sync(ctx, name)
		if err != nil {
			return nil, err
		}
		if done.note(r); r.Proven {
			return c.proven(ctx, r, &done)
		}
	}
	var moved error
	for tries := range 3 {
		r, err := c.inStep(ctx, name, tries == 0, &done)
		if err != nil {
			return nil, err
		}
		if v != nil && r.Entries+r.Repaired == 0 && !r.CleanStart {
			break
		}
		var later *laterError
		if v, err = c.verifyNow(ctx, name); errors.As(err, &later) {
			moved = err
			continue
		}
		if err != nil {
			return nil, err
		}
		if v.repairs = done; v.Equal {
			return v, nil
		}
		// Large fragments, and all records, are of the time of the request. If the server has published meanwhile, that
		// may be the whole difference.
	}
	if v == nil {
		return nil, moved
	}
	v.repairs = done
	return v, nil
}

// proven is the verdict after a round that has proven the source.
func (c *Client) proven(ctx context.Context, r *Round, done *repairs) (*Verdict, error) {
	root, err := c.Store.DigestNode(ctx, r.Name, nil)
	if err != nil {
		return nil, err
	}
	return &Verdict{Name: r.Name, Equal: true, AsOf: r.Mark, Digest: root.Digest().String(), repairs: *done}, nil
}

// laterError is the error for a source that is later than the server's map to compare with.
type laterError struct {
	name       string
	here, asOf time.Time
}

func (e *laterError) Error() string {
	return fmt.Sprintf("%s: the source came to %s while it was compared with the map of %s; try again", e.name,
		feeds.FormatTime(e.here), feeds.FormatTime(e.asOf))
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
	both := comparison{
		Client: own, ctx: ctx, s: s, v: &Verdict{Name: name, Full: true},
		path: filepath.Join(c.Store.Scratch(), "verify-"+strconv.FormatUint(uint64(s.Number), 10)),
	}
	defer both.close()
	if err := both.fetch(); err != nil {
		return nil, err
	}
	asOf := both.v.AsOf
	r, err := c.syncUntil(ctx, name, asOf)
	if err != nil {
		return nil, err
	}
	err = c.Store.ReadSources(ctx, func(subscriptions []store.Subscription, sources []fragment.Source) error {
		for i := range subscriptions {
			if subscriptions[i].Name == name {
				if at := subscriptions[i].State.Mark.Updated; at.After(asOf) {
					return &laterError{name, at, asOf}
				}
				both.v.Digest, err = both.compare(sources[i])
				both.v.Equal = both.v.Digest != ""
				return err
			}
		}
		return &UnknownError{name, names(subscriptions)}
	})
	if err != nil {
		return nil, err
	}
	if unsigned := s.Key != "" && !r.Proven && r.Quarantined == 0; r.Differs || unsigned {
		both.v.Equal, both.v.Unproven = false, r.Unproven // the server's answer is altered, or its statement wrong
	}
	return both.v, nil
}

// currentLink returns where the map as of now is.
func (c *Client) currentLink(ctx context.Context, s *store.Subscription) (string, error) {
	switch found, err := c.found(ctx, s); {
	case err != nil:
		return "", err
	case found != nil && found.Current == "":
		return "", fmt.Errorf("%s: nothing there leads to the map as of now, so there is nothing to compare with", found.URL)
	case found != nil:
		return found.Current, nil
	}
	recent, _, err := c.getFeed(ctx, s.FragmentsFeed, "")
	if err != nil {
		return "", err
	}
	link, ok := c.links().Best(recent.Find(feeds.RelCurrentSnapshot))
	if !ok {
		return "", fmt.Errorf("%s: the feed does not link to the map as of now, so there is nothing to compare with",
			s.FragmentsFeed)
	}
	return link.Href, nil
}

// comparison compares the records of a source with those of the server's map. Memory does not grow with either.
type comparison struct {
	*Client
	ctx         context.Context
	s           *store.Subscription
	path        string           // of the file with the server's map; other files are next to it
	at          string           // where it came from
	contentType string           // with which
	theirs      *statedigest.Set // the items of the server's records
	v           *Verdict
}

// close removes the files.
func (c *comparison) close() {
	if c.theirs != nil {
		c.theirs.Close()
	}
	os.Remove(c.path)
}

// fetch fetches the map as of now.
func (c *comparison) fetch() error {
	link, err := c.currentLink(c.ctx, c.s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	r := fetch.Request{URL: link, Accept: c.links().Accept(), Max: c.MaxSnapshot}
	_, a, err := fetch.Do(c.ctx, c.fetcher(), r, func(a *fetch.Answer) (struct{}, error) {
		c.at, c.contentType = a.URL, a.ContentType
		if err := c.keep(a.Body); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, limitsLast(c.load())
	})
	if err != nil {
		return err
	}
	if c.v.AsOf, err = feeds.ParseTime(a.Header.Get("TMShare-Updated")); err != nil {
		return fmt.Errorf("%s: the answer does not state its time: %w", a.URL, err)
	}
	return nil
}

// keep writes the server's map to the file.
func (c *comparison) keep(body io.Reader) (err error) {
	file, err := os.OpenFile(c.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fetch.Permanent(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var full error // the disk
	_, err = io.Copy(file, &progressReader{r: body, report: func(bytes int64) {
		c.Report(fmt.Sprintf("%s: %d MB of the server's map read", c.s.Name, bytes>>20))
		full = errors.Join(full, c.Store.MayWrite())
	}})
	if full != nil {
		return fetch.Permanent(full)
	}
	return err
}

// server calls use with the records of the server's map.
func (c *comparison) server(use func(iter.Seq2[fragment.Record, error]) error) error {
	open := func() (io.ReadCloser, error) {
		f, err := os.Open(c.path)
		return formats.ReadCloser{Reader: formats.UntilDone(c.ctx, f), Closer: f}, err
	}
	return readSnapshot(c.ctx, snapshotDocument{Open: open, Options: c.xtmOptions(c.s.SP, c.at, c.contentType)}, use,
		func(reason error) {
			c.Logger.Info("the server's map is read as a whole", "reason", reason)
		})
}
