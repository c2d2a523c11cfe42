package history

import (
	"encoding/binary"
	"errors"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/tmdm"
)

// overlay shows the records as they are now, and in the place of those that have changed what they were. It answers what
// [fragment.WriteSnapshot] asks: all topics, the classes of the one that it has come to, all associations.
//
// A type-instance association belongs to its instance, any other one to the least of its players. An
// association that came, changed or went has changed that topic. So the associations of a topic that has
// not changed are those of now, and all others stand in what the changed topics were.
type overlay struct {
	p   *Past
	now fragment.Source    // in passing
	at  *fragment.Fragment // what the topic was that the iteration has come to; nil: it has not changed

	// said has the associations of what changed topics were, from the pass over the topics, which comes before that over
	// the associations: to read a fragment takes longer than all else. A topic without any has a row, too.
	said *extsort.Sorter
}

var errNotAsked = errors.New("a state of the past answers this question to nobody")

// Topic implements [fragment.Source].
func (o *overlay) Topic(fragment.Ref) (*fragment.Topic, error) { return nil, errNotAsked }

// TopicBySubjectLocator implements [fragment.Source].
func (o *overlay) TopicBySubjectLocator(tmdm.Locator) (*fragment.Topic, error) {
	return nil, errNotAsked
}

// Topics implements [fragment.Source].
func (o *overlay) Topics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		changed := iterate(o.p.versions())
		defer changed.stop()
		was := func() bool { // yields what the next changed topic was
			o.at = changed.row.said
			if err := o.keep(&changed.row); err != nil {
				yield(nil, err)
				return false
			}
			if o.at != nil && !yield(o.at.Topic, nil) {
				return false
			}
			changed.step()
			return true
		}
		for t, err := range o.now.Topics() {
			if err == nil {
				for changed.more && changed.row.ref < t.TopicSI() {
					if !was() {
						return
					}
				}
				err = changed.err
			}
			if err == nil && changed.more && changed.row.ref == t.TopicSI() {
				if !was() {
					return
				}
				continue
			}
			o.at = nil
			if !yield(t, err) || err != nil {
				return
			}
		}
		for changed.more {
			if !was() {
				return
			}
		}
		if changed.err != nil {
			yield(nil, changed.err)
		}
	}
}

// AssociationsOf implements [fragment.Source].
func (o *overlay) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	if o.at == nil {
		return o.now.AssociationsOf(player, part)
	}
	return func(yield func(*fragment.Association, error) bool) {
		if o.at.TopicSI != player {
			yield(nil, errNotAsked)
			return
		}
		for _, a := range o.at.Associations {
			if a.Part(player) == part && !yield(a, nil) {
				return
			}
		}
	}
}

// keep keeps the associations that belong to a topic as it was.
func (o *overlay) keep(was *old) error {
	n := uint32(0)
	key := func() []byte { return binary.BigEndian.AppendUint32(append([]byte(was.ref), 0), n) }
	if was.said != nil {
		for _, a := range was.said.Associations {
			if owner(a) != was.ref {
				continue
			}
			if err := o.said.Add(key(), fragment.MarshalAssociation(a)); err != nil {
				return err
			}
			n++
		}
	}
	if n > 0 {
		return nil
	}
	return o.said.Add(key(), nil)
}

// keptRef returns the topic of a row of keep.
func keptRef(r extsort.Row) fragment.Ref { return fragment.Ref(r.Key[:len(r.Key)-5]) }

// Associations implements [fragment.Source].
func (o *overlay) Associations() iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		changed := iterate(o.said.Sorted())
		defer changed.stop()
		stored := o.now.(fragment.Stored)
		walk := stored.StoredAssociations()
		defer walk.Close()
		var decoder fragment.Decoder
		was := func() bool { // yields the associations of what the next changed topic was
			for ref := keptRef(changed.row); changed.more && keptRef(changed.row) == ref; changed.step() {
				if len(changed.row.Value) == 0 {
					continue
				}
				a, err := decoder.Association(changed.row.Value)
				if !yield(a, err) || err != nil {
					return false
				}
			}
			return true
		}
		for t, err := range stored.StoredTopics() {
			ref := fragment.Ref(t.TopicSI)
			if err == nil {
				for changed.more && keptRef(changed.row) < ref {
					if !was() {
						return
					}
				}
				err = changed.err
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if changed.more && keptRef(changed.row) == ref {
				if !was() {
					return
				}
			} else if !owned(walk, ref, &decoder, yield) {
				return
			}
		}
		for changed.more {
			if !was() {
				return
			}
		}
		if changed.err != nil {
			yield(nil, changed.err)
		}
	}
}

// owned yields the associations that belong to a topic as it is now. Each is valid until the next one.
func owned(walk fragment.StoredAssociations, ref fragment.Ref, decoder *fragment.Decoder, yield func(*fragment.Association, error) bool) bool {
	for {
		s, err := walk.Next(ref)
		switch {
		case err != nil:
			yield(nil, err)
			return false
		case s == nil:
			return true
		case s.Record == nil: // it stands with the least of its players
			continue
		}
		a, err := decoder.Association(s.Record)
		if err != nil {
			yield(nil, err)
			return false
		}
		if owner(a) == ref && !yield(a, nil) {
			return false
		}
	}
}

// owner returns the topic that an association belongs to.
func owner(a *fragment.Association) fragment.Ref {
	if _, instance, ok := a.TypeInstance(); ok {
		return instance
	}
	return a.Players()[0]
}

// cursor stands on a row of an iteration, if there are more. Where there are none it has the error that ended it, if any.
type cursor[T any] struct {
	row  T
	more bool
	err  error
	next func() (T, error, bool)
	stop func()
}

func iterate[T any](rows iter.Seq2[T, error]) *cursor[T] {
	c := &cursor[T]{}
	c.next, c.stop = iter.Pull2(rows)
	c.step()
	return c
}

func (c *cursor[T]) step() {
	c.row, c.err, c.more = c.next()
	c.more = c.more && c.err == nil
}
