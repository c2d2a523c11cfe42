package derived

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Input is a source from which a collection is derived.
type Input struct {
	ID    keys.Source
	Since uint64 // the commit from which on it is remembered what the records were
	// Silent says that the source is derived itself by now. What it says does not count; what it has changed before is
	// read.
	Silent bool
	// it is another one where all that the source says has to be read once more, for other reasons than its commits
	Anew uint64

	// Via calls f with topics that commits have changed, and the entries by which they have: those with a number behind
	// after, up to upTo.
	Via func(after, upTo uint64, f func(topic fragment.Ref, via string)) error
}

// read says how far an input is read.
type read struct {
	past.Cursor
	Anew uint64 `json:",omitempty"`
	// Via is the number of the last commit that is read to its end, as far as is known.
	Via uint64
}

func readKey(number, input uint32) []byte {
	return binary.BigEndian.AppendUint32(key(number, kindRead), input)
}

// Oldest returns the number of the last commit of a source that all have read who are derived from it, of what is
// remembered of them.
func Oldest(t *txn.Tx, numbers []uint32, id keys.Source) (commit uint64, err error) {
	first := true
	for _, n := range numbers {
		var r read
		ok, err := t.GetJSON(readKey(n, id.Number), &r)
		if err != nil {
			return 0, err
		}
		if !ok || r.Generation != id.Generation {
			continue // it begins anew
		}
		if first || r.Commit < commit {
			commit, first = r.Commit, false
		}
	}
	return commit, nil
}

// begin finds out which inputs are not those that were read, or have forgotten what they have changed since. All that
// these say is read, and all that the collection says is derived again, as nobody knows what they do not say any more.
func begin(t *txn.Tx, own keys.Source, inputs []Input) error {
	number := own.Number
	before := map[uint32]read{}
	for r, err := range t.Scan(key(number, kindRead), nil) {
		var is read
		if err == nil {
			err = txn.Decode(r, &is)
		}
		if err != nil {
			return err
		}
		before[binary.BigEndian.Uint32(r.Key[len(r.Key)-4:])] = is
	}
	for i := range inputs {
		in := &inputs[i]
		r, known := before[in.ID.Number]
		head, err := past.Head(t.Reader(), in.ID, in.Since)
		if err != nil {
			return err
		}
		goesOn := known && r.GoesOn(in.Since, head)
		if goesOn || !in.Silent {
			delete(before, in.ID.Number)
		}
		switch {
		case in.Silent:
			continue
		case !goesOn:
			r = read{Cursor: head, Via: head.Commit}
			err = readAll(t, number, in.ID, own)
		case r.Anew != in.Anew: // what it says no more since it was read is among what it has changed
			err = readAll(t, number, in.ID)
		default:
			continue
		}
		if r.Anew = in.Anew; err == nil {
			err = t.PutJSON(readKey(number, in.ID.Number), r)
		}
		if err != nil {
			return err
		}
	}
	for gone := range before {
		if err := end(t, own, gone); err != nil {
			return err
		}
	}
	return nil
}

// readAll has all that sources say read once more.
func readAll(t *txn.Tx, number uint32, sources ...keys.Source) error {
	for _, id := range sources {
		if err := Walk(t, number, id); err != nil {
			return err
		}
	}
	return unsettle(t, number)
}

// end ends reading an input. All that the collection says is derived again, without it.
func end(t *txn.Tx, own keys.Source, input uint32) error {
	if err := readAll(t, own.Number, own); err != nil {
		return err
	}
	return t.Delete(readKey(own.Number, input))
}

// news is what inputs have changed.
type news struct {
	t       *txn.Tx
	own     keys.Source // the collection
	extents map[fragment.Ref]Extent
	via     map[fragment.Ref][]string
}

func (w *news) add(ref fragment.Ref, extent Extent) {
	if before, ok := w.extents[ref]; !ok || extent < before {
		w.extents[ref] = extent
	}
}

// read reads what an input has changed, until n topics are found. It reports whether there may be more.
func (w *news) read(in *Input, n int) (more bool, err error) {
	row := readKey(w.own.Number, in.ID.Number)
	var at read
	if known, err := w.t.GetJSON(row, &at); !known || err != nil {
		return false, err
	}
	is := at
	for p, err := range past.Parts(w.t.Reader(), in.ID, at.Position) {
		if err != nil {
			return false, err
		}
		if more = len(w.extents) >= n; more {
			break
		}
		if err := w.part(in.ID, &p); err != nil {
			return false, err
		}
		if p.Commit != is.Commit {
			is.Via = is.Commit
		}
		is.Position = p.Position
	}
	if !more {
		is.Via = is.Commit
	}
	if !more && in.Silent {
		err = end(w.t, w.own, in.ID.Number)
	} else if is != at {
		err = w.t.PutJSON(row, is)
	}
	if is == at || err != nil {
		return more, err
	}
	return more, in.Via(at.Via, is.Commit, func(topic fragment.Ref, via string) {
		if _, found := w.extents[topic]; !found || slices.Contains(w.via[topic], via) {
			return
		}
		all := append(w.via[topic], via)
		w.via[topic] = all[max(0, len(all)-mostVia):]
	})
}

// mostVia is how many entries a topic keeps: the last ones.
const mostVia = 10

// part notes the topics that a part of a commit's changes affects.
func (w *news) part(id keys.Source, p *past.Part) error {
	asOf := func(commit uint64) *txn.Tx { return txn.Over(w.t.Context(), past.AsOf(w.t.Reader(), id, commit)) }
	before, after := asOf(p.Commit-1), asOf(p.Commit)
	rows := slices.DeleteFunc(p.Keys, func(key []byte) bool {
		return keys.Table(key) != keys.TableTopic && keys.Table(key) != keys.TableAssociation
	})
	for _, tx := range []*txn.Tx{before, after} {
		if err := tx.Expect(rows, nil); err != nil {
			return err
		}
	}
	was, is := records.In(before, id), records.In(after, id)
	for _, key := range rows {
		old, err := was.RecordAt(key)
		if err != nil {
			return err
		}
		next, err := is.RecordAt(key)
		if err != nil {
			return err
		}
		if ref, ok := records.TopicOf(key); ok {
			err = w.topic(ref, old.Topic, next.Topic, p.Again())
		} else if player, _, ok := records.Playing(key); ok {
			err = w.association(player, old.Association, next.Association)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// topic notes that the record under a TopicSI has become another one, or none. uncertain says that it may have been
// another one in between.
func (w *news) topic(ref fragment.Ref, was, is *fragment.Topic, uncertain bool) error {
	if uncertain {
		w.add(ref, All)
		return unsettle(w.t, w.own.Number)
	}
	w.add(ref, extentOf(was, is))
	if reifiedOtherwise(was, is) {
		if err := unsettle(w.t, w.own.Number); err != nil {
			return err
		}
	}
	return identified(w.t, w.own.Number, was, is)
}

// extentOf says how much of a topic the change of its record affects. Changed associations are noted by themselves. But
// they may refer to the topic by other identifiers, and a reifier may be another for them.
func extentOf(was, next *fragment.Topic) Extent {
	if was == nil || next == nil || was.HasReifiers() || next.HasReifiers() || !sameIdentifiers(was, next) {
		return All
	}
	return Statements
}

// reifiedOtherwise reports whether two versions of a topic differ in statements that are reified.
func reifiedOtherwise(was, next *fragment.Topic) bool {
	reified := func(t *fragment.Topic) []byte {
		if t == nil || !t.HasReifiers() {
			return nil
		}
		only := t.ReifiedOnly()
		only.Identity = fragment.Identity{SubjectIdentifiers: t.SubjectIdentifiers[:1]}
		return fragment.MarshalTopic(only)
	}
	return !bytes.Equal(reified(was), reified(next))
}

// association notes that an association of a player has become another one, or none. The rows of a large one only say
// where it is: it is noted for all players by the row that has it.
func (w *news) association(player fragment.Ref, both ...*fragment.Association) error {
	w.add(player, All)
	for _, a := range both {
		if a == nil {
			continue
		}
		if players := a.Players(); players[0] == player {
			for _, p := range players {
				w.add(p, All)
			}
		}
		if a.HasReifiers() {
			if err := unsettle(w.t, w.own.Number); err != nil {
				return err
			}
		}
	}
	return nil
}
