package harvest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Round is what a look at the source has changed in a folder.
type Round struct {
	URL string `json:"url"`

	New       int `json:"new"`       // files that were written
	Changed   int `json:"changed"`   // files that were written anew
	Removed   int `json:"removed"`   // files that were removed
	Held      int `json:"held"`      // files of records that are there now
	Unwanted  int `json:"unwanted"`  // records that are in no format that is wanted
	Ignored   int `json:"ignored"`   // entries of the feed that stand for no record
	Documents int `json:"documents"` // of the feed that were read

	// Reason says why all of the feed was read again, "" where it was not.
	Reason string `json:"reason,omitempty"`

	// Failed could not be had, Gone are at none of the addresses that the feed says
	// they have. Both are tried for again in the next round. The first time they may
	// have been found so in an earlier one.
	Failed []Problem `json:"failed"`
	Gone   []Problem `json:"gone"`
}

// Problem is a record that could not be had in its last version.
type Problem struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Updated time.Time `json:"updated,omitzero"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Held    bool      `json:"held"` // in an earlier version
}

// round is a round under way.
type round struct {
	*Folder
	*Round
	home    func(*url.URL) error
	before  map[string]Held // what is held of those that are fetched
	anew    bool            // what is held may be of another history
	touched map[string]bool // the records that were tried for
	hosts   *hosts
	health  outOfOrder
	changed bool // the state
	last    *News
}

// Harvest does a round: it finds out at the URL what has become of the records, and does
// the same to the files of the folder. Each round of a folder is of the same URL; "" is
// that of the last one. With an error all that was done stays, and the next round does
// the rest. A record that alone cannot be had is no error.
func (f *Folder) Harvest(ctx context.Context, s Source, ref string) (*Round, error) {
	switch {
	case ref == "" && f.state.URL == "":
		return nil, fmt.Errorf("%s holds nothing yet: say from which URL", f.root.Name())
	case ref == "":
		ref = f.state.URL
	case f.state.URL != "" && f.state.URL != ref:
		return nil, fmt.Errorf("harvest: %s holds the records of %s: take another folder for those of %s", f.root.Name(), f.state.URL, ref)
	}
	home, err := f.Fetcher.Home(ref)
	if err != nil {
		return nil, err
	}
	r := &round{Folder: f, Round: &Round{URL: ref}, home: home, touched: map[string]bool{}, hosts: newHosts(f.Parallel)}
	r.changed = f.want() && f.state.URL != ""
	f.saved = f.now()
	err = r.run(ctx, s)
	if r.changed {
		err = errors.Join(err, f.saveAll())
	}
	f.whole = err == nil
	r.sum()
	return r.Round, err
}

func (r *round) run(ctx context.Context, s Source) error {
	news, err := s.News(ctx, r.URL, r.state.Mark, r.Folder)
	if err != nil {
		return err
	}
	r.last = news
	if r.state.URL == "" { // whatever happens, the folder is this source's from now on
		r.state.URL = r.URL
		if err := r.saveAll(); err != nil {
			return err
		}
	}
	if !news.Unchanged {
		r.changed = true // the mark at least
		r.state.Mark = r.state.Mark.Begin(news)
		if news, err = r.follow(ctx, s, news); err != nil {
			return err
		}
	}
	if err := r.again(ctx); err != nil {
		return err
	}
	r.state.Mark = news.Mark
	return nil
}

// follow does what the news say. Where a record is gone, though, or is not what it is said to
// be, its entry is out of date: the feed is read once more, to see what has become of it
// (Atom-PMH, Resolvability of URIs). It returns the last news.
func (r *round) follow(ctx context.Context, s Source, news *News) (*News, error) {
	doubtful, err := r.do(ctx, news, false)
	if err != nil || len(doubtful) == 0 {
		return news, err
	}
	later, err := s.News(ctx, r.URL, news.Mark, r.Folder)
	if err != nil {
		return nil, err
	}
	for _, t := range doubtful {
		delete(r.touched, t.record.ID)
	}
	known := map[string]Record{}
	if !later.Unchanged {
		r.last = later
		r.state.Mark = r.state.Mark.Begin(later)
		if _, err := r.do(ctx, later, true); err != nil {
			return nil, err
		}
		for _, record := range later.Records {
			known[record.ID] = record
		}
	}
	var again []Record
	for _, t := range doubtful {
		now, ok := known[t.record.ID]
		if r.touched[t.record.ID] || ok && (now.Deleted || now.Updated.After(t.record.Updated)) || !ok && later.Whole {
			continue // the feed has told what has become of it
		}
		if !Gone(t.err) { // perhaps it was the way here that has changed it
			again = append(again, t.record)
			continue
		}
		r.touched[t.record.ID] = true
		if err := r.settle(t); err != nil {
			return nil, err
		}
	}
	if err := r.fetch(ctx, again, r.settle); err != nil {
		return nil, err
	}
	return &News{Mark: later.Mark}, nil
}

// do does what the news say. It returns which records were gone, or not what they are said to
// be: unless this is the last look at the feed they are left as they are.
func (r *round) do(ctx context.Context, news *News, last bool) (doubtful []taken, err error) {
	todo, err := news.Todo(r.Folder)
	if err != nil {
		return nil, err
	}
	r.Ignored, r.anew = news.Ignored, news.Anew || news.Reason != "" && !r.Mirror
	r.Documents += news.Documents
	if news.Reason != "" {
		r.Reason = news.Reason
	}
	removals := slices.IndexFunc(todo, func(r Record) bool { return !r.Deleted })
	if removals < 0 {
		removals = len(todo)
	}
	for _, record := range todo[:removals] {
		r.remove(record.ID)
	}
	done := 0
	err = r.fetch(ctx, todo[removals:], func(t taken) error {
		done++
		r.tell(done, len(todo)-removals)
		if OutOfDate(t.err) && !t.record.Unsure && !last {
			doubtful = append(doubtful, t)
			return nil
		}
		return r.settle(t)
	})
	return doubtful, err
}

// again tries for what could not be had in earlier rounds, that first which was not tried
// for the longest time. That comes last: it keeps nothing back. If the server seems out of
// order, the rest waits for the next round.
func (r *round) again(ctx context.Context) error {
	var records []Record
	for id, held := range r.state.Records {
		if m := held.Missing; m != nil && !r.touched[id] {
			if now := r.last.Stated(id, m.Updated); len(now) > 0 {
				m.Representations = now
			}
			records = append(records, Record{ID: id, Title: held.Title, Updated: m.Updated, Unsure: m.Unsure, Representations: m.Representations})
		}
	}
	slices.SortFunc(records, func(a, b Record) int {
		return r.state.Records[a.ID].Missing.Tried.Compare(r.state.Records[b.ID].Missing.Tried)
	})
	err := r.fetch(ctx, records, r.settle)
	if errors.As(err, new(*serverError)) {
		return nil
	}
	return err
}

// fetch fetches records and calls done with each, as long as the server works.
func (r *round) fetch(ctx context.Context, records []Record, done func(taken) error) error {
	r.before = make(map[string]Held, len(records))
	for _, record := range records {
		r.touched[record.ID] = true
		if held := r.state.Records[record.ID]; held != nil {
			r.before[record.ID] = *held
		}
	}
	return r.takeAll(ctx, records, func(t taken) error {
		if t.err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		var disk *diskError
		if errors.As(t.err, &disk) {
			return disk
		}
		if err := done(t); err != nil {
			return err
		}
		if err := r.health.add(t.err); err != nil {
			return err
		}
		return r.saveNowAndThen()
	})
}

// settle does to the folder what has become of a record.
func (r *round) settle(t taken) error {
	id := t.record.ID
	before := r.state.Records[id]
	r.changed = true
	switch {
	case t.unwanted:
		r.remove(id)
		r.state.Records[id] = &Held{Title: t.record.Title, Updated: t.record.Updated, Unwanted: true}
	case Gone(t.err) && t.record.Unsure: // it is deleted
		r.remove(id)
	case t.err != nil:
		r.missing(t, before)
	case before != nil && before.File != "" && (t.same || before.SHA256 == t.held.SHA256 && r.keepsName(before, &t.held)):
		t.held.File = before.File
		r.state.Records[id] = &t.held
		if t.temp != "" {
			return r.root.Remove(t.temp)
		}
	default:
		if before != nil && before.File != "" {
			r.Changed++
		} else {
			r.New++
		}
		return r.put(id, &t.held, t.temp)
	}
	return nil
}

// missing notes a version of a record that could not be had. What is held of a record
// that is gone is removed; else it stays.
func (r *round) missing(t taken, before *Held) {
	now := r.now()
	m := &Missing{
		Updated: t.record.Updated, Gone: Gone(t.err), Reason: t.err.Error(), Since: now, Tried: now,
		Unsure: t.record.Unsure, Representations: slices.DeleteFunc(slices.Clone(t.record.Representations), func(r Representation) bool { return r.Open != nil }),
	}
	held := &Held{Title: t.record.Title}
	if before != nil {
		if before.Missing != nil && before.Missing.Updated.Equal(m.Updated) {
			m.Since = before.Missing.Since
		}
		if !m.Gone {
			held = before
		}
	}
	if m.Gone {
		r.remove(t.record.ID)
	}
	held.Missing, held.Stale, held.Unwanted = m, false, false
	r.state.Records[t.record.ID] = held
}

func (r *round) remove(id string) {
	r.touched[id], r.changed = true, true
	if r.forget(id) {
		r.Removed++
	}
}

// sum counts what is there in the end.
func (r *round) sum() {
	r.Failed, r.Gone = []Problem{}, []Problem{}
	for _, id := range slices.Sorted(maps.Keys(r.state.Records)) {
		held := r.state.Records[id]
		if held.File != "" {
			r.Held++
		}
		if held.Unwanted {
			r.Unwanted++
		}
		if m := held.Missing; m != nil {
			p := Problem{id, held.Title, m.Updated, m.Reason, m.Since, held.File != ""}
			if m.Gone {
				r.Gone = append(r.Gone, p)
			} else {
				r.Failed = append(r.Failed, p)
			}
		}
	}
	byTitle := func(a, b Problem) int { return strings.Compare(a.Title, b.Title) }
	slices.SortStableFunc(r.Failed, byTitle)
	slices.SortStableFunc(r.Gone, byTitle)
}

func (r *round) tell(done, total int) {
	if r.Progress != nil {
		r.Progress(done, total)
	}
}
