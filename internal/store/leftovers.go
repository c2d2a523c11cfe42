package store

import (
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/replicas"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// leftovers returns the key prefixes of the rows that no collection and no subscription names, except those of running
// loads, by number. They are never named again, because numbers are not reused. Rows that lost their name are kept: a
// check repairs them.
func leftovers(t *txn.Tx, underWay map[uint32]bool) (prefixes [][]byte, err error) {
	named, err := namedIn(t)
	if err != nil {
		return nil, err
	}
	nameless := map[uint32]bool{}
	for prefix, err := range t.Prefixes(len(keys.Source{}.Prefix()), keys.Space(keys.FirstNumber)) {
		if err != nil {
			return nil, err
		}
		id := keys.SourceOf(prefix)
		if named[id] || underWay[id.Number] || underWay[id.Generation] {
			continue
		}
		if _, known := nameless[id.Number]; !known && !named[keys.Own(id.Number)] {
			nameless[id.Number] = false
			if err := records.Nameless(t, id.Number, func(byte, string) error {
				nameless[id.Number] = true
				return nil
			}); err != nil {
				return nil, err
			}
		}
		if !nameless[id.Number] {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes, nil
}

// namedIn returns the sources and logs that something names.
func namedIn(t *txn.Tx) (map[keys.Source]bool, error) {
	named := map[keys.Source]bool{}
	followed, err := sources.All(t)
	if err != nil {
		return nil, err
	}
	for _, s := range followed {
		named[keys.Own(s.Number)] = true
		for _, id := range s.Generations() {
			named[id] = true
		}
		staged, err := replicas.Staged(t, &s)
		if err != nil {
			return nil, err
		}
		if staged != nil {
			named[staged.Log()] = true
		}
	}
	all, err := collections.WithArriving(t)
	for i := range all {
		named[all[i].SourceKey()], named[all[i].Log()] = true, true
	}
	return named, err
}
