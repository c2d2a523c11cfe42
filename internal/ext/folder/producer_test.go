package folder_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// otherFeeds is the row of [producer] in the table of followtest.
var otherFeeds = followtest.Row{Name: "other feeds", Kind: followtest.Archived, Model: true, Open: func(t testing.TB, seed uint64) followtest.Source {
	p := newProducer(seed)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}}

// producer is a model of the actions that Atom-PMH allows a producer: a pool of records with a history, published in
// one of the two forms. All choices are those of its generator.
type producer struct {
	faults.Front
	rng *rand.Rand

	ids int // how many different records there may be

	url      string
	formats  []string           // that its reader wants
	mark     func() follow.Mark // that its reader has
	watchers []func()
	saved    func() // restores it

	mu       sync.Mutex
	clock    int
	version  int
	feed     string
	complete bool
	pool     map[string]*record
	log      []entry           // oldest first
	active   map[string]int    // by id: time of the last entry that announces the record
	bodies   map[string]string // by path: representations, old ones too
	pages    map[string]string // by path: documents of the feed
	cuts     int
	stable   bool // representations keep their addresses
}

type record struct {
	version int
	formats []string
}

func newProducer(seed uint64) *producer {
	p := &producer{
		ids: 6, rng: rand.New(rand.NewPCG(seed, 5)), feed: "urn:feed", pool: map[string]*record{}, active: map[string]int{},
		bodies: map[string]string{}, pages: map[string]string{},
	}
	p.stable, p.complete = p.one(2), p.one(2)
	p.formats = [][]string{nil, {"application/json", "application/xml"}, {"text/html"}}[p.rng.IntN(3)]
	p.publish()
	return p
}

// one is true once in n times.
func (p *producer) one(n int) bool { return p.rng.IntN(n) == 0 }

// allFormats are those that records come in.
var allFormats = []string{"application/xml", "application/json", "text/html"}

// Happen implements [followtest.Source].
func (p *producer) Happen(during bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := p.event(!during)
	for _, f := range p.watchers {
		f()
	}
	return what
}

// event lets something happen. It happens during reads, too, unless quiet.
func (p *producer) event(quiet bool) (what string) {
	p.clock += p.rng.IntN(3) // so that there are entries at equal times
	id := fmt.Sprint(p.rng.IntN(p.ids))
	switch n := p.rng.IntN(20); {
	case n < 8:
		what = "modify " + id
		p.modify(id)
	case n < 12:
		what = "delete " + id
		p.delete(id)
	case n < 13:
		what = "drop historical entries"
		p.dropHistorical()
	case n < 14:
		what = "cut" // the archive anew, see publish
	case n < 17:
		what = "switch"
		p.complete = !p.complete
		if !p.complete && quiet && p.mark != nil && p.mark().Complete && p.one(2) { // its reader has seen the absence
			p.log = slices.DeleteFunc(slices.Clone(p.log), func(e entry) bool { return len(e.links) == 0 || p.pool[e.id] == nil })
		}
	case n < 18:
		what = "begin"
		p.begin()
	case quiet && p.saved == nil:
		what = "back up"
		p.saved = p.backup()
	case quiet:
		what = "restore"
		p.saved()
		p.saved = nil
	}
	if !p.complete && len(p.log) == 0 { // a feed that is empty all of a sudden is not believed: its owner must say that it is another one
		p.begin()
	}
	p.publish()
	return what
}

// Much implements [followtest.Source].
func (p *producer) Much() {
	p.mu.Lock()
	p.ids = 60
	p.mu.Unlock()
	for range 60 {
		p.Happen(false)
	}
}

func (p *producer) URL(followtest.Kind) string { return p.url + "/feed" }

func (p *producer) Feed(r *http.Request) bool { return p.Record(r) == "" }

func (p *producer) Record(r *http.Request) string {
	if rest, ok := strings.CutPrefix(r.URL.Path, "/r/"); ok {
		id, _, _ := strings.Cut(rest, "/")
		return id
	}
	return ""
}

func (p *producer) Settle() {}

func (p *producer) Whole() bool { return false }

func (p *producer) Watch(f func()) { p.watchers = append(p.watchers, f) }

// Spare implements [followtest.Source]: where the times do not tell whether a record was deleted, its
// reader looks whether it is there.
func (p *producer) Spare(r *http.Request, sign faults.Sign) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sign == faults.Old || sign == faults.Absent && p.unsure(p.Record(r))
}

// modify creates a record, or modifies it: its content, its available forms, or both.
func (p *producer) modify(id string) {
	if last, ok := p.active[id]; ok && last >= p.clock {
		p.clock = last + 1 // "should not be the same as any historical entry": no reader could see it
	}
	formats := slices.Clone(allFormats)
	p.rng.Shuffle(len(formats), func(i, j int) { formats[i], formats[j] = formats[j], formats[i] })
	r := p.pool[id]
	if r == nil || !p.one(3) {
		p.version++
		r = &record{version: p.version}
	} else {
		r = &record{version: r.version}
	}
	r.formats = formats[:1+p.rng.IntN(len(formats))]
	p.unpublish(id)
	p.pool[id] = r
	p.active[id] = p.clock
	e := entry{id: id, at: p.clock}
	for _, format := range r.formats {
		path := p.path(id, r.version, format)
		p.bodies[path] = body(id, r.version, format)
		e.links = append(e.links, format+" "+path)
	}
	p.log = append(p.log, e)
}

func (p *producer) path(id string, version int, format string) string {
	_, kind, _ := strings.Cut(format, "/")
	if p.stable {
		return fmt.Sprintf("/r/%s/%s", id, kind)
	}
	return fmt.Sprintf("/r/%s/%d/%s", id, version, kind)
}

func body(id string, version int, format string) string {
	return fmt.Sprintf("version %d of %s as %s", version, id, format)
}

// unpublish makes what stood for a record until now go, or not.
func (p *producer) unpublish(id string) {
	if !p.stable && p.one(2) {
		return
	}
	maps.DeleteFunc(p.bodies, func(path, _ string) bool { return strings.HasPrefix(path, "/r/"+id+"/") })
}

func (p *producer) delete(id string) {
	if p.pool[id] == nil {
		return
	}
	delete(p.pool, id)
	p.unpublish(id)
	if p.active[id] == p.clock { // a reader that cannot know by the times reads the record itself
		maps.DeleteFunc(p.bodies, func(path, _ string) bool { return strings.HasPrefix(path, "/r/"+id+"/") })
	}
	p.log = append(p.log, deletion(id, p.clock))
}

// dropHistorical drops some of the entries for which there are later ones.
func (p *producer) dropHistorical() {
	last := map[string]int{}
	for i, e := range p.log {
		last[e.id] = i
	}
	var kept []entry
	for i, e := range p.log {
		if last[e.id] == i || p.one(2) {
			kept = append(kept, e)
		}
	}
	p.log = kept
}

// begin begins another history of the same records, under a new id: the times are the same, but the changes are
// others.
func (p *producer) begin() {
	p.cuts++
	p.feed = fmt.Sprintf("urn:feed:%d", p.cuts)
	p.bodies = map[string]string{}
	p.log = slices.Clone(p.log)
	p.dropHistorical()
	p.log = slices.DeleteFunc(p.log, func(e entry) bool { return len(e.links) == 0 || p.pool[e.id] == nil || e.at != p.active[e.id] })
	for i := range p.log {
		e := &p.log[i]
		if p.one(4) {
			delete(p.pool, e.id)
			continue
		}
		p.version++
		r := &record{version: p.version, formats: p.pool[e.id].formats}
		p.pool[e.id] = r
		e.links = nil
		for _, format := range r.formats {
			path := p.path(e.id, r.version, format)
			p.bodies[path] = body(e.id, r.version, format)
			e.links = append(e.links, format+" "+path)
		}
	}
	p.log = slices.DeleteFunc(p.log, func(e entry) bool { return p.pool[e.id] == nil })
}

// publish makes the documents of the feed. Documents that were cut otherwise before may
// stay where they are, as they were.
func (p *producer) publish() {
	if p.one(2) {
		clear(p.pages)
	}
	p.cuts++
	if p.complete {
		d := document{feed: p.feed, complete: true}
		last := map[string]int{}
		for i, e := range p.log {
			last[e.id] = i
		}
		for i, e := range p.log {
			if p.pool[e.id] != nil && len(e.links) > 0 && (last[e.id] == i || p.one(2)) {
				d.entries = append(d.entries, e)
			}
		}
		p.pages["/feed"] = p.shuffled(d).String()
		return
	}
	path := "" // of the document before
	rest := slices.Clone(p.log)
	slices.SortStableFunc(rest, func(a, b entry) int { return a.at - b.at })
	for n := 0; len(rest) > 0 && p.rng.IntN(4) > 0; n++ {
		size := 1 + p.rng.IntN(len(rest))
		here := fmt.Sprintf("/archive/%d/%d", p.cuts, n)
		p.pages[here] = p.shuffled(document{feed: p.feed, prev: path, archive: true, entries: rest[:size]}).String()
		rest, path = rest[size:], here
	}
	p.pages["/feed"] = p.shuffled(document{feed: p.feed, prev: path, entries: rest}).String()
}

// backup returns what undoes all that happens from now on, but for the time that passes.
func (p *producer) backup() (restore func()) {
	feed, complete, pool, log, active, bodies := p.feed, p.complete, maps.Clone(p.pool), slices.Clone(p.log), maps.Clone(p.active), maps.Clone(p.bodies)
	return func() {
		p.feed, p.complete, p.pool, p.log, p.active, p.bodies = feed, complete, pool, log, active, bodies
		p.clock++
		p.publish()
	}
}

// shuffled returns a document with its entries in some order.
func (p *producer) shuffled(d document) document {
	d.entries = slices.Clone(d.entries)
	switch p.rng.IntN(3) {
	case 0:
		slices.Reverse(d.entries)
	case 1:
		p.rng.Shuffle(len(d.entries), func(i, j int) { d.entries[i], d.entries[j] = d.entries[j], d.entries[i] })
	}
	return d
}

// Records implements [followtest.Source]: it returns the contents of a copy in the formats. It is called after
// events, or between them.
func (p *producer) Records(followtest.Kind) map[string]string {
	formats := p.formats
	all := map[string]string{}
	for id, r := range p.pool {
		if len(formats) == 0 {
			all[id] = body(id, r.version, r.formats[0])
			continue
		}
		for _, format := range formats {
			if slices.Contains(r.formats, format) {
				all[id] = body(id, r.version, format)
				break
			}
		}
	}
	return all
}

// unsure reports whether a record was deleted at the time of an entry of its.
func (p *producer) unsure(id string) bool {
	last := -1
	for _, e := range p.log {
		if e.id == id && e.at == last {
			return true
		}
		if e.id == id {
			last = e.at
		}
	}
	return false
}

// ServeHTTP answers, through the faults.
func (p *producer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Answer(w, r, http.HandlerFunc(p.show))
}

func (p *producer) show(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page, ok := p.pages[r.URL.Path]
	if !ok {
		page, ok = p.bodies[r.URL.Path]
	}
	etag := etagOf(page)
	w.Header().Set("ETag", etag)
	switch {
	case !ok:
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	case r.Header.Get("Accept-Encoding") != "" && p.one(2):
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(faults.Packed([]byte(page)))
	default:
		fmt.Fprint(w, page)
	}
}
