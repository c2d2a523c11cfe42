package xtm

import (
	"errors"

	"github.com/tmshare/tmshare/tmdm"
)

// identify returns the topic of e with all identifiers of e. Topics that have
// some of them become one.
func (b *builder) identify(e *Topic) (*tmdm.Topic, error) {
	tm := b.tm
	var t *tmdm.Topic
	join := func(other *tmdm.Topic) {
		switch {
		case other == nil || other == t:
		case t == nil:
			t = other
		default:
			t = merge(t, other)
		}
	}
	for _, l := range e.ItemIdentifiers {
		known := tm.TopicByIdentifier(l)
		if known == nil {
			if c := tm.ConstructByItemIdentifier(l); c != nil { // before a topic is made that cannot have it
				return nil, b.identityError(&tmdm.IdentityError{Existing: c, Locator: l}, e.Pos)
			}
		}
		join(known)
	}
	for _, l := range e.SubjectIdentifiers {
		join(tm.TopicByIdentifier(l))
	}
	for _, l := range e.SubjectLocators {
		join(tm.TopicBySubjectLocator(l))
	}
	if t == nil {
		t = tm.CreateTopic()
		b.memory += topicMemory
	}
	for _, list := range [][]tmdm.Locator{e.ItemIdentifiers, e.SubjectIdentifiers, e.SubjectLocators} {
		for _, l := range list {
			b.memory += int64(locatorMemory + len(l))
		}
	}
	if err := addIdentity(t, e); err != nil {
		return nil, b.identityError(err, e.Pos)
	}
	return t, nil
}

// addIdentity gives t the identifiers of e.
func addIdentity(t *tmdm.Topic, e *Topic) error {
	for _, l := range e.ItemIdentifiers {
		if err := tmdm.AddItemIdentifier(t, l); err != nil {
			return err
		}
	}
	for _, l := range e.SubjectIdentifiers {
		if err := t.AddSubjectIdentifier(l); err != nil {
			return err
		}
	}
	for _, l := range e.SubjectLocators {
		if err := t.AddSubjectLocator(l); err != nil {
			return err
		}
	}
	return nil
}

// merge merges two topics and returns the result. It moves the contents of the smaller one. It cannot fail, because no
// reifiers are set while a document is read.
func merge(t, other *tmdm.Topic) *tmdm.Topic {
	if size(other) > size(t) {
		t, other = other, t
	}
	_ = t.Merge(other) // fails for reifiers only
	return t
}

func size(t *tmdm.Topic) int {
	return len(t.Names()) + len(t.Occurrences()) + len(t.SubjectIdentifiers()) + len(t.SubjectLocators()) +
		len(t.ItemIdentifiers())
}

// ref returns the topic that r refers to, and creates it if it does not exist yet.
func (b *builder) ref(r Ref, pos Position) (*tmdm.Topic, error) {
	if b.doc.limits.Memory > 0 && b.tm.TopicByIdentifier(r.Locator) == nil {
		b.memory += int64(topicMemory + locatorMemory + len(r.Locator))
	}
	switch r.Kind {
	case BySubjectIdentifier:
		return b.tm.CreateTopicBySubjectIdentifier(r.Locator), nil
	case BySubjectLocator:
		return b.tm.CreateTopicBySubjectLocator(r.Locator), nil
	}
	t, err := b.tm.CreateTopicByItemIdentifier(r.Locator)
	if err != nil {
		return nil, b.identityError(err, pos)
	}
	return t, nil
}

// identityError makes a syntax error of a tmdm.IdentityError.
func (b *builder) identityError(err error, pos Position) error {
	var e *tmdm.IdentityError
	if errors.As(err, &e) {
		err = b.doc.errorAt(pos, e, "%s identifies %s, so it cannot identify a topic", e.Locator, tmdm.Describe(e.Existing))
	}
	return err
}
