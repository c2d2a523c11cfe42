// Package derived keeps what the collections that are derived from others still have to take from their inputs: rows that
// a commit of an input writes, so that nothing is lost by a crash, and the cost follows the change.
package derived

import (
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// What the rows of a derived collection are, by the byte behind its number.
const (
	kindDirty = 'q' // place in the queue → subject identifier: the topic has to be derived again
	kindVia   = 'v' // subject identifier in that queue → an extent, and the entries of inputs that have brought this about (lines)
	kindWalk  = 'w' // source → the topic before the first one of it that has to be
	kindMeant = 'm' // → whom its filter meant in the last update (JSON)
)

// Extent says how much of a topic has to be derived again.
type Extent byte

// The extents. Rows have them.
const (
	All        Extent = 1 // who it is, what it says and what it plays in
	Statements Extent = 2 // its names and occurrences
)

func key(number uint32, kind byte) []byte {
	return append(keys.Own(number).Key(keys.TableDerived), kind)
}

// Of returns the numbers of the collections that are derived from the input with a name.
func Of(t *txn.Tx, input string) (numbers []uint32, err error) {
	_, err = t.GetJSON(keys.Name(keys.TableInput, input), &numbers)
	return numbers, err
}

// Begin lets the inputs know of a collection that is derived from them. All topics of the sources have to be derived, and all that is
// reified has to be read.
func Begin(t *txn.Tx, number uint32, inputs []string, sources []keys.Source) error {
	for _, input := range inputs {
		all, err := Of(t, input)
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
		if err := Walk(t, number, id); err != nil {
			return err
		}
	}
	return unsettle(t, number)
}

// End lets the inputs forget a collection.
func End(t *txn.Tx, number uint32, inputs []string) error {
	for _, input := range inputs {
		all, err := Of(t, input)
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

// Mark writes that topics of an input have to be derived again, where something is derived from it. via names the entry of its log that
// has brought this about, "" for none.
func Mark(t *txn.Tx, input string, extent Extent, refs func(yield func(ref fragment.Ref, via string))) error {
	numbers, err := Of(t, input)
	if len(numbers) == 0 || err != nil {
		return err
	}
	refs(func(ref fragment.Ref, via string) {
		for _, n := range numbers {
			if err == nil {
				err = mark(t, n, ref, extent, via)
			}
		}
	})
	return err
}

// mostVia is how many entries a topic keeps until it is derived: the last ones.
const mostVia = 10

func mark(t *txn.Tx, number uint32, ref fragment.Ref, extent Extent, via string) error {
	row := append(key(number, kindVia), ref...)
	before, err := t.Get(row)
	if err != nil {
		return err
	}
	if before == nil {
		if err := enqueue(t, number, kindDirty, []byte(ref)); err != nil {
			return err
		}
	}
	all := lines(before)
	if via != "" && !slices.Contains(all, via) {
		all = append(all, via)
		all = all[max(0, len(all)-mostVia):]
	}
	if len(before) > 0 {
		extent = min(extent, Extent(before[0]))
	}
	return t.Put(row, append([]byte{byte(extent)}, strings.Join(all, "\n")...))
}

func lines(row []byte) []string {
	if len(row) < 2 {
		return nil
	}
	return strings.Split(string(row[1:]), "\n")
}

// MarkOf writes that topics of one derived collection have to be derived again.
func MarkOf(t *txn.Tx, number uint32, refs ...fragment.Ref) error {
	for _, ref := range refs {
		if err := mark(t, number, ref, All, ""); err != nil {
			return err
		}
	}
	return nil
}

// MarkAll writes that all topics of sources have to be derived again in what is derived from an input.
func MarkAll(t *txn.Tx, input string, sources ...keys.Source) error {
	numbers, err := Of(t, input)
	for _, n := range numbers {
		if err == nil {
			err = unsettle(t, n)
		}
		for _, id := range sources {
			if err == nil {
				err = Walk(t, n, id)
			}
		}
	}
	return err
}

// MarkGone is MarkAll of a source that is about to be removed. Each of its topics has a row of its own, since it cannot be read
// any more when they are derived.
func MarkGone(t *txn.Tx, input string, id keys.Source) error {
	if err := MarkAll(t, input); err != nil {
		return err
	}
	return Mark(t, input, All, func(yield func(fragment.Ref, string)) {
		for r, err := range t.ScanInPlace(id.Key(keys.TableTopic), nil) {
			if err != nil {
				return
			}
			yield(fragment.Ref(r.Key[keys.SourceSize:]), "")
		}
	})
}

// Walk writes that all topics of a source have to be derived again in one derived collection.
func Walk(t *txn.Tx, number uint32, id keys.Source) error {
	return t.Put(append(key(number, kindWalk), id.Prefix()...), nil)
}

// Taken are topics that have to be derived again.
type Taken struct {
	All        []fragment.Ref
	Statements []fragment.Ref            // nothing but their names and occurrences has to be
	Via        map[fragment.Ref][]string // the entries that have brought this about
	More       bool                      // there are others
}

// Take removes up to n topics that have to be derived again, and returns them.
func Take(t *txn.Tx, number uint32, n int) (*Taken, error) {
	rows, more, err := dequeue(t, number, kindDirty, n)
	if err != nil {
		return nil, err
	}
	var vias [][]byte
	for _, row := range rows {
		vias = append(vias, append(key(number, kindVia), row...))
	}
	if err := t.Expect(vias, nil); err != nil {
		return nil, err
	}
	taken := &Taken{Via: map[fragment.Ref][]string{}, More: more}
	for _, row := range rows {
		ref, at := fragment.Ref(row), append(key(number, kindVia), row...)
		noted, err := t.Get(at)
		if err != nil {
			return nil, err
		}
		if len(noted) > 0 && Extent(noted[0]) == Statements {
			taken.Statements = append(taken.Statements, ref)
		} else {
			taken.All = append(taken.All, ref)
		}
		if all := lines(noted); all != nil {
			taken.Via[ref] = all
		}
		if err := t.Delete(at); err != nil {
			return nil, err
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
		if taken.More = len(taken.All) == n; taken.More {
			return taken, nil
		}
		if taken.All, err = step(t, r, taken.All, n); err != nil {
			return nil, err
		}
		taken.More = len(taken.All) == n
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

// PutMeant keeps whom the filter of a derived collection means. It reports whether these are others than before.
func PutMeant(t *txn.Tx, number uint32, all [][]fragment.Ref) (differ bool, err error) {
	var before [][]fragment.Ref
	known, err := t.GetJSON(key(number, kindMeant), &before)
	if err != nil || known && slices.EqualFunc(before, all, slices.Equal) {
		return false, err
	}
	return true, t.PutJSON(key(number, kindMeant), all)
}
