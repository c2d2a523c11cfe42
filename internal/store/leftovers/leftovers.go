// Package leftovers finds the rows that interrupted loads and deletions have left.
package leftovers

import (
	"encoding/binary"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/replicas"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Rows returns the prefixes of the keys of the rows that no collection and no subscription names, but for those of loads that are under way, by
// their numbers. Nothing ever names one of them: no number is given out again.
func Rows(t *txn.Tx, underWay map[uint32]bool) (prefixes [][]byte, err error) {
	named, err := namedIn(t)
	if err != nil {
		return nil, err
	}
	for owner, err := range t.Owners(keys.SourceTables, 8) {
		if err != nil {
			return nil, err
		}
		if id := keys.SourceOf(owner); !named.sources[id] && !underWay[id.Number] && !underWay[id.Generation] {
			prefixes = append(prefixes, owner)
		}
	}
	for owner, err := range t.Owners(keys.CollectionTables, 4) {
		if err != nil {
			return nil, err
		}
		if number := binary.BigEndian.Uint32(owner[1:]); !named.numbers[number] && !underWay[number] {
			prefixes = append(prefixes, owner)
		}
	}
	return prefixes, nil
}

// named are the sources and the collections that something names.
type named struct {
	sources map[keys.Source]bool
	numbers map[uint32]bool
}

func namedIn(t *txn.Tx) (n named, err error) {
	n = named{map[keys.Source]bool{}, map[uint32]bool{}}
	for s, err := range sources.All(t) {
		if err != nil {
			return n, err
		}
		for _, id := range s.Generations() {
			n.sources[id] = true
		}
		staged, err := replicas.Staged(t, s.Name)
		if err != nil {
			return n, err
		}
		if staged != nil {
			n.numbers[staged.Number] = true
		}
	}
	all, err := collections.All(t)
	for i := range all {
		n.sources[all[i].SourceKey()] = true
		n.numbers[all[i].Number] = true
	}
	return n, err
}
