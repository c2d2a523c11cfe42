package derived

import (
	"bytes"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/records"
)

// Watched are the records of an input. Its changes are noted.
type Watched struct {
	records.State
	Input string
	Via   string // the entry that is applied, "" for none
}

// PutTopic implements [merge.State].
func (w *Watched) PutTopic(topic *fragment.Topic) error {
	return first(w.topic(topic.TopicSI(), topic), func() error { return w.State.PutTopic(topic) })
}

// DeleteTopic implements [merge.State].
func (w *Watched) DeleteTopic(topic *fragment.Topic) error {
	return first(w.topic(topic.TopicSI(), nil), func() error { return w.State.DeleteTopic(topic) })
}

// PutAssociation implements [merge.State].
func (w *Watched) PutAssociation(a *fragment.Association) error {
	return first(w.association(a, a), func() error { return w.State.PutAssociation(a) })
}

// DeleteAssociation implements [merge.State].
func (w *Watched) DeleteAssociation(a *fragment.Association) error {
	return first(w.association(a, nil), func() error { return w.State.DeleteAssociation(a) })
}

func first(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// MarkChange notes the change of an input that is a collection of this node, before it is made. via names the entry of the change with an
// index.
func MarkChange(s records.State, input string, c *fragment.Change, via func(i int) string) error {
	numbers, err := Of(s.Tx(), input)
	if len(numbers) == 0 || err != nil {
		return err
	}
	if err := expectMarks(s, numbers, c); err != nil {
		return err
	}
	w := &Watched{State: s, Input: input}
	for _, topic := range c.PutTopics {
		if err := w.topic(topic.TopicSI(), topic); err != nil {
			return err
		}
	}
	for _, ref := range c.DeleteTopics {
		if err := w.topic(ref, nil); err != nil {
			return err
		}
	}
	for _, a := range c.PutAssociations {
		if err := w.association(a, a); err != nil {
			return err
		}
	}
	for _, a := range c.DeleteAssociations {
		if err := w.association(a, nil); err != nil {
			return err
		}
	}
	return Mark(s.Tx(), input, Statements, func(yield func(fragment.Ref, string)) {
		for i := range c.Entries {
			yield(c.Entries[i].TopicSI, via(i))
		}
	})
}

// expectMarks asks at once for what marks a change.
func expectMarks(s records.State, numbers []uint32, c *fragment.Change) error {
	if !s.Tx().Distant() {
		return nil
	}
	refs := slices.Clone(c.DeleteTopics)
	for _, topic := range c.PutTopics {
		refs = append(refs, topic.TopicSI())
	}
	if err := s.Expect(refs, nil); err != nil {
		return err
	}
	for i := range c.Entries {
		refs = append(refs, c.Entries[i].TopicSI)
	}
	for _, some := range [][]*fragment.Association{c.PutAssociations, c.DeleteAssociations} {
		if err := s.ExpectAssociations(some); err != nil {
			return err
		}
		for _, a := range some {
			refs = append(refs, a.Players()...)
		}
	}
	var all [][]byte
	for _, n := range numbers {
		all = append(all, queue(n, kindDirty), queue(n, kindIdentity))
		for _, ref := range refs {
			all = append(all, append(key(n, kindVia), ref...))
		}
	}
	return s.Tx().Expect(all, nil)
}

// topic notes that the record under a TopicSI is about to become another one, or none.
func (w *Watched) topic(ref fragment.Ref, next *fragment.Topic) error {
	numbers, err := Of(w.Tx(), w.Input)
	if len(numbers) == 0 || err != nil {
		return err
	}
	was, err := w.State.Topic(ref)
	if err != nil {
		return err
	}
	if was != nil && was.TopicSI() != ref {
		was = nil
	}
	if was != nil && next != nil && bytes.Equal(fragment.MarshalTopic(was), fragment.MarshalTopic(next)) {
		return nil
	}
	for _, n := range numbers {
		if err := mark(w.Tx(), n, ref, extentOf(was, next), w.Via); err != nil {
			return err
		}
		if reifiedOtherwise(was, next) {
			if err := unsettle(w.Tx(), n); err != nil {
				return err
			}
		}
		if err := identified(w.Tx(), n, was, next); err != nil {
			return err
		}
	}
	return nil
}

// extentOf says how much of a topic the change of its record bears on. What it plays in is told by associations, which are noted by
// themselves. But they may refer to it by other identifiers, and a reifier may be another for them.
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

// association notes that the association with the key of one is about to become another, or none.
func (w *Watched) association(like, next *fragment.Association) error {
	numbers, err := Of(w.Tx(), w.Input)
	if len(numbers) == 0 || err != nil {
		return err
	}
	was, err := w.State.Stored(like)
	if err != nil {
		return err
	}
	if was != nil && next != nil && bytes.Equal(fragment.MarshalAssociation(was), fragment.MarshalAssociation(next)) {
		return nil
	}
	reified := func(a *fragment.Association) bool { return a != nil && a.HasReifiers() }
	for _, n := range numbers {
		for _, ref := range like.Players() {
			if err := mark(w.Tx(), n, ref, All, w.Via); err != nil {
				return err
			}
		}
		if reified(was) || reified(next) {
			if err := unsettle(w.Tx(), n); err != nil {
				return err
			}
		}
	}
	return nil
}
