package pg

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/tmshare/tmshare/internal/kv"
)

// parts is the number of rows of which the version is the sum. Commits of the same one wait for each other.
const parts = 64

// counts are the numbers of commits that a state has, by part.
type counts [parts]uint64

// countsColumn has the counts as text: pairs of a part and its number.
const countsColumn = "coalesce(string_agg(part || ' ' || commits, ' '), '')"

// since returns the places of the commits that a state has more than an earlier one. ok is false if there are too many,
// or the other one is not earlier.
func (c *counts) since(before *counts) (places []kv.Place, ok bool) {
	for part := range c {
		if c[part] < before[part] || c[part]-before[part] > uint64(kv.MostRecent-len(places)) {
			return nil, false
		}
		for n := before[part] + 1; n <= c[part]; n++ {
			places = append(places, kv.Place{Part: part, Number: n})
		}
	}
	return places, true
}

// recent remembers the last commits of all processes, and the counts of the last states.
type recent struct {
	kv.Recent
	mu     sync.Mutex
	states map[kv.Version]*counts // without eras
	order  []kv.Version           // of the states, the oldest first
	begun  bool
	known  counts // if begun: up to which commits were read
}

// saw notes the counts of a state, given as text.
func (r *recent) saw(v kv.Version, text string) (*counts, error) {
	v.Era = 0
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.states[v]; c != nil {
		return c, nil
	}
	c := new(counts)
	for fields := strings.Fields(text); len(fields) > 1; fields = fields[2:] {
		var part uint8
		var n uint64
		if _, err := fmt.Sscan(fields[0]+" "+fields[1], &part, &n); err != nil || part >= parts {
			return nil, fmt.Errorf("the rows of tm_versions are %q", text)
		}
		c[part] = n
	}
	if r.states == nil {
		r.states = map[kv.Version]*counts{}
	}
	r.states[v] = c
	if r.order = append(r.order, v); len(r.order) > kv.MostRecent {
		delete(r.states, r.order[0])
		r.order = r.order[1:]
	}
	return c, nil
}

// unread returns the places of the commits up to a state that were not read; none if there are too many.
func (r *recent) unread(c *counts) []kv.Place {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun {
		r.begun, r.known = true, *c
	}
	last := r.known.with(c)
	places, ok := last.since(&r.known)
	if !ok {
		r.known = last
	}
	return places
}

// with returns the larger ones of the counts: own commits are known before they show in a state.
func (c counts) with(others *counts) counts {
	for part := range c {
		c[part] = max(c[part], others[part])
	}
	return c
}

// reached notes that the commits up to a state were read, as far as they are there: old ones were removed.
func (r *recent) reached(c *counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = r.known.with(c)
}

// made notes a commit of this process.
func (r *recent) made(at kv.Place, c kv.Commit) {
	r.Add(at, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.Number == r.known[at.Part]+1 {
		r.known[at.Part]++
	}
}

// Changed implements [kv.Engine].
func (e *Engine) Changed(from, to kv.Version) map[uint32]bool {
	r := &e.recent
	from.Era, to.Era = 0, 0
	r.mu.Lock()
	defer r.mu.Unlock()
	before, after := r.states[from], r.states[to]
	if before == nil || after == nil {
		return nil
	}
	places, ok := after.since(before)
	if !ok {
		return nil
	}
	spaces, known := r.Recent.Changed(from, to, places)
	if known && spaces == nil { // the database was restored between them
		r.begun = false
	}
	return spaces
}

// readRecent notes a state with its counts, given as text, and reads the commits up to it that were not read before.
func (e *Engine) readRecent(ctx context.Context, q querier, v kv.Version, text string) error {
	c, err := e.recent.saw(v, text)
	if err != nil {
		return err
	}
	var part, number []int64
	for _, p := range e.recent.unread(c) {
		part, number = append(part, int64(p.Part)), append(number, int64(p.Number))
	}
	if len(part) == 0 {
		return nil
	}
	rows, err := q.Query(ctx, `SELECT part, number, id, spaces FROM tm_commits
		JOIN unnest($1::bigint[], $2::bigint[]) AS n (part, number) USING (part, number)`, part, number)
	if err != nil {
		return err
	}
	var at kv.Place
	var id int64
	var spaces []int64
	_, err = pgx.ForEachRow(rows, []any{&at.Part, &at.Number, &id, &spaces}, func() error {
		one := kv.Commit{ID: uint64(id), Spaces: map[uint32]bool{}}
		for _, space := range spaces {
			one.Spaces[uint32(space)] = true
		}
		e.recent.Add(at, one)
		return nil
	})
	if err == nil {
		e.recent.reached(c)
	}
	return err
}
