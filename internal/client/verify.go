package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client/snapshots"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// Verdict is the outcome of a verification.
type Verdict struct {
	Name   string    `json:"name"`
	Equal  bool      `json:"equal"`
	Full   bool      `json:"full"`             // all of both maps was compared, not the digests that both sides keep
	AsOf   time.Time `json:"asOf"`             // the server's time of the last change compared
	Digest string    `json:"digest,omitempty"` // the state digest, where equal

	repairs

	// Unproven says why the copy is not what the source states, though the server's map says the same.
	Unproven string `json:"unproven,omitempty"`

	// The server's map, where all of it was compared.
	Topics       int `json:"topics,omitempty"`
	Associations int `json:"associations,omitempty"`

	Differences []Difference `json:"differences,omitempty"` // the first 1,000
	More        int          `json:"more,omitempty"`        // other topics that differ

	Error string `json:"error,omitempty"` // for programs: why there is no verdict
}

// Difference is what the two sides say of one topic, as far as it differs.
type Difference struct {
	TopicSI string   `json:"topicSI"`
	Here    []string `json:"here,omitempty"`   // only the subscriber says
	Server  []string `json:"server,omitempty"` // only the server says
}

// Verify brings a source in step and proves it equal to the server's map. Where the source states digests, what
// a round has proven is the answer. If full is set, or nothing is stated, it looks whether all rows of the
// source agree with each other, fetches the server's map as of now, and compares the records of both, item identifiers and
// the reifier of the map left out. What is damaged is mended and fetched anew: the verdict is of the state after that.
func (c *Client) Verify(ctx context.Context, name string, full bool) (v *Verdict, err error) {
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
		// Large fragments, and all records, are of the time at which they are asked for.
		// Where the server has published meanwhile, that may be the whole difference.
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
				return both.compare(sources[i])
			}
		}
		return &UnknownError{name, names(subscriptions)}
	})
	if err != nil {
		return nil, err
	}
	if unsigned := s.Key != "" && !r.Proven && r.Quarantined == 0; r.Differs || unsigned {
		both.v.Equal, both.v.Unproven = false, r.Unproven // what the server answers is altered, or what it states is wrong
	}
	return both.v, nil
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
	link, ok := c.links().Best(recent.Find(feeds.RelCurrentSnapshot))
	if !ok {
		return "", fmt.Errorf("%s: the feed does not link to the map as of now, so there is nothing to compare with", s.FragmentsFeed)
	}
	return link.Href, nil
}

// maxDifferences is how many topics a verdict shows the differences of.
const maxDifferences = 1000

// comparison compares the records of a source with those of the server's map. Memory does not grow with either.
type comparison struct {
	*Client
	ctx    context.Context
	s      *store.Subscription
	path   string           // of the file with the server's map
	at     string           // where it came from
	theirs *statedigest.Set // the items of its records
	v      *Verdict
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
	allowURL, err := c.fetcher().AllowURL(c.s.FragmentsFeed)
	if err != nil {
		return err
	}
	link, err := c.currentLink(c.ctx, c.s, allowURL)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	r := fetch.Request{URL: link, Accept: c.links().Accept(), Max: c.MaxSnapshot, AllowURL: allowURL}
	_, a, err := fetch.Do(c.ctx, c.fetcher(), r, func(a *fetch.Answer) (struct{}, error) {
		c.at = a.URL
		if err := c.keep(a.Body); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, limitsLast(c.read())
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
		full = errors.Join(full, c.Store.CheckFreeSpace())
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
		return struct {
			io.Reader
			io.Closer
		}{formats.UntilDone(c.ctx, f), f}, err
	}
	return snapshots.Read(c.ctx, snapshots.Document{Open: open, Options: c.xtmOptions(c.s.SP, c.at)}, use, func(reason error) {
		c.Logger.Info("the server's map is read as a whole", "reason", reason)
	})
}

// read reads the items of the server's records.
func (c *comparison) read() error {
	return c.server(func(all iter.Seq2[fragment.Record, error]) (err error) {
		if c.theirs != nil { // the map is read once more
			err = c.theirs.Close()
		}
		if err == nil {
			c.theirs, c.v.Topics, c.v.Associations, err = c.set("-server", all)
		}
		return err
	})
}

// compare compares the source with the server's map. The digest of the source is that of its tree, which agrees
// with the records: see [Client.inStep]. Only where it is another one, the records are read again.
func (c *comparison) compare(here fragment.Source) (err error) {
	theirs, err := c.theirs.Digest()
	if err != nil {
		return err
	}
	if tree, ok := here.(interface {
		Digest() (statedigest.Digest, error)
	}); ok {
		held, err := tree.Digest()
		if c.v.Equal = held == theirs; c.v.Equal || err != nil {
			c.v.Digest = held.String()
			return err
		}
	}
	return c.differences(here)
}

// differences finds out what differs, topic by topic.
func (c *comparison) differences(here fragment.Source) (err error) {
	mine, _, _, err := c.set("-here", fragment.Records(here))
	defer func() { err = errors.Join(err, mine.Close()) }()
	if err != nil {
		return err
	}
	differ := map[fragment.Ref]bool{}
	last := "" // the records of an owner stand together
	err = statedigest.Differing(mine, c.theirs, func(owner string) {
		switch {
		case differ[fragment.Ref(owner)]:
		case len(differ) < maxDifferences:
			differ[fragment.Ref(owner)] = true
		case owner != last:
			c.v.More++
		}
		last = owner
	})
	if err != nil {
		return err
	}
	if c.v.Equal = len(differ) == 0; c.v.Equal {
		digest, err := mine.Digest()
		c.v.Digest = digest.String()
		return err
	}
	return c.describe(here, differ)
}

// set returns the items of records, and how many topics and associations there are.
func (c *comparison) set(suffix string, all iter.Seq2[fragment.Record, error]) (s *statedigest.Set, topics, associations int, err error) {
	s = statedigest.NewSet(c.path+suffix, cmp.Or(c.limits.Memory, setMemory))
	for r, err := range all {
		if err == nil {
			err = c.ctx.Err()
		}
		if err == nil && r.Topic != nil {
			topics++
			err = s.Add(statedigest.OfTopic(r.Topic))
		}
		if err == nil && r.Association != nil {
			associations++
			err = s.Add(statedigest.OfAssociation(r.Association))
		}
		if err != nil {
			return s, 0, 0, err
		}
	}
	return s, topics, associations, nil
}

// setMemory is how many bytes of items are sorted in memory.
const setMemory = 16 << 20

// describe says how the sides differ in what they say of some topics.
func (c *comparison) describe(here fragment.Source, differ map[fragment.Ref]bool) error {
	var server *merge.Memory // what concerns these topics
	err := c.server(func(all iter.Seq2[fragment.Record, error]) error {
		server = &merge.Memory{}
		for r, err := range all {
			if err == nil && r.Topic != nil && differ[r.Topic.TopicSI()] {
				err = server.PutTopic(r.Topic)
			}
			if err == nil && r.Association != nil && slices.ContainsFunc(r.Association.Players(), func(p fragment.Ref) bool { return differ[p] }) {
				err = server.PutAssociation(r.Association)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, topic := range slices.Sorted(maps.Keys(differ)) {
		mine, err := fragment.Describe(here, topic)
		if err != nil {
			return err
		}
		theirs, err := fragment.Describe(server, topic)
		if err != nil {
			return err
		}
		c.v.Differences = append(c.v.Differences, Difference{TopicSI: string(topic), Here: without(mine, theirs), Server: without(theirs, mine)})
	}
	return nil
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
