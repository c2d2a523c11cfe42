package records

import (
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/tmdm"
)

// If each read is a network round trip, rows that an update will read are prefetched: see [txn.Tx.Expect].

// Along returns s such that another row is read with each topic that is expected: that with the key which key returns.
func (s State) Along(key func(fragment.Ref) []byte) State {
	s.along = key
	return s
}

// topicsAtOnce is the number of topics that are prefetched at a time. Each has several rows.
const topicsAtOnce = 500

// Expect implements [fragment.Expecting]: it prefetches topics with their associations and their counts of mentions.
func (s State) Expect(sis []fragment.Ref, sls []tmdm.Locator) error {
	if !s.tx.Distant() {
		return nil
	}
	// the root shows which other nodes a change needs
	others := append(s.locatorKeys(sls, keys.TableLocator), nodeKey(s.id, nil))
	others = append(others, s.locatorKeys(fragment.LabelProperties, keys.TableTopic, keys.TableIdentifier)...) // of titles
	if s.along != nil {
		for _, si := range sis {
			others = append(others, s.along(si))
		}
	}
	if err := s.expect(sis, others); err != nil {
		return err
	}
	var refs []fragment.Ref // the TopicSIs of topics named by other identifiers
	for table, all := range map[byte][]tmdm.Locator{keys.TableIdentifier: sis, keys.TableLocator: sls} {
		for _, l := range all {
			ref, err := s.tx.Get(s.id.LocatorKey(table, l))
			if err != nil {
				return err
			}
			if ref != nil {
				refs = append(refs, fragment.Ref(ref))
			}
		}
	}
	if err := s.expect(refs, nil); err != nil {
		return err
	}
	return s.expectElsewhere(append(refs, sis...))
}

// ExpectNames prefetches topics by any of their subject identifiers, without their associations, for their names.
func (s State) ExpectNames(sis []fragment.Ref) error {
	if !s.tx.Distant() {
		return nil
	}
	for some := range slices.Chunk(slices.Concat(sis, fragment.LabelProperties), txn.AtOnce) {
		if err := s.tx.Expect(s.locatorKeys(some, keys.TableTopic, keys.TableIdentifier), nil); err != nil {
			return err
		}
	}
	return nil
}

// InParts iterates over all of a sequence in batches that enough completes. It calls expect with each batch before it
// yields its items, to prefetch their data, and yields an error of expect with the first.
func InParts[T any](all iter.Seq2[T, error], enough func(some []T) bool,
	expect func(some []T) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var some []T
		flush := func() (more bool) {
			err := expect(some)
			for _, item := range some {
				if !yield(item, err) || err != nil {
					return false
				}
			}
			clear(some)
			some = some[:0]
			return true
		}
		for item, err := range all {
			if err != nil {
				if flush() {
					yield(item, err)
				}
				return
			}
			if some = append(some, item); enough(some) && !flush() {
				return
			}
		}
		flush()
	}
}

// expectElsewhere prefetches the associations of topics that are stored with other players, using cached rows.
func (s State) expectElsewhere(refs []fragment.Ref) error {
	var all [][]byte
	for _, ref := range refs {
		n := 0
		for r, err := range s.tx.Scan(s.id.PlayingPrefix(ref, fragment.AsPlayer), nil) {
			if err != nil {
				return err
			}
			if elsewhere(r) {
				all = append(all, s.recordKey(r, fragment.AsPlayer))
			}
			if n++; n == txn.FewRows {
				break
			}
		}
	}
	return s.tx.Expect(all, nil)
}

// expect prefetches topics by subject identifiers, and rows with the other keys.
func (s State) expect(sis []fragment.Ref, others [][]byte) error {
	for first := true; first || len(sis) > 0; first = false {
		some := sis[:min(len(sis), topicsAtOnce)]
		sis = sis[len(some):]
		var prefixes [][]byte
		for _, si := range some {
			prefix := s.id.PlayingPrefix(si, 0)
			prefixes = append(prefixes, prefix[:len(prefix)-1])
		}
		all := append(s.locatorKeys(some, keys.TableTopic, keys.TableIdentifier, keys.TableMentions), others...)
		if err := s.tx.Expect(all, prefixes, byte(fragment.AsInstance), byte(fragment.AsPlayer),
			byte(fragment.AsType)); err != nil {
			return err
		}
		others = nil
	}
	return nil
}

// locatorKeys returns the keys of the rows of locators in some tables.
func (s State) locatorKeys(locators []tmdm.Locator, tables ...byte) [][]byte {
	all := make([][]byte, 0, len(locators)*len(tables))
	for _, l := range locators {
		for _, table := range tables {
			all = append(all, s.id.LocatorKey(table, l))
		}
	}
	return all
}
