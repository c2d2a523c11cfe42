package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/harvest"
	"github.com/tmshare/tmshare/internal/store"
)

// A source may publish records rather than fragments: of each topic what it is now, under
// an identifier for life, and that it is no more. The map is what all records say
// together. What is fetched is always the present state of a record, so it may be newer
// than the entry that led to it, and then comes once more with a later one. Records that
// are deleted go before others come: an identifier may have moved on.

// records brings a source of records in step with its server.
type records struct {
	*Client
	s      *store.Subscription
	r      *Round
	home   func(*url.URL) error
	source harvest.Source

	// waited are the records, with the times of their versions, that were not to be had
	// though they are said to be there, or in whose way another record stood. What makes it
	// good, a deletion or a later version, may be on its way: so they are tried again when
	// all else is done and the source has been asked again. What is still so then is an error
	// of theirs.
	waited map[string]time.Time
	left   int  // records that are to be tried again
	last   bool // there will be no other try in this round

	begun json.RawMessage // the mark to keep with each commit

	large  chan struct{} // as in update
	faults int
}

// harvest does what the source has beyond its mark. The mark moves when all of that is
// done; until then the next round knows by what is held what is left to do.
func (c *Client) harvest(ctx context.Context, s *store.Subscription, r *Round) error {
	home, err := c.fetcher().Home(s.FragmentsFeed)
	if err != nil {
		return err
	}
	h := &records{Client: c, s: s, r: r, home: home, waited: map[string]time.Time{}, large: make(chan struct{}, 1)}
	if s.Protocol == store.ResourceSync {
		return c.withPackages(s, func(source *harvest.ResourceSync) error {
			h.source = source
			return h.follow(ctx)
		})
	}
	h.source = h.atomPMH()
	return h.follow(ctx)
}

// maxTries is how often a source is asked what has become of records. One that changes all the
// time is never found as its lists say.
const maxTries = 10

func (h *records) follow(ctx context.Context) error {
	mark, err := h.mark()
	if err != nil {
		return err
	}
	for tries := 1; ; tries++ {
		again := tries > 1
		h.last = tries == maxTries
		news, err := h.source.News(ctx, h.s.FragmentsFeed, mark, h)
		if err != nil {
			return err
		}
		if news.Reason != "" {
			h.Report(fmt.Sprintf("%s: %s; all of it was read", h.s.Name, news.Reason))
			h.r.Reason = news.Reason
		}
		todo, err := h.todo(news, again)
		if err != nil {
			return err
		}
		if err := h.begin(mark, news); err != nil {
			return err
		}
		h.left = 0
		if err := h.do(ctx, todo); err != nil {
			return err
		}
		if h.left == 0 {
			return h.moveMark(ctx, news)
		}
		mark = mark.Begin(news)
	}
}

// mark returns how far the source was followed, its beginning if it never was.
func (h *records) mark() (mark harvest.Mark, err error) {
	p := h.s.State
	if h.s.Staging != nil {
		p = h.s.Staging
	}
	if p != nil && p.Records != nil {
		err = json.Unmarshal(p.Records, &mark)
	}
	return mark, err
}

func (h *records) atomPMH() *harvest.AtomPMH {
	return &harvest.AtomPMH{
		Fetcher: h.fetcher(), Limits: h.Feed, MaxDocs: h.MaxDocs,
		Check: func(f *feeds.Feed, at string, _ bool) error {
			return checkPrefix(h.s, f.ServerSrcLocatorPrefix, at, false)
		},
		Progress: func(documents int) {
			h.Client.Progress(Progress{h.s.Name, "reading the feed", int64(documents), 0, Documents})
		},
	}
}

// Versions implements [harvest.Holder].
func (h *records) Versions(ids []string) (map[string]time.Time, error) {
	if ids == nil {
		ids = []string{}
	}
	versions := map[string]time.Time{}
	return versions, h.Store.HeldRecords(h.s.Name, ids, func(held store.Held) {
		if versions[held.ID] = held.Updated; held.Later {
			versions[held.ID] = time.Time{}
		}
	})
}

// Each implements [harvest.Holder].
func (h *records) Each(f func(id string)) error {
	return h.Store.HeldRecords(h.s.Name, nil, func(held store.Held) { f(held.ID) })
}

// todo returns what is to be done, and after it what is in quarantine, which is tried once
// in a round.
func (h *records) todo(news *harvest.News, again bool) ([]harvest.Record, error) {
	todo, err := news.Todo(h)
	if err != nil || again || h.s.Staging != nil { // what is in quarantine is so of the state that readers see
		return todo, err
	}
	quarantine, err := h.Store.Quarantine(h.s.Name)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i := range todo {
		known[todo[i].ID] = true
	}
	for i := range quarantine {
		q := &quarantine[i]
		h.waited[q.Entry] = q.Updated
		if known[q.Entry] {
			continue
		}
		now := news.Stated(q.Entry, q.Updated)
		r := harvest.Record{ID: q.Entry, Title: q.Title, Updated: q.Updated, TopicSI: q.Names, TopicSL: q.Located}
		r.Representations = []harvest.Representation{{URL: q.Link}} // of a version that kept no more
		if len(now) > 0 {
			r.Representations = now
		} else if len(q.Forms) > 0 {
			if err := json.Unmarshal(q.Forms, &r.Representations); err != nil {
				return nil, err
			}
		}
		todo = append(todo, r)
	}
	return todo, nil
}

// do fetches what is to be fetched ahead, and applies it in order, some to a commit.
func (h *records) do(ctx context.Context, todo []harvest.Record) error {
	for done := 0; done < len(todo); {
		n, suspect, err := h.doAhead(ctx, todo, done)
		done += n
		if err != nil {
			return err
		}
		if suspect == nil {
			continue
		}
		if h.outOfOrder(ctx, h.s, h.home, suspect.bad, &h.faults, n > 0) {
			return suspect.bad
		}
		if err := h.commit(ctx, []obtained{*suspect}); err != nil { // this record is at fault
			return err
		}
		done++
	}
	return nil
}

// doAhead does what is to be done from a place on as long as nothing suggests that the
// server is out of order. It returns how many it has done, and the record that does.
func (h *records) doAhead(ctx context.Context, todo []harvest.Record, from int) (done int, suspect *obtained, err error) {
	var batch []obtained
	var size int64
	taken := 0
	flush := func() error {
		if err := h.commit(ctx, batch); err != nil {
			return err
		}
		done = taken
		h.Client.Progress(Progress{h.s.Name, "applying changes", int64(from + done), int64(len(todo)), Fragments})
		batch, size = batch[:0], 0
		return nil
	}
	last := make([]bool, len(todo)-from)
	for i := range last {
		r := &todo[from+i]
		last[i] = r.Unsure || h.hasWaited(r)
	}
	fetched := fetch.Ahead(ctx, h.Parallel, len(todo)-from, func(ctx context.Context, i int) (obtained, int64) {
		o := h.obtain(ctx, &todo[from+i], last[i])
		return o, o.size
	})
	for o := range fetched {
		if ctx.Err() != nil {
			return done, nil, ctx.Err()
		}
		switch {
		case harvest.Gone(o.bad) && o.Unsure:
			o.bad, o.Record = nil, &harvest.Record{ID: o.ID, Title: o.Title, Updated: o.Updated, Deleted: true}
		case harvest.OutOfDate(o.bad) && !h.hasWaited(o.Record):
			h.wait(o.Record)
			taken++
			continue
		case harvest.OutOfDate(o.bad):
		case tooMany(o.bad) || serverFault(o.bad):
			err := flush()
			return done, &o, err
		}
		taken++
		batch = append(batch, o)
		if size += o.size; len(batch) == h.Batch || size > maxCommit {
			if err := flush(); err != nil {
				return done, nil, err
			}
		}
	}
	err = flush()
	return done, nil, err
}

func (h *records) wait(r *harvest.Record) {
	h.waited[r.ID] = r.Updated
	h.left++
}

func (h *records) hasWaited(r *harvest.Record) bool {
	at, ok := h.waited[r.ID]
	return h.last || ok && at.Equal(r.Updated)
}

// begin lets each commit say what it is the beginning of.
func (h *records) begin(mark harvest.Mark, news *harvest.News) (err error) {
	if h.begun = nil; !news.Unchanged {
		h.begun, err = json.Marshal(mark.Begin(news))
	}
	return err
}

// moveMark keeps how far the source was followed.
func (h *records) moveMark(ctx context.Context, news *harvest.News) error {
	if news.Unchanged {
		return nil
	}
	mark, err := json.Marshal(news.Mark)
	if err != nil {
		return err
	}
	return h.Store.ApplyEntries(ctx, h.s.Name, func(a *store.Applying) error {
		a.Records = mark
		a.Mark = store.Mark{Updated: news.Mark.Updated}
		return nil
	})
}
