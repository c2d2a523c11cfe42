package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// stageSnapshot loads the newest snapshot as a new generation of the source, or
// nothing where there is none. The snapshot is fetched to a file first: so the
// server is not kept waiting, an interrupted fetch goes on where it ended, and
// nothing is read from what is not whole.
func (c *Client) stageSnapshot(ctx context.Context, s *store.Subscription, home func(*url.URL) error) error {
	var missing error // of the link
	for link := ""; ; {
		snapshot, err := c.newestSnapshot(ctx, s, home)
		if err != nil {
			return err
		}
		if snapshot == nil {
			c.Report(s.Name + ": no snapshot; reading the feed from its beginning")
			return c.Store.StageSource(ctx, s.Name, fragment.Records(&merge.Memory{}), store.Mark{}, nil)
		}
		data, ok := c.dataLink(snapshot)
		if !ok {
			return noData(s.SnapshotsFeed, snapshot)
		}
		if missing != nil && data.Href == link {
			return missing
		}
		c.Report(fmt.Sprintf("%s: loading the snapshot of %s", s.Name, feeds.FormatTime(snapshot.Updated)))
		d, err := c.fetchSnapshot(ctx, s, snapshot, data.Href, home)
		var failed *FetchError
		if errors.As(err, &failed) && (failed.Status == http.StatusNotFound || failed.Status == http.StatusGone) {
			missing, link = err, data.Href // there may be a newer one by now
			if err := d.Remove(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		return c.loadSnapshot(ctx, s, d, store.Mark{Updated: snapshot.Updated})
	}
}

// loadSnapshot stages what was fetched. The file is removed once that is done, and
// if it cannot be read, so that the next round fetches another; it stays where
// loading is interrupted.
func (c *Client) loadSnapshot(ctx context.Context, s *store.Subscription, d *fetch.Download, mark store.Mark) error {
	o := c.xtmOptions(s.SP, d.URL())
	open := func() (io.ReadCloser, error) {
		r, err := d.Open(c.MaxSnapshot)
		return untilDone{ctx, r}, err
	}
	var unreadable error
	stage := func(records iter.Seq2[fragment.Record, error]) error {
		unreadable = nil
		records = noticing(records, &unreadable)
		return c.Store.StageSource(ctx, s.Name, records, mark, func(l store.Loading) { c.tellLoading(s.Name, l) })
	}
	err := stage(fragment.StreamSnapshot(open, o))
	if errors.Is(err, fragment.ErrNotStreamable) {
		c.Logger.Info("the snapshot is read as a whole", "subscription", s.Name, "reason", err)
		var m *fragment.Map
		if m, err = readWhole(open, o); err != nil {
			unreadable = err
		} else {
			err = stage(fragment.Records(m))
		}
	}
	if err == nil || unreadable != nil && ctx.Err() == nil {
		err = errors.Join(err, d.Remove())
	}
	return err
}

// tellLoading says how far a snapshot is loaded.
func (c *Client) tellLoading(source string, l store.Loading) {
	switch {
	case l.Rows == 0:
		c.Progress(Progress{source, "sorting the snapshot", int64(l.Records), 0, Records})
		if l.Records%100_000 == 0 {
			c.Report(fmt.Sprintf("%s: %d records read and sorted", source, l.Records))
		}
	default:
		c.Progress(Progress{source, "storing the snapshot", int64(l.Stored), int64(l.Rows), Rows})
		if l.Stored%1_000_000 == 0 {
			c.Report(fmt.Sprintf("%s: %d of %d rows stored", source, l.Stored, l.Rows))
		}
	}
}

func readWhole(open func() (io.ReadCloser, error), o xtm.Options) (*fragment.Map, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return fragment.ReadSnapshot(r, o)
}

// noticing iterates over records and keeps the error that ends them.
func noticing(records iter.Seq2[fragment.Record, error], failed *error) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		for r, err := range records {
			if err != nil {
				*failed = err
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// untilDone reads until a context ends.
type untilDone struct {
	ctx context.Context
	io.ReadCloser
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.ReadCloser.Read(p)
}

func (c *Client) newestSnapshot(ctx context.Context, s *store.Subscription, home func(*url.URL) error) (*feeds.Entry, error) {
	if s.SnapshotsFeed == "" {
		return nil, nil
	}
	feed, a, err := c.getFeed(ctx, s.SnapshotsFeed, "", home)
	if err != nil {
		return nil, err
	}
	if err := checkPrefix(s, feed.ServerSrcLocatorPrefix, a.URL, false); err != nil {
		return nil, err
	}
	var newest *feeds.Entry
	for i := range feed.Entries {
		e := &feed.Entries[i]
		if len(e.TopicSI) > 0 {
			return nil, fmt.Errorf("%s: this is no snapshots feed: the entry %s (%q) is about a topic", a.URL, e.ID, e.Title)
		}
		if newest == nil || e.Updated.After(newest.Updated) {
			newest = e
		}
	}
	return newest, nil
}

// readMap reads a whole map, and says how far it has come with what it is.
func (c *Client) readMap(ctx context.Context, s *store.Subscription, what, link string, home func(*url.URL) error) (*fragment.Map, *fetch.Answer, error) {
	r := fetch.Request{URL: link, Accept: c.accept(), Max: c.MaxSnapshot, Home: home}
	return fetch.Do(ctx, c.fetcher(), r, func(a *fetch.Answer) (*fragment.Map, error) {
		return fragment.ReadSnapshot(&progressReader{r: a.Body, report: func(bytes int64) {
			c.Report(fmt.Sprintf("%s: %d MB of the %s read", s.Name, bytes>>20, what))
		}}, c.xtmOptions(s.SP, a.URL))
	})
}
