// Package derived stores the positions up to which derived collections have read the changes of their inputs (package
// past). They are in rows of the collection, and move in its commits: so a crash loses nothing, the cost is
// proportional to the change, and commits of inputs write nothing for derived collections.
package derived

import (
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// The kinds of rows of a derived collection: the byte after its number.
const (
	kindRead  = 'p' // number of an input → [read] (JSON)
	kindDirty = 'q' // place in the queue → subject identifier: the topic has to be derived again
	kindWalk  = 'w' // source → the topic before the first one of it that has to be
	kindMeant = 'm' // → the topics that its filter meant in the last update (JSON)
)

// Extent is the part of a topic that must be derived again.
type Extent byte

// The extents.
const (
	All        Extent = 1 // its identity, its statements and its associations
	Statements Extent = 2 // its names and occurrences
)

func key(number uint32, kind byte) []byte {
	return append(keys.Own(number).Key(keys.TableDerived), kind)
}

// DerivedFrom returns the numbers of the collections that are derived from the input with a name.
func DerivedFrom(t *txn.Tx, input string) (numbers []uint32, err error) {
	_, err = t.GetJSON(keys.Name(keys.TableInput, input), &numbers)
	return numbers, err
}

// Begin registers a derived collection with its inputs, whose changes are kept from now on. It requests that all their
// statements are read.
func Begin(t *txn.Tx, number uint32, inputs []string, sources []keys.Source) error {
	for _, input := range inputs {
		all, err := DerivedFrom(t, input)
		if err != nil {
			return err
		}
		if !slices.Contains(all, number) {
			all = append(all, number)
		}
		if err := t.PutJSON(keys.Name(keys.TableInput, input), all); err != nil {
			return err
		}
	}
	for _, id := range sources {
		if err := t.Delete(readKey(number, id.Number)); err != nil {
			return err
		}
	}
	return nil
}

// End lets the inputs forget a collection.
func End(t *txn.Tx, number uint32, inputs []string) error {
	for _, input := range inputs {
		all, err := DerivedFrom(t, input)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(n uint32) bool { return n == number })
		name := keys.Name(keys.TableInput, input)
		if len(all) == 0 {
			err = t.Delete(name)
		} else {
			err = t.PutJSON(name, all)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// MarkOf writes that topics of one derived collection have to be derived again.
func MarkOf(t *txn.Tx, number uint32, refs ...fragment.Ref) error {
	for _, ref := range refs {
		if err := enqueue(t, number, kindDirty, []byte(ref)); err != nil {
			return err
		}
	}
	return nil
}

// Walk writes that all topics of a source have to be derived again in one derived collection.
func Walk(t *txn.Tx, number uint32, id keys.Source) error {
	return t.Put(append(key(number, kindWalk), id.Prefix()...), nil)
}

// Taken are topics that have to be derived again.
type Taken struct {
	All        []fragment.Ref
	Statements []fragment.Ref            // topics of which only names and occurrences must be derived
	Via        map[fragment.Ref][]string // the entries that have brought this about
	More       bool                      // there are further ones
}

// Take takes about n topics of a collection that must be derived again: from its own queue, from changes of the inputs
// since the last read, and from inputs to be read as a whole. own is the collection itself.
func Take(t *txn.Tx, own keys.Source, inputs []Input, n int) (*Taken, error) {
	number := own.Number
	if err := begin(t, own, inputs); err != nil {
		return nil, err
	}
	rows, more, err := dequeue(t, number, kindDirty, n)
	if err != nil {
		return nil, err
	}
	w := &news{t: t, own: own, extents: map[fragment.Ref]Extent{}, via: map[fragment.Ref][]string{}}
	for _, row := range rows {
		w.add(fragment.Ref(row), All)
	}
	for i := range inputs {
		further, err := w.read(&inputs[i], n)
		if err != nil {
			return nil, err
		}
		more = more || further
	}
	taken := &Taken{Via: w.via, More: more}
	for _, ref := range slices.Sorted(maps.Keys(w.extents)) {
		if w.extents[ref] == Statements {
			taken.Statements = append(taken.Statements, ref)
		} else {
			taken.All = append(taken.All, ref)
		}
	}
	if more {
		return taken, nil
	}
	n -= len(taken.Statements)
	for r, err := range t.Scan(key(number, kindWalk), nil) {
		if err != nil {
			return nil, err
		}
		if taken.More = len(taken.All) >= n; taken.More {
			return taken, nil
		}
		if taken.All, err = step(t, r, taken.All, n); err != nil {
			return nil, err
		}
		taken.More = len(taken.All) >= n
	}
	return taken, nil
}

// step adds the next topics of a source that is walked through.
func step(t *txn.Tx, walk kv.Row, refs []fragment.Ref, n int) ([]fragment.Ref, error) {
	topics := keys.SourceOf(walk.Key[len(key(0, kindWalk)):]).Key(keys.TableTopic)
	var from []byte
	if len(walk.Value) > 0 {
		from = append(slices.Clone(topics), append(slices.Clone(walk.Value), 0)...)
	}
	for r, err := range t.ScanInPlace(topics, from) {
		if err != nil {
			return nil, err
		}
		if len(refs) == n {
			return refs, t.Put(walk.Key, []byte(refs[n-1]))
		}
		refs = append(refs, fragment.Ref(r.Key[keys.SourceSize:]))
	}
	return refs, t.Delete(walk.Key)
}

// PutMeant keeps the topics that the filter of a derived collection means. It reports whether they differ from those
// before.
func PutMeant(t *txn.Tx, number uint32, all [][]fragment.Ref) (differ bool, err error) {
	var before [][]fragment.Ref
	known, err := t.GetJSON(key(number, kindMeant), &before)
	if err != nil || known && slices.EqualFunc(before, all, slices.Equal) {
		return false, err
	}
	return true, t.PutJSON(key(number, kindMeant), all)
}
