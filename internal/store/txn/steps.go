package txn

import (
	"maps"
	"sync"

	"github.com/tmshare/tmshare/internal/kv"
)

const mostSteps = 256 // that are remembered

// steps are the last commits of this process.
type steps struct {
	mu       sync.Mutex
	last     []step     // the newest last
	from, to kv.Version // of the last answer
	spaces   map[uint32]bool
}

type step struct {
	id     uint64          // by which that of the version has grown
	spaces map[uint32]bool // in which rows have changed
}

func (s *steps) add(one step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last[max(0, len(s.last)-mostSteps):], one)
}

// Changed returns the keyspaces with rows that may differ between two states. It returns nil if that is not known, as
// others have committed between them, the second is the earlier one, or there were too many commits.
func (db *DB) Changed(from, to kv.Version) (spaces map[uint32]bool) {
	s := &db.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spaces != nil && s.from == from && s.to == to {
		return s.spaces
	}
	n := int(to.Number - from.Number)
	for end := len(s.last); n >= 0 && n <= end; end-- {
		between, id := s.last[end-n:end], from.ID
		for i := range between {
			id += between[i].id
		}
		if id != to.ID {
			continue
		}
		s.from, s.to, s.spaces = from, to, map[uint32]bool{}
		for i := range between {
			maps.Copy(s.spaces, between[i].spaces)
		}
		return s.spaces
	}
	return nil
}
