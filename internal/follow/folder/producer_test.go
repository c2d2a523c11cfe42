package folder

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/follow"

	"github.com/klauspost/compress/gzip"
)

// producer is a model of what Atom-PMH lets a producer do: a pool of records with a
// history, published in one of the two forms. All choices are those of its generator.
type producer struct {
	rng *rand.Rand

	ids int // how many different records there may be

	mu       sync.Mutex
	clock    int
	version  int
	feed     string
	complete bool
	pool     map[string]*record
	log      []entry           // oldest first
	active   map[string]int    // by id: time of the last entry that says it is there
	bodies   map[string]string // by path: representations, old ones too
	pages    map[string]string // by path: documents of the feed
	cuts     int
	stable   bool // representations keep their addresses
	lying    bool // some answers are wrong
	events   int  // that are still to happen while somebody harvests
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
	p.publish()
	return p
}

// one is true once in n times.
func (p *producer) one(n int) bool { return p.rng.IntN(n) == 0 }

// allFormats are those that records come in.
var allFormats = []string{"application/xml", "application/json", "text/html"}

// event lets something happen. It happens while somebody reads, too, unless quiet.
func (p *producer) event(quiet bool, remembered *follow.Mark) {
	p.clock += p.rng.IntN(3) // so that there are entries at equal times
	id := fmt.Sprint(p.rng.IntN(p.ids))
	switch n := p.rng.IntN(20); {
	case n < 8:
		p.modify(id)
	case n < 12:
		p.delete(id)
	case n < 13:
		p.dropHistorical()
	case n < 14: // the archive is cut anew, see publish
	case n < 18:
		p.complete = !p.complete
		if !p.complete && quiet && remembered.Complete && p.one(2) { // its reader has seen what is absent
			p.log = slices.DeleteFunc(slices.Clone(p.log), func(e entry) bool { return len(e.links) == 0 || p.pool[e.id] == nil })
		}
	case n < 19:
		p.begin()
	}
	p.publish()
}

// modify creates a record, or modifies it: what it says, the forms in which it is available,
// or both.
func (p *producer) modify(id string) {
	if last, ok := p.active[id]; ok && last >= p.clock {
		p.clock = last + 1 // "should not be the same as any historical entry": nobody could see it
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
	if p.active[id] == p.clock { // whoever cannot know by the times looks whether it is there
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

// begin begins another history of the same records, under a new id: the times are the
// same, what they are of is not.
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

// wanted returns what a copy in some formats holds.
func (p *producer) wanted(formats []string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
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

// unsure reports whether some record was deleted at the time of an entry of its.
func (p *producer) unsure() bool {
	last := map[string]int{}
	for _, e := range p.log {
		if at, ok := last[e.id]; ok && at == e.at {
			return true
		}
		last[e.id] = e.at
	}
	return false
}

// ServeHTTP answers, and lies where it is to.
func (p *producer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events > 0 && p.one(4) {
		p.events--
		p.event(false, nil)
	}
	page, ok := p.pages[r.URL.Path]
	if !ok {
		page, ok = p.bodies[r.URL.Path]
	}
	etag := etagOf(page)
	w.Header().Set("ETag", etag)
	switch n := p.rng.IntN(24); {
	case p.lying && n == 0:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case p.lying && n == 1:
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case p.lying && n == 2:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case p.lying && n == 3: // truncated
		w.Header().Set("Content-Length", fmt.Sprint(len(page)+10))
		fmt.Fprint(w, page)
		return
	case p.lying && n == 4: // corrupt
		w.Header().Set("Content-Encoding", "gzip")
		packed := packedOf(page)
		packed[len(packed)/2] ^= 0x55
		_, _ = w.Write(packed)
		return
	case p.lying && n == 5:
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packedOf(page)[:12])
		return
	case p.lying && n == 6 && strings.HasPrefix(r.URL.Path, "/archive/"), p.lying && r.URL.Path[:3] == "/r/" && int(r.URL.Path[3])%4 == p.clock%4 && !p.unsure():
		http.NotFound(w, r)
		return
	case p.lying && n == 7:
		panic(http.ErrAbortHandler)
	case p.lying && n == 8:
		time.Sleep(time.Millisecond)
	}
	switch {
	case !ok:
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	case p.one(2):
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packedOf(page))
	default:
		fmt.Fprint(w, page)
	}
}

func packedOf(page string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(page))
	_ = z.Close()
	return b.Bytes()
}
