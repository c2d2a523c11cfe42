package kv

import (
	"maps"
	"sync"
)

// MostRecent is the number of commits between two states up to which [Engine.Changed] can know them.
const MostRecent = 256

// Recent remembers the last commits to an engine. The zero value remembers none. It is safe for concurrent use.
type Recent struct {
	mu      sync.Mutex
	commits map[Place]Commit
}

// Place identifies a commit: its number among those that the engine counts together.
type Place struct {
	Part   int
	Number uint64
}

// Commit is what is remembered of a commit.
type Commit struct {
	ID     uint64          // by which that of the version has grown, modulo 2^64
	Spaces map[uint32]bool // the keyspaces in which rows have changed
}

// Add adds a commit. It replaces one whose state was lost.
func (r *Recent) Add(at Place, c Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.commits == nil {
		r.commits = map[Place]Commit{}
	}
	r.commits[at] = c
	delete(r.commits, Place{at.Part, at.Number - MostRecent})
}

// Changed is [Engine.Changed] if the commits between two states have these places. known reports whether all of them
// are remembered.
func (r *Recent) Changed(from, to Version, places []Place) (spaces map[uint32]bool, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spaces = map[uint32]bool{}
	for _, at := range places {
		c, ok := r.commits[at]
		if !ok {
			return nil, false
		}
		from.ID += c.ID
		maps.Copy(spaces, c.Spaces)
	}
	if from.ID != to.ID {
		return nil, true
	}
	return spaces, true
}

// ChangedInOrder is [Engine.Changed] if the number of each commit is that of the version after it.
func (r *Recent) ChangedInOrder(from, to Version) (spaces map[uint32]bool) {
	if from.Number > to.Number || to.Number-from.Number > MostRecent {
		return nil
	}
	var places []Place
	for number := from.Number + 1; number <= to.Number; number++ {
		places = append(places, Place{0, number})
	}
	spaces, _ = r.Changed(from, to, places)
	return spaces
}
