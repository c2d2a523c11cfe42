// Package stream reads the records of a snapshot element by element, in little memory,
// where the document allows that. [fragment.ReadSnapshot] reads all others.
package stream

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// ErrNotStreamable is the error for a document whose records do not follow from its single elements. Use
// [fragment.ReadSnapshot] then.
var ErrNotStreamable = errors.New("the document must be read as a whole")

// Snapshot reads the XTM document of a snapshot and yields the records of [fragment.ReadSnapshot], in the order of the
// document. Its memory is that of the largest element, and about 16 bytes for each topic and association.
//
// This requires elements that are independent of each other, as [fragment.WriteSnapshot] writes them: each topic has
// one element, with a subject identifier; each reference is the first subject identifier of its topic, or names a topic
// without an element; no two statements are equal; no identifier is given twice; and no topic reifies two things.
// Otherwise it ends with [ErrNotStreamable], possibly after many records, and callers must discard their results.
//
// It opens the document again if topics are known only by reference.
func Snapshot(open func() (io.ReadCloser, error), o xtm.Options) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		s := stream{sp: string(o.Base), known: newKnown(), yield: func(r fragment.Record) error {
			if !yield(r, nil) {
				return errStopped
			}
			return nil
		}}
		err := eachElement(open, o, s.element)
		if err == nil && s.known.referred > 0 {
			err = eachElement(open, o, s.onlyReferred)
		}
		if err != nil && err != errStopped {
			yield(fragment.Record{}, err)
		}
	}
}

// errStopped ends a stream whose consumer has stopped.
var errStopped = errors.New("stopped")

// eachElement calls f with each element of a document, until it fails.
func eachElement(open func() (io.ReadCloser, error), o xtm.Options, f func(xtm.Element) error) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	for d := xtm.NewDecoder(r, o); ; {
		e, err := d.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f(e)
		}
		var why *streamError
		if errors.As(err, &why) {
			at := e.Position()
			return fmt.Errorf("%s:%d:%d: %w: %s", o.URI, at.Line, at.Column, ErrNotStreamable, why.reason)
		}
		if err != nil {
			return err
		}
	}
}

// streamError is the reason why an element depends on others.
type streamError struct{ reason string }

func (e *streamError) Error() string { return e.reason }

func notStreamable(format string, args ...any) error {
	return &streamError{fmt.Sprintf(format, args...)}
}

// stream makes records of elements.
type stream struct {
	sp    string
	known *known
	yield func(fragment.Record) error
}

// element yields the records of one element.
func (s *stream) element(e xtm.Element) error {
	if err := s.known.add(e); err != nil {
		return err
	}
	switch e := e.(type) {
	case *xtm.Topic:
		t, err := s.topic(e)
		if err == nil {
			err = s.yield(fragment.Record{Topic: t})
		}
		for i := 0; i < len(e.Types) && err == nil; i++ {
			a := typeInstance(e.Types[i].Locator, t.TopicSI())
			if err = s.known.association(a); err == nil {
				err = s.yield(fragment.Record{Association: a})
			}
		}
		return err
	case *xtm.Association:
		a, err := s.association(e)
		if err == nil && len(a.Roles) > 0 { // one without is about no topic
			err = s.yield(fragment.Record{Association: a})
		}
		return err
	}
	return nil
}

// onlyReferred yields the topics of the references in an element that no element
// of the document describes.
func (s *stream) onlyReferred(e xtm.Element) (err error) {
	references(e, func(r xtm.Ref) {
		if err == nil && s.known.announce(r.Locator) {
			err = s.yield(
				fragment.Record{Topic: &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{r.Locator}}}})
		}
	})
	if err == nil && s.known.referred == 0 {
		err = errStopped // that were all
	}
	return err
}

func typeInstance(class, instance fragment.Ref) *fragment.Association {
	a := fragment.NewAssociation(2)
	a.Type = tmdm.PSITypeInstance
	a.Roles[0] = fragment.Role{Type: tmdm.PSIType, Player: class}
	a.Roles[1] = fragment.Role{Type: tmdm.PSIInstance, Player: instance}
	a.Canonical()
	return a
}

var errEqual = notStreamable("two statements are equal")

// topic makes the record of a topic. It fails if statements are equal, because they would have to be merged.
func (s *stream) topic(e *xtm.Topic) (*fragment.Topic, error) {
	t := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: e.SubjectIdentifiers,
		SubjectLocators: e.SubjectLocators}}
	if len(e.Names) > 0 {
		t.Names = make([]fragment.Name, len(e.Names))
	}
	for i := range e.Names {
		n := &e.Names[i]
		t.Names[i] = fragment.Name{
			Value: n.Value, Type: n.Type.Locator, Scope: scope(n.Scope), Reifier: n.Reifier.Locator,
			Variants: s.variants(n.Variants), ItemIdentifiers: s.own(n.ItemIdentifiers),
		}
	}
	if len(e.Occurrences) > 0 {
		t.Occurrences = make([]fragment.Occurrence, len(e.Occurrences))
	}
	for i := range e.Occurrences {
		o := &e.Occurrences[i]
		t.Occurrences[i] = fragment.Occurrence{
			Value: o.Value, Datatype: o.Datatype, Type: o.Type.Locator, Scope: scope(o.Scope), Reifier: o.Reifier.Locator,
			ItemIdentifiers: s.own(o.ItemIdentifiers),
		}
	}
	t.Canonical()
	for i := range t.Names {
		if i > 0 && equalNames(&t.Names[i-1], &t.Names[i]) || anyEqual(t.Names[i].Variants, equalVariants) {
			return nil, errEqual
		}
	}
	if anyEqual(t.Occurrences, equalOccurrences) {
		return nil, errEqual
	}
	return t, nil
}

func (s *stream) variants(variants []xtm.Variant) []fragment.Variant {
	if len(variants) == 0 {
		return nil
	}
	list := make([]fragment.Variant, len(variants))
	for i := range variants {
		v := &variants[i]
		list[i] = fragment.Variant{
			Value: v.Value, Datatype: v.Datatype, Scope: scope(v.Scope), Reifier: v.Reifier.Locator,
			ItemIdentifiers: s.own(v.ItemIdentifiers),
		}
	}
	return list
}

func (s *stream) association(e *xtm.Association) (*fragment.Association, error) {
	a := fragment.NewAssociation(len(e.Roles))
	a.Type, a.Scope, a.Reifier, a.ItemIdentifiers = e.Type.Locator, scope(e.Scope), e.Reifier.Locator,
		s.own(e.ItemIdentifiers)
	for i := range e.Roles {
		r := &e.Roles[i]
		a.Roles[i] = fragment.Role{Type: r.Type.Locator, Player: r.Player.Locator, Reifier: r.Reifier.Locator,
			ItemIdentifiers: s.own(r.ItemIdentifiers)}
	}
	a.Canonical()
	if anyEqual(a.Roles, func(r, s *fragment.Role) bool { return r.Type == s.Type && r.Player == s.Player }) {
		return nil, errEqual
	}
	return a, s.known.association(a)
}

func scope(themes []xtm.Ref) []fragment.Ref {
	if len(themes) == 0 {
		return nil
	}
	refs := make([]fragment.Ref, len(themes))
	for i, t := range themes {
		refs[i] = t.Locator
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// own returns those of the item identifiers that are under the source locator prefix.
func (s *stream) own(iids []tmdm.Locator) []tmdm.Locator {
	var own []tmdm.Locator
	for _, l := range iids {
		if strings.HasPrefix(string(l), s.sp) {
			own = append(own, l)
		}
	}
	return own
}

// Statements are equal by the properties of ISO 13250-2 §5.4 to §5.8: reifiers
// and item identifiers do not count. In canonical order they are neighbours.

func equalNames(a, b *fragment.Name) bool {
	return a.Value == b.Value && a.Type == b.Type && slices.Equal(a.Scope, b.Scope)
}

func equalVariants(a, b *fragment.Variant) bool {
	return a.Value == b.Value && a.Datatype == b.Datatype && slices.Equal(a.Scope, b.Scope)
}

func equalOccurrences(a, b *fragment.Occurrence) bool {
	return a.Value == b.Value && a.Datatype == b.Datatype && a.Type == b.Type && slices.Equal(a.Scope, b.Scope)
}

func anyEqual[T any](list []T, equal func(a, b *T) bool) bool {
	for i := 1; i < len(list); i++ {
		if equal(&list[i-1], &list[i]) {
			return true
		}
	}
	return false
}
