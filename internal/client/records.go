package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/harvest"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// A source may publish records rather than fragments: of each topic what it is now, under
// an identifier for life, and that it is no more. The map is what all records say
// together. What is fetched is always the present state of a record, so it may be newer
// than the entry that led to it, and then comes once more with a later one. Records that
// are deleted go before others come: an identifier may have moved on.

// records brings a source of records in step with its server.
type records struct {
	*Client
	s    *store.Subscription
	r    *Round
	home func(*url.URL) error

	// gone are the records that were not to be had though they are said to be there. If the
	// source has been asked again since, they are taken to be no more.
	gone map[string]time.Time

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
	h := &records{Client: c, s: s, r: r, home: home, gone: map[string]time.Time{}, large: make(chan struct{}, 1)}
	for again := false; ; again = true {
		mark, err := h.mark()
		if err != nil {
			return err
		}
		if again {
			mark.ETag = ""
		}
		news, err := h.news(ctx, mark)
		if err != nil {
			return err
		}
		if news.Reason != "" {
			c.Report(fmt.Sprintf("%s: %s; all of it was read", s.Name, news.Reason))
			r.Reason = news.Reason
		}
		todo, err := h.todo(news)
		if err != nil {
			return err
		}
		left, err := h.do(ctx, todo)
		if err != nil {
			return err
		}
		if left == 0 {
			return h.moveMark(ctx, news)
		}
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

func (h *records) news(ctx context.Context, mark harvest.Mark) (*harvest.News, error) {
	feed := harvest.AtomPMH{
		Fetcher: h.fetcher(), Limits: h.Feed, MaxDocs: h.MaxDocs,
		Check: func(f *feeds.Feed, at string, _ bool) error { return checkPrefix(h.s, f, at, false) },
		Progress: func(documents int) {
			h.Client.Progress(Progress{h.s.Name, "reading the feed", int64(documents), 0, Documents})
		},
	}
	return feed.News(ctx, h.s.FragmentsFeed, mark, h)
}

// Versions implements [harvest.Holder].
func (h *records) Versions(ids []string) (map[string]time.Time, error) {
	if ids == nil {
		ids = []string{}
	}
	versions := map[string]time.Time{}
	return versions, h.Store.HeldRecords(h.s.Name, ids, func(held store.Held) { versions[held.ID] = held.Updated })
}

// Each implements [harvest.Holder].
func (h *records) Each(f func(id string)) error {
	return h.Store.HeldRecords(h.s.Name, nil, func(held store.Held) { f(held.ID) })
}

// todo returns what is to be done, with what is in quarantine once more.
func (h *records) todo(news *harvest.News) ([]harvest.Record, error) {
	todo, err := news.Todo(h)
	if err != nil {
		return nil, err
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
		if !known[q.Entry] {
			todo = append(todo, harvest.Record{
				ID: q.Entry, Title: q.Title, Updated: q.Updated, TopicSI: q.Names, Representations: []harvest.Representation{{URL: q.Link}},
			})
		}
	}
	return todo, nil
}

// obtained is what came of fetching a record.
type obtained struct {
	*harvest.Record
	fragment *fragment.Fragment // nil where the record is deleted, or not to be had
	size     int64
	link     string // to what represents it
	bad      error
}

// do fetches what is to be fetched ahead, and applies it in order, some to a commit. It
// returns how many records were not to be had though they are said to be there.
func (h *records) do(ctx context.Context, todo []harvest.Record) (gone int, err error) {
	for done := 0; done < len(todo); {
		n, missing, err := h.doAhead(ctx, todo, done)
		done += n
		gone += missing
		if err == nil {
			continue
		}
		if h.outOfOrder(ctx, h.s, h.home, err, &h.faults, n > 0) {
			return gone, err
		}
		if err := h.commit(ctx, []obtained{{Record: &todo[done], bad: err}}); err != nil { // this record is at fault
			return gone, err
		}
		done++
	}
	return gone, nil
}

// doAhead does what is to be done from a place on as long as nothing suggests that the
// server is out of order. It returns how many it has done.
func (h *records) doAhead(ctx context.Context, todo []harvest.Record, from int) (done, gone int, err error) {
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
	fetched := fetch.Ahead(ctx, h.Parallel, len(todo)-from, func(ctx context.Context, i int) (obtained, int64) {
		o := h.obtain(ctx, &todo[from+i])
		return o, o.size
	})
	for o := range fetched {
		if ctx.Err() != nil {
			return done, gone, ctx.Err()
		}
		switch at, before := h.gone[o.ID]; {
		case harvest.Gone(o.bad) && o.Unsure:
			o.bad, o.Record = nil, &harvest.Record{ID: o.ID, Title: o.Title, Updated: o.Updated, Deleted: true}
		case harvest.Gone(o.bad) && (!before || !at.Equal(o.Updated)):
			h.gone[o.ID] = o.Updated // its deletion or its next version should be in the feed by now
			gone++
			taken++
			continue
		case harvest.Gone(o.bad):
		case tooMany(o.bad) || serverFault(o.bad):
			if err := flush(); err != nil {
				return done, gone, err
			}
			return done, gone, o.bad
		}
		taken++
		batch = append(batch, o)
		if size += o.size; len(batch) == h.Batch || size > maxCommit {
			if err := flush(); err != nil {
				return done, gone, err
			}
		}
	}
	return done, gone, flush()
}

// obtain fetches what represents a record, in the format that we like best.
func (h *records) obtain(ctx context.Context, r *harvest.Record) obtained {
	o := obtained{Record: r}
	for _, link := range h.representations(r) {
		o.link = link.URL
		request := fetch.Request{URL: link.URL, Accept: h.accept(), Max: h.MaxFragment, Home: h.home, Within: h.MaxTime}
		f, a, err := fetch.Do(ctx, h.fetcher(), request, func(a *fetch.Answer) (*fragment.Fragment, error) {
			body := &oneLarge{body: a.Body, ctx: ctx, room: h.large}
			defer body.leave()
			return h.read(body, a.URL, r)
		})
		if o.bad = err; err == nil {
			f.Deleted = false // else an entry says so
			o.fragment, o.size = f, a.Body.Size()
			return o
		}
		if !harvest.Gone(err) {
			return o
		}
	}
	return o
}

func (h *records) read(body *oneLarge, at string, r *harvest.Record) (*fragment.Fragment, error) {
	o := h.xtmOptions(h.s.SP, at)
	if len(r.TopicSI)+len(r.TopicSL) > 0 {
		return fragment.ReadAs(body, o, fragment.Identity{SubjectIdentifiers: locators(r.TopicSI), SubjectLocators: locators(r.TopicSL)})
	}
	return fragment.ReadRecord(body, o, tmdm.Locator(r.ID), tmdm.Locator(at))
}

// representations returns those of a record that may be XTM, the best first.
func (h *records) representations(r *harvest.Record) []harvest.Representation {
	all := slices.DeleteFunc(slices.Clone(r.Representations), func(l harvest.Representation) bool { return h.rank(l.Type) == 0 })
	slices.SortStableFunc(all, func(a, b harvest.Representation) int { return h.rank(b.Type) - h.rank(a.Type) })
	return all
}

// commit applies what was obtained, and keeps what is held of each record with it.
func (h *records) commit(ctx context.Context, batch []obtained) error {
	if len(batch) == 0 {
		return nil
	}
	applied := 0
	err := h.Store.ApplyEntries(ctx, h.s.Name, func(a *store.Applying) error {
		var told notes
		for i := range batch {
			if err := h.apply(a, &batch[i], &told); err != nil {
				return fmt.Errorf("applying the record %s: %w", batch[i].ID, err)
			}
		}
		applied = len(told.applied)
		a.Applied += applied
		return told.keep(a)
	})
	if err == nil {
		h.r.Entries += len(batch)
		h.r.Applied += applied
	}
	return err
}

// apply does to the source what was obtained of a record.
func (h *records) apply(a *store.Applying, o *obtained, told *notes) error {
	held, err := a.Held(o.ID)
	if err != nil {
		return err
	}
	if held == nil {
		held = &store.Held{ID: o.ID}
	}
	entry := store.ActivityEntry{TopicSI: string(held.TopicSI), Title: o.Title, State: string(feeds.StateLive), Updated: o.Updated}
	if entry.TopicSI == "" {
		entry.TopicSI = topicOf(&feeds.Entry{ID: o.ID, TopicSI: o.TopicSI, TopicSL: o.TopicSL})
	}
	bad, topic := o.bad, fragment.Ref("")
	if bad == nil && o.fragment != nil {
		if topic, bad, err = h.describe(a, o); err != nil {
			return err
		}
	}
	switch {
	case bad != nil:
		if harvest.Gone(bad) {
			bad = fmt.Errorf("%w, though the feed says that it is there; the topic was removed", bad)
			if err := h.drop(a, held); err != nil {
				return err
			}
		}
		entry.Error = bad.Error()
		told.quarantined = append(told.quarantined, entry)
		return errors.Join(
			a.Hold(store.Held{ID: o.ID, Updated: o.Updated, TopicSI: held.TopicSI, Named: held.Named}),
			a.Quarantine(store.Quarantined{
				TopicSI: o.ID, Names: o.TopicSI, Entry: o.ID, Title: o.Title, State: entry.State, Link: o.link, Updated: o.Updated, Error: bad.Error(),
			}))
	case o.fragment == nil: // deleted, or not to be had in a format that is of use
		if err := h.drop(a, held); err != nil {
			return err
		}
		if err := a.LetGo(o.ID); err != nil {
			return err
		}
		if !o.Deleted {
			if err := a.Hold(store.Held{ID: o.ID, Updated: o.Updated}); err != nil {
				return err
			}
		}
		entry.State = string(feeds.StateDeleted)
	default:
		if err := h.put(a, held, o, topic); err != nil {
			return err
		}
	}
	told.applied = append(told.applied, entry)
	at := o.Updated
	if o.Deleted {
		at = forever
	}
	was, err := a.Release(o.ID, at)
	if was {
		told.released = append(told.released, entry)
	}
	return err
}

// describe returns the topic that a record that was obtained describes from now on, ""
// where it is another record that does. Of two records of one topic each would undo what
// the other says. One of them gives way if the other alone bears the topic's name: it has
// merged into it, and its deletion is to come. Else the conflict is an error of the
// record's.
func (h *records) describe(a *store.Applying, o *obtained) (topic fragment.Ref, conflict, err error) {
	topic = o.fragment.Topic.TopicSI()
	by, err := a.Describing(topic)
	if err != nil || by == "" || by == o.ID {
		return topic, nil, err
	}
	other, err := a.Held(by)
	if err != nil {
		return "", nil, err
	}
	switch named := slices.Contains(o.TopicSI, string(topic)); {
	case named && !other.Named:
		return topic, nil, a.Hold(store.Held{ID: other.ID, Updated: other.Updated})
	case !named && other.Named && len(o.TopicSI) > 0:
		return "", nil, nil
	}
	return "", fmt.Errorf("%s: the record %s describes the topic %s already", o.link, by, topic), nil
}

// put applies the fragment of a record, which describes the topic.
func (h *records) put(a *store.Applying, held *store.Held, o *obtained, topic fragment.Ref) error {
	if held.TopicSI != topic { // it is about another one now
		if err := h.drop(a, held); err != nil {
			return err
		}
	}
	if err := merge.Apply(a.State, o.fragment); err != nil {
		return err
	}
	return a.Hold(store.Held{ID: o.ID, Updated: o.Updated, TopicSI: topic, Named: slices.Contains(o.TopicSI, string(topic))})
}

// forever is later than all times: what is in quarantine of a record that is no more is
// of no use, whatever its time is.
var forever = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// drop removes the topic that a record described, if it is that one's still.
func (h *records) drop(a *store.Applying, held *store.Held) error {
	if held.TopicSI == "" {
		return nil
	}
	topic, err := a.Topic(held.TopicSI)
	if err != nil || topic != nil && topic.TopicSI() != held.TopicSI {
		return err
	}
	ref := held.TopicSI
	held.TopicSI = ""
	return merge.Apply(a.State, &fragment.Fragment{
		TopicSI: ref, Deleted: true,
		Topic: &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref}}},
	})
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
