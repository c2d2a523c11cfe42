package ldes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/rdf"
)

// A stream is walked from its root along all relations. A page that gets no more members, by its own statement or by
// times of relations to it, is read twice in two rounds, bypassing caches the second time, as one answer may be
// truncated. Each round reads all others and the page with the newest member, which shows whether the history was
// reset. In doubt, and once a day, it reads all pages. A file keeps statements of members until they are applied.

// source is a stream, for one round.
type source struct {
	*follow.Access
	contents
}

// known is the memory of a stream between rounds.
type known struct {
	Terms *terms           `json:"terms"`
	Pages map[string]*held `json:"pages"` // by a hash of the address
	Next  uint64           `json:"next"`  // the number of the next page
	Last  string           `json:"last"`  // the address of the page with the newest member

	Members int   `json:"members,omitempty"` // of all pages
	Arrived int64 `json:"arrived,omitempty"` // when the last member without a time was read first; microseconds since 1970
	Local   bool  `json:"local,omitempty"`   // a time of a member has no zone: it may be hours off
}

// held is a page that was read.
type held struct {
	N      uint64 `json:"n"`                // its number, in the order in which pages were found
	URL    string `json:"url,omitempty"`    // of one that is asked for again
	ETag   string `json:"etag,omitempty"`   // likewise
	Closed bool   `json:"closed,omitempty"` // it gets no more members
	Again  bool   `json:"again,omitempty"`  // likewise, and it is to be read a second time
	Past   bool   `json:"past,omitempty"`   // relations alone say that it is closed
	Sum    uint64 `json:"sum,omitempty"`    // of its statements about members

	Members int       `json:"members,omitempty"` // how many it has
	Until   time.Time `json:"until,omitzero"`    // all are from before that, as relations say; zero: they do not
	// Arrived has, of a stream without an order, when its members were read first, in microseconds since 1970, by their
	// hashes.
	Arrived map[uint64]int64 `json:"arrived,omitempty"`
}

// loss is a kind of loss found by a reading, with its reason.
type loss struct {
	kind follow.Loss
	why  string
}

// Delta implements [follow.Source].
func (s *source) Delta(ctx context.Context, ref string, look follow.Look, h follow.Inventory) (*follow.Delta, error) {
	before := &known{Pages: map[string]*held{}}
	if look.Mark.Documents != nil {
		if err := json.Unmarshal(look.Mark.Documents, before); err != nil {
			return nil, fmt.Errorf("%s: what is remembered of the stream is damaged: %w", ref, err)
		}
	}
	whole := look.Whole && !look.IfChanged || look.Doubted() != nil || before.Terms == nil
	var lost *loss
	if d := look.Doubted(); d != nil {
		lost = &loss{d.Loss, d.Reason}
	}
	for again := 0; ; again++ {
		w, err := s.walk(ctx, ref, &look, h, before, walking{whole: whole, lost: lost != nil})
		if err != nil {
			return nil, err
		}
		found := w.loss()
		switch {
		case found != nil && before.Terms == nil: // an interrupted first round left data that is not shown
			return nil, errors.Join(&follow.HistoryError{Reason: found.why}, w.stated.Close())
		case !whole && (found != nil || look.Whole && w.changed): // read all pages to find the lost members
		case whole && (found != nil) != (lost != nil) && !w.complete() && again < 2: // older members count otherwise then
		default:
			return w.delta(found)
		}
		whole, lost = true, found
		if err := w.stated.Close(); err != nil {
			return nil, err
		}
	}
}

// walking is how a stream is read.
type walking struct {
	whole bool // pages are read that were read before
	lost  bool // read all pages to find lost members
}

// walk is one reading of a stream.
type walk struct {
	*source
	documents
	walking
	ref           string
	look          *follow.Look
	holder        follow.Inventory
	before, after *known

	stated  *follow.Statements
	span    *follow.SpanRead
	reading follow.Reading
	asOf    time.Time
	newest  follow.Instant
	count   int             // of documents
	stale   []time.Duration // when answers about pages that may grow are out of date
	changed bool            // a page is not as it was
	broken  string          // an immutable page that has changed
	until   map[string]time.Time
	missing map[string]bool // pages that were there
	read    map[string]bool // pages, by address
	atMark  map[string]bool // records with a member at the mark, or later
	open    map[string][]part
	finals  map[string]bool // transactions that are whole
	waiting int             // members of others
}

// part is a member of a transaction.
type part struct {
	*member
	record *held
}

func (s *source) walk(ctx context.Context, ref string, look *follow.Look, h follow.Inventory, before *known,
	how walking) (_ *walk, err error) {
	fetcher, err := s.Fetcher.From(ref)
	if err != nil {
		return nil, err
	}
	w := &walk{source: s, walking: how, ref: ref, look: look, holder: h, before: before,
		documents: documents{fetcher: look.Fetcher(fetcher), most: s.Feed.MaxBytes,
			tolerated: s.Tolerated},
		after: &known{Terms: before.Terms, Pages: map[string]*held{}, Next: before.Next, Last: before.Last,
			Arrived: before.Arrived, Local: before.Local},
		stated: follow.NewStatements(ref, &s.Scratch), until: map[string]time.Time{}, missing: map[string]bool{},
		read: map[string]bool{}, atMark: map[string]bool{}, open: map[string][]part{}, finals: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.stated.Close())
		}
	}()
	queue := []string{page(ref)}
	for hash, p := range before.Pages {
		if one := *p; !w.whole {
			w.after.Pages[hash] = &one
			if one.URL != "" {
				queue = append(queue, one.URL)
			}
		}
	}
	slices.Sort(queue[1:])
	for seen := map[string]bool{}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		next, err := w.visit(ctx, at)
		if err != nil && !w.whole && w.count > 1 && follow.Gone(err) {
			w.missing[at] = true
			delete(w.after.Pages, follow.ShortHash(at))
			continue
		}
		if err != nil {
			return nil, err
		}
		queue = append(queue, next...)
	}
	w.close()
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	return w, w.flush()
}

// visit reads a page, unless it is as it was, and returns to where it leads.
func (w *walk) visit(ctx context.Context, at string) (next []string, err error) {
	if most := w.MaxDocs; most > 0 && w.count >= most {
		return nil, fmt.Errorf("%s: the stream has more than %d documents: its server may make them up", w.ref, most)
	}
	w.count++
	hash := follow.ShortHash(at)
	was, etag, from := w.before.Pages[hash], "", w.documents
	switch {
	case was != nil && was.Again:
		from.fetcher = from.fetcher.Uncached()
	case was != nil && !w.whole && w.look.ETag != "":
		etag = was.ETag
	}
	from.root = w.count == 1
	d, err := from.fetch(ctx, at, etag)
	if err != nil {
		return nil, err
	}
	if err := d.isPage(at); err != nil {
		return nil, err
	}
	if w.note(d.Answer); !d.Immutable() {
		w.stale = append(w.stale, d.MaxAge())
	}
	if d.NotModified {
		return nil, nil
	}
	w.read[at] = true
	now := &held{N: w.after.Next, URL: at, ETag: d.ETag}
	if was != nil {
		now.N, now.Arrived, now.Until = was.N, maps.Clone(was.Arrived), was.Until
	} else {
		w.after.Next++
	}
	w.after.Pages[hash] = now
	if w.count == 1 {
		if err := w.begin(ctx, d, at); err != nil {
			return nil, err
		}
	}
	if err := w.take(ctx, d, now, was); err != nil {
		return nil, err
	}
	same := was != nil && was.Sum == now.Sum
	now.Closed = immutable(d, at) && (same && (was.Again || was.Closed) || d.Status == http.StatusGone)
	now.Again = immutable(d, at) && !now.Closed
	w.changed = w.changed || !same || now.Again != was.Again
	if was != nil && was.Closed && !was.Past && !same && !w.after.Terms.Latest && !w.after.Terms.Drops {
		w.broken = at
	}
	pages, bounds := d.leads(w.after.Terms)
	for _, to := range pages {
		until := bounds[to]
		if p := w.before.Pages[follow.ShortHash(to)]; w.whole || p == nil || p.Past && !w.past(until) {
			next = append(next, to)
		}
		if other, is := w.until[to]; !is || !other.IsZero() && (until.IsZero() || until.After(other)) {
			w.until[to] = until // the earliest bound holds
		}
	}
	return next, nil
}

// leads returns the pages that a page links to, and the time that all members of each are before; zero if not stated.
// All relations to a page hold together (LDES §3.5.2 "Ordered").
func (d *read) leads(t *terms) (pages []string, bounds map[string]time.Time) {
	bounds = map[string]time.Time{}
	for _, from := range d.subjects(treeRelation) {
		for _, r := range d.objects(from, treeRelation) {
			to := page(d.first(r, treeNode).Value)
			if to == "" {
				continue
			}
			until, zoned := timeOf(d.first(r, treeValue).Value)
			switch kind := d.first(r, rdf.Type).Value; {
			case !zoned || t.Late || t.Time == nil || !slices.Equal(t.Time, d.pathAt(d.first(r, treePath))):
				until = time.Time{}
			case kind == before:
			case kind == notAfter || kind == equalTo:
				until = until.Add(time.Microsecond)
			default:
				until = time.Time{}
			}
			known, is := bounds[to]
			if !is {
				pages = append(pages, to)
			}
			if !is || known.IsZero() || !until.IsZero() && until.Before(known) {
				bounds[to] = until
			}
		}
	}
	return pages, bounds
}

// past reports whether a page gets no more members because all its members are before a time: new members are never
// earlier than those already taken (LDES §4.1 "The chronological order of the stream"). Future times are ignored.
func (w *walk) past(until time.Time) bool {
	return !until.IsZero() && !until.After(w.look.Updated) && !until.After(w.asOf) && !w.after.Local
}

// close closes the pages that get no more members by their relations, once they were read twice.
func (w *walk) close() {
	for hash, p := range w.after.Pages {
		was := w.before.Pages[hash]
		if until, is := w.until[p.URL]; is {
			p.Until = until
		}
		switch twice := was != nil && was.Sum == p.Sum && (was.Again || was.Past) && w.read[p.URL]; {
		case p.Closed || !w.past(p.Until):
		case twice:
			p.Closed, p.Past, p.Again = true, true, false
			w.changed = true
		case !p.Again:
			p.Again, w.changed = true, true
		}
	}
}

// note records the time at which the document of an answer was made.
func (w *walk) note(a *fetch.Answer) {
	if w.Documents != nil {
		w.Documents(w.count)
	}
	if w.count > 1 {
		w.reading.NoteNext(w.look.Memory, a)
		return
	}
	w.reading.Note(a)
	w.asOf, w.span = a.AsOf, follow.NewSpanRead(w.look.Memory.Remembered(), a.AsOf)
	w.span.Part = !w.whole
}

// begin reads the root's description of the stream. If it does not describe members, the document of the stream does.
func (w *walk) begin(ctx context.Context, d *read, at string) error {
	stream, err := d.streamAt(at, w.ref)
	if err != nil {
		return err
	}
	t, about := d.termsOf(stream), page(stream.Value)
	if t.Of == nil && !t.ordered() && about != at && about != d.URL {
		w.count++
		described, err := w.fetch(ctx, about, "")
		if err != nil && !follow.Gone(err) {
			return err
		}
		if err == nil {
			latest, drops := t.Latest, t.Drops
			t = described.termsOf(stream)
			t.Latest, t.Drops = t.Latest || latest, t.Drops || drops
		}
	}
	w.changed = w.changed || !reflect.DeepEqual(t, w.before.Terms)
	w.after.Terms = t
	return w.check(t, d.URL)
}

// immutable reports whether the answer or the page itself states that the page never changes.
func immutable(d *read, at string) bool {
	return d.first(rdf.NewIRI(at), nsLDES+"immutable").Value == "true" || d.Status == http.StatusGone || d.Immutable()
}

// take takes the members of a page, which was another one before, or not there.
func (w *walk) take(ctx context.Context, d *read, p, was *held) error {
	var members, all []*member
	for _, id := range d.objects(rdf.NewIRI(w.after.Terms.Stream), treeMember) {
		m, err := w.member(d, id, p, len(members))
		if err != nil {
			return err
		}
		p.Sum ^= m.sum
		members = append(members, m)
	}
	p.Members = len(members)
	anew := was != nil && (was.Again || was.Closed) && was.Sum != p.Sum // it was cut, or is now
	for _, m := range members {
		if m.Updated.After(w.newest.At) && !m.Updated.Before(w.look.Updated) {
			w.after.Last = p.URL
		}
		w.newest.Latest(m.ID, m.Updated)
		if !m.Updated.Before(w.look.Updated) {
			w.atMark[m.ID] = true
		}
		key := follow.Key(fmt.Sprint(m.version, " ", m.sum), m.Updated) // a document that was cut has another sum
		m.Anew = anew || w.look.Memory.Remembered().IsNew(key, m.Updated)
		w.span.Add(key, m.version, m.Updated)
		if m.transaction == "" {
			all = append(all, m)
			continue
		}
		w.open[m.transaction] = append(w.open[m.transaction], part{m, p})
		w.finals[m.transaction] = w.finals[m.transaction] || m.final
	}
	return w.state(ctx, all)
}

// settle states the members of transactions that are whole. The pages of others are read again.
func (w *walk) settle(ctx context.Context) error {
	for id, parts := range w.open {
		var all []*member
		for _, one := range parts {
			all = append(all, one.member)
			if !w.finals[id] {
				w.waiting++
				one.record.Closed, one.record.ETag = false, ""
			}
		}
		if !w.finals[id] {
			continue
		}
		if err := w.state(ctx, all); err != nil {
			return err
		}
	}
	return nil
}

// complete reports whether a resource missing from the stream is deleted, by the stream's own statement.
func (w *walk) complete() bool {
	t := w.after.Terms
	return w.whole && !t.Drops && t.Latest
}

// state adds the statements of members. It skips a resource that is held in a later version, because members may come
// in any order, unless all are compared.
func (w *walk) state(ctx context.Context, all []*member) error {
	ids, versions := make([]string, len(all)), map[string]time.Time{}
	for i, m := range all {
		ids[i] = m.ID
	}
	compared := w.complete() || w.whole && w.lost && !w.after.Terms.Drops
	if !w.look.Updated.IsZero() && !compared {
		var err error
		if versions, err = w.holder.Versions(ctx, ids); err != nil {
			return err
		}
	}
	for _, m := range all {
		if version, ok := versions[m.ID]; ok && m.Updated.Before(version) {
			continue
		}
		one, err := follow.StatementOf(&m.Record, follow.KindChanged, m.place)
		if err == nil {
			err = w.stated.Add(&one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// loss returns the loss that the reading found; nil if none.
func (w *walk) loss() *loss {
	t, mark := w.after.Terms, w.look.Mark
	if w.before.Terms == nil && mark.Begun != nil {
		mark = *mark.Begun
	}
	switch {
	case w.before.Terms == nil && mark.Feed == "":
		return nil
	case mark.Feed != t.id():
		return &loss{follow.LossFeed, "the stream is another one, or has another history"}
	case w.before.Members > 0 && w.members() == 0 && !t.Drops:
		return &loss{follow.LossEmpty, "the stream has no members any more"}
	case t.Drops || !t.ordered() || mark.Updated.IsZero():
		mark.At = nil
	case !w.whole && !w.read[w.before.Last] && !w.missing[w.before.Last]:
		mark.At = nil // the page with the newest member is as it was
	case w.newest.At.IsZero():
		return &loss{follow.LossEmpty, "the stream has no members any more"}
	case w.newest.At.Before(mark.Updated):
		return &loss{follow.LossOlder, "the newest member is older than the one that was handled last"}
	}
	for _, id := range mark.At {
		if !w.atMark[id] {
			return &loss{follow.LossDiverged, "the last members that were handled are not in the stream any more"}
		}
	}
	if w.broken != "" {
		return &loss{follow.LossDiverged, "a page has changed though it is immutable: " + w.broken}
	}
	return nil
}

// members returns the number of members of all pages when they were last read.
func (w *walk) members() (n int) {
	for _, p := range w.after.Pages {
		n += p.Members
	}
	return n
}

// delta returns the changes that the walk found.
func (w *walk) delta(found *loss) (*follow.Delta, error) {
	n, t, before := &follow.Delta{Reading: w.reading}, w.after.Terms, w.look.Mark
	n.Documents, n.Feed, n.AsOf, n.ToEnd = w.count, t.id(), w.asOf, w.whole
	if n.Every = t.Polling; t.Polling > 0 && len(w.stale) > 0 {
		n.Every = max(t.Polling, slices.Min(w.stale))
	}
	defer func() { n.HoldsTime(w.look.Doubted()) }()
	if found == nil && !w.whole && !w.changed && len(w.missing) == 0 {
		n.Unchanged, n.Same, n.Mark, n.HeadAt = true, true, before, before.Updated
		return n, w.stated.Close()
	}
	if found != nil {
		n.Loss, n.Why, n.Reason = found.kind, found.why, found.why
	}
	n.Whole = w.complete() || w.whole && found != nil && !t.Drops
	n.Anew = before.OfAnother(t.id()) || w.broken != ""
	n.Stated, n.Scratch, n.Open = w.stated, &w.Scratch, w.attach
	n.Mark = follow.Mark{Updated: before.Updated, At: before.At, AllAt: before.AllAt}
	if w.whole || w.newest.At.After(before.Updated) {
		w.newest.Move(&n.Mark)
	}
	if n.Mark.Feed, n.Mark.ETag = t.id(), w.reading.ETag; n.Mark.ETag == "" {
		n.Mark.ETag = before.ETag
	}
	for _, p := range w.after.Pages {
		if p.Closed && p.URL != w.after.Last {
			p.URL, p.ETag, p.Arrived = "", "", nil
		}
	}
	w.after.Members, n.Mark.Waiting = w.members(), w.waiting
	var err error
	if n.Mark.Documents, err = json.Marshal(w.after); err != nil {
		return nil, errors.Join(err, w.stated.Close())
	}
	n.News, n.HeadAt = w.stated.Count() > 0, n.Mark.Updated
	if !n.HeadAt.IsZero() {
		n.Head = feeds.FormatTime(n.HeadAt)
	}
	if n.Mixed { // its result counts, but all is read again
		n.Mark = before
		n.Mark.ETag = ""
	}
	n.Span = w.span.Span(n.ToEnd)
	return n, nil
}
