package faults

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Liar is a faulty proxy between a reader and a server: one in so many answers is a lie. It simulates all faults of a
// network, cache, proxy or server, except those that no reader could notice: it replaces no document by another
// well-formed one, and answers with the document of another address only if that is of another kind. So it flips bits
// only in packed bodies.
type Liar struct {
	Spare func(r *http.Request, sign Sign) bool // lies that a reader cannot detect; may be nil
	Feed  func(r *http.Request) bool            // reports requests for documents with entries
	mu    sync.Mutex
	every int                  // one answer in so many is a lie
	lies  map[string]int       // lies, by name
	rng   *rand.Rand           // guarded by mu
	old   map[string][]earlier // answers of the server by URL, the oldest first
	log   []string             // of lies
}

// earlier is an answer that the server has given.
type earlier struct {
	header http.Header
	body   []byte
}

// truth is the server's answer to a request.
type truth struct {
	now    earlier
	status int
	before []earlier // previous answers of the same address, the oldest first
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
	for range 100 { // there may be no detectable one
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

// remember returns the server's answer to the request, without conditions, and its previous answers.
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

// Count adds the number of each lie to a map, by name.
func (l *Liar) Count(lies map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for lie, n := range l.lies {
		lies[lie] += n
	}
}

// Forget removes all previous answers.
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
