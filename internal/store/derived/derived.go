// Package derived keeps what the collections that are derived from others still have to take from their inputs: rows that
// a commit of an input writes, so that nothing is lost by a crash, and the cost follows the change.
package derived

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// What the rows of a derived collection are, by the byte behind its number.
const (
	kindDirty       = 'd' // subject identifier → entries of inputs (lines): the topic has to be derived again
	kindWalk        = 'w' // source → the topic before the first one of it that has to be
	kindSettlements = 's' // → what its last update has found out about reifiers (JSON)
	kindMeant       = 'm' // → whom its filter meant in the last update (JSON)
)

func key(number uint32, kind byte) []byte {
	return append(keys.Collection(keys.TableDerived, number), kind)
}

// Of returns the numbers of the collections that are derived from the input with a name.
func Of(t *txn.Tx, input string) (numbers []uint32, err error) {
	_, err = t.GetJSON(keys.Name(keys.TableInput, input), &numbers)
	return numbers, err
}

// Begin lets the inputs know of a collection that is derived from them. All topics of the sources have to be derived.
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
	return nil
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
func Mark(t *txn.Tx, input string, refs func(yield func(ref fragment.Ref, via string))) error {
	numbers, err := Of(t, input)
	if len(numbers) == 0 || err != nil {
		return err
	}
	refs(func(ref fragment.Ref, via string) {
		for _, n := range numbers {
			if err == nil {
				err = mark(t, n, ref, via)
			}
		}
	})
	return err
}

// mostVia is how many entries a topic keeps until it is derived: the last ones.
const mostVia = 10

func mark(t *txn.Tx, number uint32, ref fragment.Ref, via string) error {
	row := append(key(number, kindDirty), ref...)
	before, err := t.Get(row)
	if err != nil {
		return err
	}
	all := lines(before)
	if via != "" && !slices.Contains(all, via) {
		all = append(all, via)
		all = all[max(0, len(all)-mostVia):]
	}
	return t.Put(row, []byte(strings.Join(all, "\n")))
}

func lines(row []byte) []string {
	if len(row) == 0 {
		return nil
	}
	return strings.Split(string(row), "\n")
}

// MarkOf writes that topics of one derived collection have to be derived again.
func MarkOf(t *txn.Tx, number uint32, refs ...fragment.Ref) error {
	for _, ref := range refs {
		if err := mark(t, number, ref, ""); err != nil {
			return err
		}
	}
	return nil
}

// MarkAll writes that all topics of sources have to be derived again in what is derived from an input.
func MarkAll(t *txn.Tx, input string, sources ...keys.Source) error {
	numbers, err := Of(t, input)
	for _, n := range numbers {
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
	return Mark(t, input, func(yield func(fragment.Ref, string)) {
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
	return t.Put(append(key(number, kindWalk), id.Key(0)[1:]...), nil)
}

// Take removes up to n topics that have to be derived again, and returns them, with the entries that have brought this about. more says
// that there are other topics.
func Take(t *txn.Tx, number uint32, n int) (refs []fragment.Ref, via map[fragment.Ref][]string, more bool, err error) {
	via = map[fragment.Ref][]string{}
	prefix := key(number, kindDirty)
	for r, err := range t.Scan(prefix, nil) {
		if err != nil {
			return nil, nil, false, err
		}
		if len(refs) == n {
			return refs, via, true, nil
		}
		ref := fragment.Ref(r.Key[len(prefix):])
		refs = append(refs, ref)
		if all := lines(r.Value); all != nil {
			via[ref] = all
		}
		if err := t.Delete(r.Key); err != nil {
			return nil, nil, false, err
		}
	}
	for r, err := range t.Scan(key(number, kindWalk), nil) {
		if err != nil {
			return nil, nil, false, err
		}
		if len(refs) == n {
			return refs, via, true, nil
		}
		if refs, err = step(t, r, refs, n); err != nil {
			return nil, nil, false, err
		}
		more = len(refs) == n
	}
	return refs, via, more, nil
}

// step adds the next topics of a source that is walked through.
func step(t *txn.Tx, walk kv.Row, refs []fragment.Ref, n int) ([]fragment.Ref, error) {
	topics := append([]byte{keys.TableTopic}, walk.Key[len(key(0, kindWalk)):]...)
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

// Settlements returns what the last update has found out about reifiers: whom it bears on, by what it is.
func Settlements(t *txn.Tx, number uint32) (map[string][]fragment.Ref, error) {
	row, err := t.Get(key(number, kindSettlements))
	if row == nil || err != nil {
		return nil, err
	}
	var all map[string][]fragment.Ref
	return all, json.Unmarshal(row, &all)
}

// PutSettlements keeps them.
func PutSettlements(t *txn.Tx, number uint32, all map[string][]fragment.Ref) error {
	return t.PutJSON(key(number, kindSettlements), all)
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

// Watched are the records of an input. Its changes are noted.
type Watched struct {
	records.State
	Input string
	Via   string // the entry that is applied, "" for none
}

// PutTopic implements [merge.State].
func (w *Watched) PutTopic(topic *fragment.Topic) error {
	return first(w.mark(topic.TopicSI()), func() error { return w.State.PutTopic(topic) })
}

// DeleteTopic implements [merge.State].
func (w *Watched) DeleteTopic(topic *fragment.Topic) error {
	return first(w.mark(topic.TopicSI()), func() error { return w.State.DeleteTopic(topic) })
}

// PutAssociation implements [merge.State].
func (w *Watched) PutAssociation(a *fragment.Association) error {
	return first(w.mark(a.Players()...), func() error { return w.State.PutAssociation(a) })
}

// DeleteAssociation implements [merge.State].
func (w *Watched) DeleteAssociation(a *fragment.Association) error {
	return first(w.mark(a.Players()...), func() error { return w.State.DeleteAssociation(a) })
}

func (w *Watched) mark(refs ...fragment.Ref) error {
	return Mark(w.Tx(), w.Input, func(yield func(fragment.Ref, string)) {
		for _, ref := range refs {
			yield(ref, w.Via)
		}
	})
}

func first(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// MarkChange notes the change of an input that is a collection of this node. via names the entry of the change with an index.
func MarkChange(t *txn.Tx, input string, c *fragment.Change, via func(i int) string) error {
	return Mark(t, input, func(yield func(fragment.Ref, string)) {
		for _, topic := range c.PutTopics {
			yield(topic.TopicSI(), "")
		}
		for _, ref := range c.DeleteTopics {
			yield(ref, "")
		}
		for _, list := range [][]*fragment.Association{c.PutAssociations, c.DeleteAssociations} {
			for _, a := range list {
				for _, p := range a.Players() {
					yield(p, "")
				}
			}
		}
		for i := range c.Entries {
			yield(c.Entries[i].TopicSI, via(i))
		}
	})
}
