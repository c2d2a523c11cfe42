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
	Since uint64 // the first commit from which on former records are kept
	// Silent states that the source is derived itself now. Its statements do not count, but its earlier changes are
	// read.
	Silent bool
	// a new value requires that all statements of the source are read again, for reasons other than commits
	Anew uint64

	// Via calls f with topics changed by commits after one, up to another, and the entries of the changes.
	Via func(after, upTo uint64, f func(topic fragment.Ref, via string)) error
}

// read is the position up to which an input was read.
type read struct {
	past.Cursor
	Anew uint64 `json:",omitempty"`
	// Via is the number of the last commit that is read to its end, as far as is known.
	Via uint64
}

func readKey(number, input uint32) []byte {
	return binary.BigEndian.AppendUint32(key(number, kindRead), input)
}

// Oldest returns the number of the last kept commit of a source that all collections derived from it have read.
func Oldest(t *txn.Tx, numbers []uint32, id keys.Source) (commit uint64, err error) {
	first := true
	for _, n := range numbers {
		var r read
		ok, err := t.GetJSON(readKey(n, id.Number), &r)
		if err != nil {
			return 0, err
		}
		if !ok || r.Generation != id.Generation {
			continue // it starts again
		}
		if first || r.Commit < commit {
			commit, first = r.Commit, false
		}
	}
	return commit, nil
}

// begin finds inputs that were replaced, or whose changes since the last read are not stored. It requests that all
// their statements are read, and all of the collection derived again, because removed statements are unknown.
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
		case r.Anew != in.Anew: // its changes include the statements removed since
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

// readAll requests that all statements of sources are read again.
func readAll(t *txn.Tx, number uint32, sources ...keys.Source) error {
	for _, id := range sources {
		if err := Walk(t, number, id); err != nil {
			return err
		}
	}
	return unsettle(t, number)
}

// end ends reading an input. It requests that all of the collection is derived again, without it.
func end(t *txn.Tx, own keys.Source, input uint32) error {
	if err := readAll(t, own.Number, own); err != nil {
		return err
	}
	return t.Delete(readKey(own.Number, input))
}

// news holds the changes of inputs.
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

// read reads the changes of an input, until it has n topics. It reports whether there may be more.
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

// mostVia is the number of entries that a topic keeps: the last ones.
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

// topic records that the record under a TopicSI has changed or was removed. uncertain states that it may have changed
// in between.
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

// extentOf returns the extent to which the change of its record affects a topic. Changed associations are recorded
// separately, but may refer to the topic by other identifiers, and may have another reifier then.
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

// association records that an association of a player has changed or was removed. For a large one, the row with its
// content records it for all players.
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
