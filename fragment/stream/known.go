package stream

import (
	"hash/maphash"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// known records the elements that a stream has seen, to find out whether each is independent of the others. It keeps
// hashes, with a seed that documents cannot know. If two things have the same hash, the document looks as if it must be
// read as a whole; or, if the second is a topic without an element, both look like one topic: the missing record has no
// more content than the reference.
type known struct {
	seed         maphash.Seed
	identifiers  marks // of topics, and item identifiers of anything
	associations marks // their keys
	reifiers     marks
	referred     int // identifiers that are marked so
}

// The marks of identifiers.
const (
	isReferred mark = iota + 1 // referred to, not seen on a topic so far
	isTopicSI                  // the first subject identifier of a topic
	isOther                    // any other; references to it are not allowed
)

func newKnown() *known { return &known{seed: maphash.MakeSeed()} }

var (
	errNoIdentifier = notStreamable("a topic has no subject identifier")
	errMergeMap     = notStreamable("it asks for another document to be merged in")
	errReference    = notStreamable("it refers to a topic by something other than a subject identifier")
)

// add checks the identifiers, the references and the reifiers of an element and
// remembers them.
func (k *known) add(e xtm.Element) error {
	err := k.identify(e)
	check := func(f func(tmdm.Locator) error, l tmdm.Locator) {
		if err == nil {
			err = f(l)
		}
	}
	itemIdentifiers(e, func(l tmdm.Locator) { check(k.other, l) })
	references(e, func(r xtm.Ref) {
		if r.Kind != xtm.BySubjectIdentifier && err == nil {
			err = errReference
		}
		check(k.refer, r.Locator)
	})
	reifiers(e, func(r xtm.Ref) { check(k.reifier, r.Locator) })
	return err
}

func (k *known) identify(e xtm.Element) error {
	switch e := e.(type) {
	case *xtm.MergeMap:
		return errMergeMap
	case *xtm.Topic:
		if len(e.SubjectIdentifiers) == 0 {
			return errNoIdentifier
		}
		if err := k.topicSI(e.SubjectIdentifiers[0]); err != nil {
			return err
		}
		for _, si := range e.SubjectIdentifiers[1:] {
			if err := k.other(si); err != nil {
				return err
			}
		}
		for _, sl := range e.SubjectLocators {
			if err := k.other("=" + sl); err != nil { // never a subject identifier: these are absolute
				return err
			}
		}
	}
	return nil
}

func (k *known) topicSI(si tmdm.Locator) error {
	if err := fragment.CheckLength(si); err != nil {
		return notStreamable("%s", err)
	}
	m := k.identifiers.at(k.hash(si))
	switch m.mark() {
	case isReferred:
		k.referred--
	case isTopicSI, isOther:
		return notStreamable("the identifier %s is not the only one of its kind", si)
	}
	m.set(isTopicSI)
	return nil
}

func (k *known) other(l tmdm.Locator) error {
	if err := fragment.CheckLength(l); err != nil {
		return notStreamable("%s", err)
	}
	return k.identifiers.once(k.hash(l), isOther, func() error {
		return notStreamable("the identifier %s stands for something already", l)
	})
}

func (k *known) refer(l tmdm.Locator) error {
	if err := fragment.CheckLength(l); err != nil {
		return notStreamable("%s", err)
	}
	m := k.identifiers.at(k.hash(l))
	switch m.mark() {
	case isOther:
		return notStreamable("the reference %s is not the first subject identifier of its topic", l)
	case 0:
		m.set(isReferred)
		k.referred++
	}
	return nil
}

// announce reports whether l is referred to and on no topic, at the first call for l.
func (k *known) announce(l tmdm.Locator) bool {
	m := k.identifiers.at(k.hash(l))
	if m.mark() != isReferred {
		return false
	}
	m.set(isTopicSI)
	k.referred--
	return true
}

func (k *known) reifier(l tmdm.Locator) error {
	return k.reifiers.once(k.hash(l), isOther, func() error { return notStreamable("%s reifies two things", l) })
}

func (k *known) association(a *fragment.Association) error {
	key := a.Key()
	return k.associations.once(maphash.Bytes(k.seed, key[:]), isOther, func() error { return errEqual })
}

func (k *known) hash(l tmdm.Locator) uint64 { return maphash.String(k.seed, string(l)) }

// references calls yield with all references of an element, including implicit ones.
func references(e xtm.Element, yield func(xtm.Ref)) {
	each := func(refs []xtm.Ref) {
		for _, r := range refs {
			yield(r)
		}
	}
	switch e := e.(type) {
	case *xtm.Topic:
		each(e.Types)
		if len(e.Types) > 0 {
			for _, psi := range [...]tmdm.Locator{tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance} {
				yield(xtm.SubjectIdentifier(psi))
			}
		}
		for i := range e.Names {
			yield(e.Names[i].Type)
			each(e.Names[i].Scope)
			for j := range e.Names[i].Variants {
				each(e.Names[i].Variants[j].Scope)
			}
		}
		for i := range e.Occurrences {
			yield(e.Occurrences[i].Type)
			each(e.Occurrences[i].Scope)
		}
	case *xtm.Association:
		yield(e.Type)
		each(e.Scope)
		for i := range e.Roles {
			yield(e.Roles[i].Type)
			yield(e.Roles[i].Player)
		}
	}
	reifiers(e, yield)
}

// reifiers calls yield with all reifiers of an element.
func reifiers(e xtm.Element, yield func(xtm.Ref)) {
	statements(e, func(_ []tmdm.Locator, reifier xtm.Ref) {
		if !reifier.IsZero() {
			yield(reifier)
		}
	})
}

// itemIdentifiers calls yield with all item identifiers of an element.
func itemIdentifiers(e xtm.Element, yield func(tmdm.Locator)) {
	each := func(iids []tmdm.Locator, _ xtm.Ref) {
		for _, l := range iids {
			yield(l)
		}
	}
	if t, ok := e.(*xtm.Topic); ok {
		each(t.ItemIdentifiers, xtm.Ref{})
	}
	statements(e, each)
}

// statements calls yield with the item identifiers and the reifier of each
// statement in an element, and of the map.
func statements(e xtm.Element, yield func(iids []tmdm.Locator, reifier xtm.Ref)) {
	switch e := e.(type) {
	case *xtm.Map:
		yield(e.ItemIdentifiers, e.Reifier)
	case *xtm.Topic:
		for i := range e.Names {
			n := &e.Names[i]
			yield(n.ItemIdentifiers, n.Reifier)
			for j := range n.Variants {
				yield(n.Variants[j].ItemIdentifiers, n.Variants[j].Reifier)
			}
		}
		for i := range e.Occurrences {
			yield(e.Occurrences[i].ItemIdentifiers, e.Occurrences[i].Reifier)
		}
	case *xtm.Association:
		yield(e.ItemIdentifiers, e.Reifier)
		for i := range e.Roles {
			yield(e.Roles[i].ItemIdentifiers, e.Roles[i].Reifier)
		}
	}
}
