package pages

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/words"
)

// standings cache results computed from all associations of maps: the number of instances of each class, and the topics
// at the top of each hierarchy. Because the time to compute them is proportional to the size of the map, they are
// computed once and then updated by the rows that differ in a later state. Those of large maps are stored in rows, too,
// which are used after a start until the results are computed again. standings is safe for concurrent use.
type standings struct {
	mu     sync.Mutex
	kept   map[standingOf]*standing
	topics int // in all of them
}

// standingOf identifies a standing and the records that it is computed from.
type standingOf struct {
	source keys.Source
	what   string
}

// standing is a result computed from the associations of one state.
type standing struct {
	mu sync.Mutex
	found
	before   found // the result of the previous state, which some requests still read
	restored bool  // it was read from a row

	below map[fragment.Ref][]fragment.Ref // of a hierarchy: the topics below some of those that pages have shown
}

// found is a result and its state.
type found struct {
	state
	Known   bool            // steps can update it
	Classes []records.Class // sorted. It is shared, and must not be changed
}

// state identifies a state of a map.
type state struct {
	At      past.Cursor // position after all changes
	Head    uint64      // the last entry, with the time and the run of it
	Updated time.Time
	Run     uint32
}

func (s *state) equal(o *state) bool {
	return s.At == o.At && s.Head == o.Head && s.Run == o.Run && s.Updated.Equal(o.Updated)
}

// ofClasses is the standing of the classes of a map.
const ofClasses = "classes"

// The limits of the cache.
const (
	mostStandings = 1_000
	mostStanding  = 400_000 // topics in all of them
	mostSteps     = 5_000   // rows that have changed: to look at all is quicker than at more
	mostStored    = 5_000   // topics in a row
)

// step is a row of an association that was added or removed between two states.
type step struct {
	key    []byte
	player fragment.Ref
	part   fragment.Part
	comes  bool
	in     records.State // the one of the states in which it is there
}

func (s *step) association() (*fragment.Association, error) {
	found, err := s.in.RecordAt(s.key)
	return found.Association, err
}

// now returns the state of the view.
func (d *describer) now() (*state, error) {
	if d.state == nil {
		head, err := past.Head(d.v.Tx().Reader(), d.v.SourceKey(), d.v.Remembered)
		if err != nil {
			return nil, err
		}
		d.state = &state{head, d.v.Head, d.v.Updated, d.v.Run}
	}
	return d.state, nil
}

// standing returns a result for a map: that of an earlier state, updated by steps if they suffice; else that of whole,
// which reports whether steps can update it later.
func (d *describer) standing(what string, whole func() (all []records.Class, keep bool, err error),
	steps func(s *standing, steps []step) (now []records.Class, ok bool, err error)) ([]records.Class, error) {
	at, err := d.now()
	if err != nil {
		return nil, err
	}
	s, now := d.standings.standing(standingOf{d.v.SourceKey(), what}), found{state: *at}
	if d.anew != nil { // no request waits for it
		if now.Classes, now.Known, err = whole(); err != nil {
			return nil, err
		}
		d.anew[what] = now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before.Known && s.before.equal(at) {
		return s.before.Classes, nil
	}
	if d.anew != nil && s.Known && s.Head > now.Head && !s.restored {
		return now.Classes, nil
	}
	if d.anew == nil && !s.Known && d.v.Topics >= fewTopicsOfMap {
		if err := s.restore(d.v, what); err != nil {
			return nil, err
		}
	}
	ok := d.anew != nil
	if !ok {
		changed, few, failed := s.steps(d.v, at)
		if err = failed; few && err == nil {
			now.Classes, ok, err = steps(s, changed)
			now.Known = ok
		}
	}
	if !ok || d.anew != nil {
		d.standings.forget(s, slices.Collect(maps.Keys(s.below))...)
		s.restored = false
	}
	if !ok && err == nil {
		now.Classes, now.Known, err = whole()
	}
	if err != nil {
		return nil, err
	}
	d.standings.changes(len(now.Classes) - len(s.Classes))
	if !s.equal(at) {
		s.before = s.found
	}
	s.found = now
	return now.Classes, nil
}

// rowOf returns the key of the row with a standing.
func rowOf(v *store.View, what string) []byte {
	return append(v.Extension("pages"), web.Digest([]byte(what))...)
}

// restore reads the result from its row, if there is one.
func (s *standing) restore(v *store.View, what string) error {
	row, err := v.Tx().Get(rowOf(v, what))
	if row == nil || err != nil {
		return err
	}
	var stored found
	if json.Unmarshal(row, &stored) == nil { // else another program has written it
		s.found, s.restored = stored, true
	}
	return nil
}

// belowOf calls f with the cache of the topics below others, if it is of the given state and not in use.
func (s *standing) belowOf(at *state, f func(map[fragment.Ref][]fragment.Ref)) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if s.equal(at) {
		if s.below == nil {
			s.below = map[fragment.Ref][]fragment.Ref{}
		}
		f(s.below)
	}
}

// forget drops the cached topics below some topics.
func (s *standings) forget(one *standing, refs ...fragment.Ref) {
	for _, ref := range refs {
		if below, known := one.below[ref]; known {
			s.changes(-1 - len(below))
			delete(one.below, ref)
		}
	}
}

// standing returns one of the standings. If there are too many, it drops all others first.
func (s *standings) standing(id standingOf) *standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[id] == nil && len(s.kept) >= mostStandings || s.topics > mostStanding {
		s.kept, s.topics = nil, 0
	}
	if s.kept == nil {
		s.kept = map[standingOf]*standing{}
	}
	if s.kept[id] == nil {
		s.kept[id] = &standing{}
	}
	return s.kept[id]
}

// follow reports whether to compute the standings of a large map in the background: none are known, or many entries
// were added since. They may fill half of the cache only.
func (s *standings) follow(c *store.Collection) bool {
	if c.Topics < fewTopicsOfMap || c.Topics > hierarchicalUpTo {
		return false
	}
	s.mu.Lock()
	one, free := s.kept[standingOf{c.SourceKey(), ofClasses}], len(s.kept) < mostStandings/2 && s.topics < mostStanding/2
	s.mu.Unlock()
	if one == nil {
		return free
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.restored || c.Head < one.Head || c.Head-one.Head > mostSteps/5
}

// keepUp computes the standings of a map in the background, so that its first reader need not wait. It stores them for
// the next process.
func (p *Pages) keepUp(ctx context.Context, name string, _ bool) error {
	l, err := p.Store.Latest(ctx, name)
	if err != nil || !p.standings.follow(&l.Collection) {
		return err
	}
	var all map[string]found
	if err := p.Store.View(ctx, name, func(v *store.View) (err error) {
		all, err = p.find(v)
		return err
	}); err != nil || p.Store.MayWrite() != nil {
		return err
	}
	return p.Store.Extend(ctx, name, func(v *store.View) error {
		for what, one := range all {
			row, err := json.Marshal(one)
			if !one.Known || len(one.Classes) > mostStored {
				err = v.Tx().Delete(rowOf(v, what))
			} else if err == nil {
				err = v.Tx().Put(rowOf(v, what), row)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// find computes the standings of a map again.
func (p *Pages) find(v *store.View) (map[string]found, error) {
	d := &describer{Pages: p, v: v, anew: map[string]found{}}
	types, err := d.types(true)
	if err == nil {
		_, err = types.roots()
	}
	if err == nil {
		_, err = d.licences()
	}
	if err != nil {
		return nil, err
	}
	orderings, err := d.orderings()
	for i := range orderings {
		if _, failed := (&hierarchy{d: d, by: orderings[i]}).roots(); failed != nil {
			return nil, failed
		}
	}
	return d.anew, err
}

// changes updates the count of cached topics.
func (s *standings) changes(topics int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics += topics
}

// goesOn reports whether a state follows the known one, and the store has all changes between them.
func (s *standing) goesOn(v *store.View, at *state) (bool, error) {
	if !s.Known || !s.At.GoesOn(max(v.Horizon, v.Remembered), at.At) || v.Head < s.Head {
		return false, nil
	}
	if v.Head == s.Head {
		return v.Run == s.Run && v.Updated.Equal(s.Updated), nil
	}
	e, err := v.Entry(s.Head)
	if errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && e.Run == s.Run && e.Updated.Equal(s.Updated), err
}

// steps returns the changes since the known state. few is false if there are too many, or they are not stored. A commit
// with the number of the previous one cannot be distinguished from it.
func (s *standing) steps(v *store.View, at *state) (all []step, few bool, err error) {
	if few, err = s.goesOn(v, at); !few || s.At == at.At {
		return nil, few, err
	}
	seen := map[string]bool{}
	for p, err := range past.Parts(v.Tx().Reader(), v.SourceKey(), s.At.Position) {
		if err != nil || p.Commit == s.At.Commit {
			return nil, false, err
		}
		for _, key := range p.Keys {
			if _, _, ok := records.Playing(key); ok {
				seen[string(key)] = true
			}
		}
		if len(seen) > mostSteps {
			return nil, false, nil
		}
	}
	now := v.State()
	then := records.In(txn.Over(v.Context(), past.AsOf(v.Tx().Reader(), v.SourceKey(), s.At.Commit)), v.SourceKey())
	rows := make([][]byte, 0, len(seen))
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		rows = append(rows, []byte(key))
	}
	for _, state := range []records.State{then, now} {
		if err := state.Tx().Expect(rows, nil); err != nil {
			return nil, false, err
		}
	}
	for _, key := range rows {
		was, err := then.Tx().Get(key)
		if err != nil {
			return nil, false, err
		}
		is, err := now.Tx().Get(key)
		if err != nil {
			return nil, false, err
		}
		if (was == nil) == (is == nil) {
			continue // its roles and players are in its key
		}
		one := step{key: key, comes: is != nil, in: now}
		if one.player, one.part, _ = records.Playing(key); !one.comes {
			one.in = then
		}
		all = append(all, one)
	}
	return all, true, nil
}

// withClasses returns classes of which some are changed: those with less than no instances are not among them.
func withClasses(all []records.Class, changed map[fragment.Ref]int) []records.Class {
	all = slices.Clone(all)
	for ref, n := range changed {
		at, there := find(all, ref)
		switch {
		case there && n < 0:
			all = slices.Delete(all, at, at+1)
		case there:
			all[at].Instances = n
		case n >= 0:
			all = slices.Insert(all, at, records.Class{TopicSI: ref, Instances: n})
		}
	}
	return all
}

func find(all []records.Class, ref fragment.Ref) (at int, there bool) {
	return slices.BinarySearchFunc(all, ref, func(c records.Class, ref fragment.Ref) int {
		return cmp.Compare(c.TopicSI, ref)
	})
}

// classes returns the classes of a map with the number of instances of each.
func (d *describer) classes() ([]records.Class, error) {
	return d.standing(ofClasses, func() (all []records.Class, keep bool, err error) {
		for c, err := range d.v.State().Classes() {
			if err != nil {
				return nil, false, err
			}
			all = append(all, c)
		}
		return all, true, nil
	}, func(s *standing, steps []step) ([]records.Class, bool, error) {
		all, changed := s.Classes, map[fragment.Ref]int{}
		for _, s := range steps {
			if s.part != fragment.AsType {
				continue
			}
			n, known := changed[s.player]
			if at, there := find(all, s.player); !known && there {
				n = all[at].Instances
			}
			if n--; s.comes {
				n += 2
			}
			changed[s.player] = n
		}
		for ref, n := range changed {
			if n == 0 {
				changed[ref] = -1
			}
		}
		return withClasses(all, changed), true, nil
	})
}

// roots returns the topics at the top of a hierarchy.
func (h *hierarchy) roots() ([]fragment.Ref, error) {
	what := fmt.Sprint(h.by, h.classes)
	all, err := h.d.standing(what, h.allRoots, h.rootsAfter)
	h.kept = h.d.standings.standing(standingOf{h.d.v.SourceKey(), what})
	roots := make([]fragment.Ref, len(all))
	for i := range all {
		roots[i] = all[i].TopicSI
	}
	return roots, err
}

// rootsAfter updates the topics at the top by some steps. ok is false if a topic may be below a cycle, because its
// topmost topic then depends on all associations.
func (h *hierarchy) rootsAfter(s *standing, steps []step) (roots []records.Class, ok bool, err error) {
	all := s.Classes
	changed, err := h.changed(s, steps)
	if err != nil || len(changed) == 0 {
		return all, true, err
	}
	above, below := map[fragment.Ref][]fragment.Ref{}, map[fragment.Ref][]fragment.Ref{}
	var reached []fragment.Ref
	for todo := slices.Collect(maps.Keys(changed)); len(todo) > 0; {
		ref := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, seen := above[ref]; seen {
			continue
		}
		above[ref] = nil
		if _, isTop := find(all, ref); !isTop || changed[ref] {
			if above[ref], _, err = h.d.beyond(&h.by, ref, math.MaxInt); err != nil {
				return nil, false, err
			}
		}
		for _, one := range above[ref] {
			below[one] = append(below[one], ref)
		}
		if todo = append(todo, above[ref]...); len(above[ref]) == 0 {
			reached = append(reached, ref)
		}
	}
	tops, seen := map[fragment.Ref]int{}, map[fragment.Ref]bool{}
	for ref := range changed {
		if tops[ref] = -1; len(above[ref]) == 0 {
			belongs, err := h.belongs(ref)
			if err != nil {
				return nil, false, err
			}
			if belongs {
				tops[ref] = 0
			}
		}
	}
	for len(reached) > 0 {
		ref := reached[len(reached)-1]
		if reached = reached[:len(reached)-1]; !seen[ref] {
			seen[ref] = true
			reached = append(reached, below[ref]...)
		}
	}
	return withClasses(all, tops), len(seen) == len(above), nil
}

// changed returns the topics whose membership in the hierarchy the steps may have changed; true for those whose broader
// topics they changed. It drops the cached topics below the broader ones.
func (h *hierarchy) changed(s *standing, steps []step) (map[fragment.Ref]bool, error) {
	all := map[fragment.Ref]bool{}
	note := func(ref fragment.Ref, moves bool) { all[ref] = all[ref] || moves }
	for _, one := range steps {
		if one.part == fragment.AsType && h.instances != nil {
			note(one.player, false)
		}
		if one.part == fragment.AsType || one.part == fragment.AsInstance && len(h.classes) == 0 {
			continue
		}
		a, err := one.association()
		if err != nil {
			return nil, err
		}
		if class, instance, ok := a.TypeInstance(); ok && slices.Contains(h.classes, class) {
			note(instance, false)
		}
		if top := h.by.top(a); top != "" {
			note(top, false)
		} else if above, below, ok := h.by.pair(a); ok {
			h.d.standings.forget(s, above)
			note(above, false)
			note(below, true)
		}
	}
	return all, nil
}

// belongs reports whether a topic is in the hierarchy.
func (h *hierarchy) belongs(ref fragment.Ref) (bool, error) {
	if words.IsOpaque(string(ref)) {
		return false, nil
	}
	_, isType := h.instances[ref]
	if isType || h.isClass[ref] {
		return true, nil
	}
	for a, err := range h.d.v.State().AssociationsOfTypes(ref, math.MaxInt, h.by.refs()...) {
		if err != nil {
			return false, err
		}
		if _, _, ok := h.by.pair(a); ok || h.by.top(a) == ref {
			return true, nil
		}
	}
	return false, nil
}
