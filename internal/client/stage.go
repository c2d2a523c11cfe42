package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
)

// maxMissing is the number of consecutive missing snapshots that the feed may name.
const maxMissing = 5

// stageSnapshot loads the newest snapshot as a new generation of the source, or nothing if there is none. recent is the
// recent document of the fragments feed before. It fetches the snapshot to a file first, so that the server does not
// wait, an interrupted fetch can continue, and only complete data is read.
func (c *Client) stageSnapshot(ctx context.Context, s *store.Subscription, recent *feeds.Feed) error {
	var missing error // of the link
	link := ""
	for tries := 1; ; tries++ {
		snapshot, err := c.newestSnapshot(ctx, s)
		if err != nil {
			return err
		}
		if snapshot == nil {
			c.Report(s.Name + ": no snapshot; reading the feed from its beginning")
			return c.Store.StageSource(ctx, s.Name, func(func(fragment.Record, error) bool) {}, store.Mark{}, nil)
		}
		data, err := c.links().Snapshot(s.SnapshotsFeed, snapshot)
		if err != nil {
			return err
		}
		if missing != nil && data.Href == link {
			return missing
		}
		c.Report(fmt.Sprintf("%s: loading the snapshot of %s", s.Name, feeds.FormatTime(snapshot.Updated)))
		d, err := c.fetchSnapshot(ctx, s, snapshot, data)
		if failed, ok := errors.AsType[*fetch.Error](err); ok &&
			(failed.Status == http.StatusNotFound || failed.Status == http.StatusGone) {
			missing, link = err, data.Href // there may be a newer one by now
			if err := d.Remove(); err != nil {
				return err
			}
			if tries == maxMissing {
				return fmt.Errorf(
					"%s: the feed has named %d snapshots, one after the other, of which none is there; try again later, and if it "+
						"stays so, tell the owner of the server: %w", s.SnapshotsFeed, tries, missing)
			}
			continue
		}
		if err != nil {
			return err
		}
		mark, format := markOf(snapshot, recent), c.links().FormatOf(data.Type, "")
		if format != nil {
			mark.Digest = "" // it is of a map in XTM, which has more
		}
		return c.loadSnapshot(ctx, s, d, format, mark)
	}
}

// markOf returns the mark of a snapshot, with an entry that must be in the feed at its next reading; otherwise the
// server was restored from a backup meanwhile. The newest entry of the recent document is used, unless it is older than
// the snapshot. Only servers that state the state of each entry have one, because elsewhere entries may move.
func markOf(snapshot *feeds.Entry, recent *feeds.Feed) store.Mark {
	newest := newestOf(recent)
	mark := store.Mark{Updated: snapshot.Updated, Digest: snapshot.Digest, RDF: follow.InRDF(&newest)}
	switch {
	case newest.State == "" || newest.Updated.Before(mark.Updated):
	case newest.Updated.Equal(mark.Updated):
		mark.Handled = []string{newest.ID}
	default:
		mark.Relied = follow.Key(newest.ID, newest.Updated)
	}
	return mark
}

func newestOf(f *feeds.Feed) (newest feeds.Entry) {
	for _, e := range f.Entries {
		if e.Updated.After(newest.Updated) {
			newest = e
		}
	}
	return newest
}

// provable reports whether the feed can show that its history is the one that a mark belongs
// to. Right after a snapshot it may not be: the feed's later entries fit another history as well.
func provable(mark store.Mark) bool {
	return mark.Updated.IsZero() || len(mark.Handled) > 0 || mark.Relied != ""
}

// loadSnapshot stages the fetched file. It removes the file afterwards, and if it cannot be read, so that the next
// round fetches another one; an interruption keeps it.
func (c *Client) loadSnapshot(ctx context.Context, s *store.Subscription, d *fetch.Download, format *formats.Format,
	mark store.Mark) error {
	o := c.xtmOptions(s.SP, d.URL(), d.ContentType())
	open := func() (io.ReadCloser, error) {
		r, err := d.Open(c.MaxSnapshot)
		return formats.ReadCloser{Reader: formats.UntilDone(ctx, r), Closer: r}, err
	}
	var unreadable error
	unidentified := 0
	stage := func(records iter.Seq2[fragment.Record, error]) error {
		unreadable, unidentified = nil, 0
		records = noticing(records, &unreadable, &unidentified)
		return c.Store.StageSource(ctx, s.Name, records, mark, func(l store.Loading) { c.tellLoading(s.Name, l) })
	}
	err := readSnapshot(ctx, snapshotDocument{Open: open, Options: o, Format: format}, stage, func(reason error) {
		c.Logger.Info("the snapshot is read as a whole", "subscription", s.Name, "reason", reason)
	})
	if errors.As(err, new(*wholeError)) {
		unreadable = err
	}
	if err == nil && unidentified > 0 {
		c.Report(fmt.Sprintf(
			"%s: the source gives %d topics neither a subject identifier nor a subject locator; their identifiers are made "+
				"here and begin with %s", s.Name, unidentified, fragment.UnidentifiedPrefix))
	}
	if err == nil || unreadable != nil && ctx.Err() == nil {
		err = errors.Join(err, d.Remove())
	}
	return err
}

// tellLoading reports the progress of loading a snapshot.
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

func (c *Client) newestSnapshot(ctx context.Context, s *store.Subscription) (*feeds.Entry, error) {
	if s.SnapshotsFeed == "" {
		return nil, nil
	}
	feed, a, err := c.getFeed(ctx, s.SnapshotsFeed, "")
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

// stageLog makes the log of a replica with a staged snapshot: from all entries of the feed up to the mark. Later
// entries are logged when they are applied.
func (c *Client) stageLog(ctx context.Context, s *store.Subscription, feedID string) error {
	current, err := c.Subscription(ctx, s.Name)
	if err != nil {
		return err
	}
	if current.Staging == nil {
		return store.ErrOvertaken
	}
	c.Report(s.Name + ": reading the log of the source")
	until := current.Staging.Mark.Updated
	if until.IsZero() { // there is no snapshot: all entries are still to be applied
		return c.Store.StageLog(ctx, s.Name, feedID, func(func(store.Logged, error) bool) {}, nil)
	}
	u, err := c.fragmentsOf(ctx, s)
	if err != nil {
		return err
	}
	u.source.Until, u.source.Kept, u.source.Bundles = until, true, false
	var newest time.Time
	check := u.source.Check
	u.source.Check = func(f *feeds.Feed, from string, recent bool) error {
		if at := newestOf(f).Updated; at.After(newest) {
			newest = at
		}
		return check(f, from, recent)
	}
	n, err := u.source.Delta(ctx, s.FragmentsFeed, follow.Look{Mark: follow.Mark{Feed: feedID}}, nil)
	if err != nil {
		return err
	}
	if !newest.IsZero() && newest.Before(until) { // later rounds could not add the missing entries
		return errors.Join(
			errors.New("the feed has no entry as late as the newest snapshot. It may come from a cache: try again later, and "+
				"if it stays so, tell the owner of the server"), n.Close())
	}
	p, err := n.Plan(ctx, nil, nil)
	if err == nil {
		err = c.Store.StageLog(ctx, s.Name, feedID, entriesOf(p), u.fetchLogged)
	}
	return errors.Join(err, p.Close(), n.Close())
}

// fetchLogged fetches the fragment of an entry of the past. One that the server does not keep any more, the replica
// does not have either.
func (u *fragments) fetchLogged(ctx context.Context, l *store.Logged) error {
	r := &follow.Record{ID: l.ID, Title: l.Title, Updated: l.Updated, TopicSI: []string{string(l.TopicSI)},
		Change: &follow.Change{State: feeds.StateLive}}
	if l.Link != "" {
		r.Representations = []follow.Representation{{URL: l.Link}}
	}
	got, _, err := u.fetchFragment(ctx, r)
	if follow.Gone(err) && !follow.IsServerFault(err) {
		return nil
	}
	l.Applied, l.Lasting = got.fragment, got.lasting
	return err
}

// entriesOf iterates over the entries of a log, the oldest first.
func entriesOf(p *follow.Plan) iter.Seq2[store.Logged, error] {
	return func(yield func(store.Logged, error) bool) {
		for chunk, err := range p.Chunks() {
			if err != nil {
				yield(store.Logged{}, err)
				return
			}
			for i := range chunk {
				if !yield(entryOf(&chunk[i]), nil) {
					return
				}
			}
		}
	}
}
