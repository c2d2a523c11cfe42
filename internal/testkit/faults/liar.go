package faults

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Liar stands between a reader and a server, and lies now and then: in one answer of so many. It does
// whatever a bad network, cache, proxy or server might do, but for what no reader could notice:
// it changes no document into another one that is well-formed, and it answers a request with what
// belongs to another address only where this is a document of another kind. So bits are flipped in
// packed bodies only.
type Liar struct {
	Spare func(r *http.Request, sign Sign) bool // lies that a reader could not tell from the truth; may be nil
	Feed  func(r *http.Request) bool            // tells requests for documents with entries
	mu    sync.Mutex
	every int                  // one answer in so many is a lie
	lies  map[string]int       // lies, by name
	rng   *rand.Rand           // guarded by mu
	old   map[string][]earlier // by URL: what the server has answered, the oldest first
	log   []string             // of lies
}

// earlier is an answer that the server has given.
type earlier struct {
	header http.Header
	body   []byte
}

// truth is what there is to lie about.
type truth struct {
	now    earlier
	status int
	before []earlier // what the same address had before, the oldest first
	real   http.Handler
}

// NewLiar returns a liar that decides by a seed.
func NewLiar(seed uint64, feed func(*http.Request) bool) *Liar {
	return &Liar{every: 4, Feed: feed, rng: rand.New(rand.NewPCG(seed, 2)), old: map[string][]earlier{},
		lies: map[string]int{}}
}

func (l *Liar) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(n)
}

// Answer is the fault of a server.
func (l *Liar) Answer(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
	if base, n, endless := strings.Cut(r.URL.Path, endlessPart); endless {
		l.more(w, r, real, base, n)
		return true
	}
	t := l.remember(r, real)
	l.mu.Lock()
	every := l.every
	l.mu.Unlock()
	if l.draw(every) > 0 {
		return false
	}
	for range 100 { // there may be none that would be told from the truth
		lie := &Lies[l.draw(len(Lies))]
		if lie.slow && l.draw(20) > 0 || lie.ofFeeds && !l.Feed(r) || l.Spare != nil && l.Spare(r, lie.Sign) {
			continue
		}
		l.mu.Lock()
		l.lies[lie.Name]++
		l.log = append(l.log, lie.Name+" "+r.URL.Path)
		l.mu.Unlock()
		lie.tell(l, w, r, t)
		return true
	}
	return false
}

// remember returns what the server answers to the request, without conditions, and
// what it has answered before.
func (l *Liar) remember(r *http.Request, real http.Handler) truth {
	answer, body := Record(real, unconditional(r))
	t := truth{earlier{answer.Header(), body}, answer.Code, nil, real}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.old[r.URL.Path]
	t.before = slices.Clone(before)
	if answer.Code == http.StatusOK && (len(before) == 0 || !bytes.Equal(before[len(before)-1].body, body)) {
		if before = append(before, t.now); len(before) > 4 {
			before = before[1:]
		}
		l.old[r.URL.Path] = before
	}
	return t
}

// Lie makes one answer in so many a lie.
func (l *Liar) Lie(every int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.every = every
}

// Count adds the lies that were told to a count, by their names.
func (l *Liar) Count(lies map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for lie, n := range l.lies {
		lies[lie] += n
	}
}

// Forget makes the liar answer with nothing that it has heard so far.
func (l *Liar) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.old)
}

// Log returns the lies since it was called last.
func (l *Liar) Log() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.log
	l.log = nil
	return all
}

// Untold returns the lies that are not in a count, but for slow ones.
func Untold(lies map[string]int) (all []string) {
	for _, lie := range Lies {
		if !lie.slow && lies[lie.Name] == 0 {
			all = append(all, lie.Name)
		}
	}
	return all
}
