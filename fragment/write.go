package fragment

import (
	"fmt"
	"io"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Form says how records are written as XTM.
type Form struct {
	Version xtm.Version
	SP      string // the source locator prefix, which is the base of the document

	// OmitInstances leaves the instances out of the fragment of a class.
	OmitInstances bool
}

// Write writes the fragment of the topic of src whose TopicSI is ref (TMShare,
// "Topic Map Fragment Data Service"): the topic with all that is said of it,
// the associations in which it plays a role, and a stub with the identifiers of
// every other topic mentioned. It writes as it reads; what it keeps is the set
// of stubs that are written.
func Write(w io.Writer, src Source, ref Ref, form Form) error {
	t, err := src.Topic(ref)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("fragment: no topic has the subject identifier %s", ref)
	}
	f := writer{enc: xtm.NewEncoder(w, form.Version, tmdm.Locator(form.SP)), src: src, written: map[Ref]bool{t.TopicSI(): true}}
	types, typings, err := classes(src, t.TopicSI())
	if err != nil {
		return err
	}
	if err := f.enc.Topic(element(t, types)); err != nil {
		return err
	}
	if len(types) > 0 { // instanceOf mentions them without naming them
		f.mention(tmdm.PSITypeInstance)
		f.mention(tmdm.PSIType)
		f.mention(tmdm.PSIInstance)
	}
	for _, class := range types {
		f.mention(class)
	}
	t.Mentions(f.mention)
	for _, a := range typings {
		f.association(a)
	}
	for _, part := range []Part{AsPlayer, AsType} {
		if part == AsType && form.OmitInstances {
			continue
		}
		for a, err := range src.AssociationsOf(t.TopicSI(), part) {
			if err != nil {
				return err
			}
			f.association(a)
			if f.err != nil {
				return f.err
			}
		}
	}
	if f.err != nil {
		return f.err
	}
	return f.enc.Close()
}

// WriteTombstone writes the "empty topic" that deletes: identifiers, and
// nothing else.
func WriteTombstone(w io.Writer, id Identity, form Form) error {
	enc := xtm.NewEncoder(w, form.Version, tmdm.Locator(form.SP))
	if err := enc.Topic(element(&Topic{Identity: id}, nil)); err != nil {
		return err
	}
	return enc.Close()
}

// WriteSnapshot writes all of src, which must be a publisher's state: one in
// which every reference is the TopicSI of a topic. It writes as it reads.
func WriteSnapshot(w io.Writer, src Source, form Form) error {
	enc := xtm.NewEncoder(w, form.Version, tmdm.Locator(form.SP))
	for t, err := range src.Topics() {
		if err != nil {
			return err
		}
		types, _, err := classes(src, t.TopicSI())
		if err != nil {
			return err
		}
		if err := enc.Topic(element(t, types)); err != nil {
			return err
		}
	}
	for a, err := range src.Associations() {
		if err != nil {
			return err
		}
		if _, _, ok := a.TypeInstance(); ok && isBare(a) {
			continue // written as a type of the instance
		}
		if err := enc.Association(associationElement(a)); err != nil {
			return err
		}
	}
	return enc.Close()
}

// classes returns the types of a topic that can be written as instanceOf, and
// the type-instance associations that cannot.
func classes(src Source, instance Ref) (types []Ref, typings []*Association, err error) {
	for a, err := range src.AssociationsOf(instance, AsInstance) {
		if err != nil {
			return nil, nil, err
		}
		if class, _, ok := a.TypeInstance(); ok && isBare(a) {
			types = append(types, class)
		} else {
			typings = append(typings, a)
		}
	}
	return types, typings, nil
}

// isBare reports whether neither a nor its roles have item identifiers.
func isBare(a *Association) bool {
	n := len(a.ItemIdentifiers)
	for i := range a.Roles {
		n += len(a.Roles[i].ItemIdentifiers)
	}
	return n == 0
}

type writer struct {
	enc     *xtm.Encoder
	src     Source
	written map[Ref]bool // topics that the document has
	err     error
}

func (f *writer) association(a *Association) {
	if f.err == nil {
		f.err = f.enc.Association(associationElement(a))
	}
	a.Mentions(f.mention)
	for i := range a.Roles {
		f.mention(a.Roles[i].Player)
	}
}

// mention writes the stub of a topic, once.
func (f *writer) mention(ref Ref) {
	if f.err != nil || f.written[ref] {
		return
	}
	f.written[ref] = true
	stub := &Topic{Identity: Identity{SubjectIdentifiers: []tmdm.Locator{ref}}}
	id, err := identityOf(f.src, ref)
	if err != nil {
		f.err = err
		return
	}
	if id != nil && id.TopicSI() == ref {
		stub.Identity = *id
	}
	f.err = f.enc.Topic(element(stub, nil))
}

func element(t *Topic, types []Ref) *xtm.Topic {
	e := &xtm.Topic{SubjectIdentifiers: t.SubjectIdentifiers, SubjectLocators: t.SubjectLocators, Types: references(types)}
	for i := range t.Names {
		n := &t.Names[i]
		name := xtm.Name{
			ItemIdentifiers: n.ItemIdentifiers, Reifier: reference(n.Reifier),
			Value: n.Value, Type: reference(n.Type), Scope: references(n.Scope),
		}
		for j := range n.Variants {
			v := &n.Variants[j]
			name.Variants = append(name.Variants, xtm.Variant{
				ItemIdentifiers: v.ItemIdentifiers, Reifier: reference(v.Reifier),
				Value: v.Value, Datatype: v.Datatype, Scope: references(v.Scope),
			})
		}
		e.Names = append(e.Names, name)
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		e.Occurrences = append(e.Occurrences, xtm.Occurrence{
			ItemIdentifiers: o.ItemIdentifiers, Reifier: reference(o.Reifier),
			Value: o.Value, Datatype: o.Datatype, Type: reference(o.Type), Scope: references(o.Scope),
		})
	}
	return e
}

func associationElement(a *Association) *xtm.Association {
	e := &xtm.Association{
		ItemIdentifiers: a.ItemIdentifiers, Reifier: reference(a.Reifier),
		Type: reference(a.Type), Scope: references(a.Scope),
	}
	for i := range a.Roles {
		r := &a.Roles[i]
		e.Roles = append(e.Roles, xtm.Role{
			ItemIdentifiers: r.ItemIdentifiers, Reifier: reference(r.Reifier),
			Type: reference(r.Type), Player: reference(r.Player),
		})
	}
	return e
}

func reference(ref Ref) xtm.Ref {
	if ref == "" {
		return xtm.Ref{}
	}
	return xtm.SubjectIdentifier(ref)
}

func references(refs []Ref) []xtm.Ref {
	if len(refs) == 0 {
		return nil
	}
	out := make([]xtm.Ref, len(refs))
	for i, ref := range refs {
		out[i] = reference(ref)
	}
	return out
}
