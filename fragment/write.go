package fragment

import (
	"fmt"
	"io"
	"sync"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Form holds the options for writing records as XTM.
type Form struct {
	Version xtm.Version
	SP      string // the source locator prefix, which is the base of the document

	// OmitInstances leaves the instances out of the fragment of a class, which gives the record form of the topic.
	OmitInstances bool

	// ContentOnly leaves out the parts that may change without an entry for the topic (see [Diff]): the item
	// identifiers of statements, and all identifiers of stubs but the TopicSI.
	ContentOnly bool
}

// Write writes the fragment of the topic of src whose TopicSI is ref (TMShare, "Topic Map Fragment Data Service"): the
// topic with all statements about it, the associations in which it plays a role, and a stub with the identifiers of
// every other topic mentioned. It streams; only the set of written stubs is in memory.
func Write(w io.Writer, src Source, ref Ref, form Form) error {
	f := newWriter(w, src, form)
	defer f.release()
	if m, ok := src.(*Map); ok {
		f.passing.Map = m
		f.src = &f.passing
	}
	t, err := f.src.Topic(ref)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("no topic has the subject identifier %s", ref)
	}
	f.written[t.TopicSI()] = true
	f.classes(t.TopicSI())
	f.topic(t, f.types)
	if len(f.types) > 0 { // instanceOf mentions them without naming them
		f.mention(tmdm.PSITypeInstance)
		f.mention(tmdm.PSIType)
		f.mention(tmdm.PSIInstance)
	}
	for _, class := range f.types {
		f.mention(class)
	}
	t.Mentions(f.mention)
	if f.typings {
		f.associations(t.TopicSI(), AsInstance)
	}
	f.associations(t.TopicSI(), AsPlayer)
	if !form.OmitInstances {
		f.associations(t.TopicSI(), AsType)
	}
	return f.close()
}

// WriteTombstone writes a topic with identifiers only, which deletes the topic.
func WriteTombstone(w io.Writer, id Identity, form Form) error {
	f := newWriter(w, nil, form)
	defer f.release()
	f.stub(id)
	return f.close()
}

// WriteSnapshot writes all of src, which must be a publisher's state: one in
// which every reference is the TopicSI of a topic. It writes as it reads.
func WriteSnapshot(w io.Writer, src Source, form Form) error {
	_, err := WriteMap(w, src, form)
	return err
}

// WriteMap is WriteSnapshot, and returns the losses of the XTM version.
func WriteMap(w io.Writer, src Source, form Form) (xtm.Losses, error) {
	src = InPassing(src)
	claims, _ := src.(Identified)
	f := newWriter(w, src, form)
	defer f.release()
	for t, err := range src.Topics() {
		if err != nil {
			return f.enc.Losses(), err
		}
		f.types = f.types[:0]
		if claims == nil || !claims.AreIdentified() {
			f.classes(t.TopicSI())
		}
		if f.topic(t, f.types); f.err != nil {
			return f.enc.Losses(), f.err
		}
	}
	for a, err := range src.Associations() {
		if err != nil {
			return f.enc.Losses(), err
		}
		if _, _, ok := a.TypeInstance(); ok && isBare(a) {
			continue // written as a type of the instance
		}
		if f.element(a); f.err != nil {
			return f.enc.Losses(), f.err
		}
	}
	err := f.close()
	return f.enc.Losses(), err
}

// writer writes one document. The first error ends it.
type writer struct {
	enc     xtm.Encoder
	src     Source
	content bool         // see Form.ContentOnly
	written map[Ref]bool // topics that the document has
	types   []Ref        // classes of the topic, to be written as instanceOf
	typings bool         // other type-instance associations exist
	passing passing      // src, if it is a map
	err     error

	// The parts of elements. Each is written before the next is made.
	names       []xtm.Name
	variants    []xtm.Variant
	occurrences []xtm.Occurrence
	roles       []xtm.Role
	refs        []xtm.Ref
}

// unused are writers that are kept for reuse: most documents are small, and there may be one for
// each topic of a map.
var unused = sync.Pool{New: func() any { return new(writer) }}

func newWriter(w io.Writer, src Source, form Form) *writer {
	f := unused.Get().(*writer)
	f.enc.Reset(w, form.Version, tmdm.Locator(form.SP))
	f.src, f.content, f.err = src, form.ContentOnly, nil
	if f.written == nil {
		f.written = map[Ref]bool{}
	}
	return f
}

// release makes f available for reuse. It drops a set that has grown, because clearing it costs as much as its former
// size.
func (f *writer) release() {
	f.enc.Reset(nil, xtm.V21, "")
	f.src = nil
	f.passing.release()
	if len(f.written)+len(f.passing.associations) > 100 {
		f.written, f.passing = nil, passing{}
	}
	clear(f.written)
	unused.Put(f)
}

func (f *writer) close() error {
	if f.err == nil {
		f.err = f.enc.Close()
	}
	return f.err
}

// classes sets the types of a topic that can be written as instanceOf, and whether it has other type-instance
// associations.
func (f *writer) classes(instance Ref) {
	f.types, f.typings = f.types[:0], false
	f.src.AssociationsOf(instance, AsInstance)(func(a *Association, err error) bool {
		if err != nil {
			f.err = err
			return false
		}
		if class, ok := f.class(a); ok {
			f.types = append(f.types, class)
		} else {
			f.typings = true
		}
		return true
	})
}

// class returns the class of a where a can be written as instanceOf of the instance.
func (f *writer) class(a *Association) (class Ref, ok bool) {
	class, _, ok = a.TypeInstance()
	return class, ok && (f.content || isBare(a))
}

// isBare reports whether neither a nor its roles have item identifiers.
func isBare(a *Association) bool {
	n := len(a.ItemIdentifiers)
	for i := range a.Roles {
		n += len(a.Roles[i].ItemIdentifiers)
	}
	return n == 0
}

// associations writes the associations in which player takes part as part, except those written as instanceOf.
func (f *writer) associations(player Ref, part Part) {
	if f.err != nil {
		return
	}
	f.src.AssociationsOf(player, part)(func(a *Association, err error) bool {
		if err != nil {
			f.err = err
			return false
		}
		if _, ok := f.class(a); ok && part == AsInstance {
			return true
		}
		f.association(a)
		return f.err == nil
	})
}

// association writes an association, and the stubs of the topics that it mentions.
func (f *writer) association(a *Association) {
	f.element(a)
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
	id, ok := Identity{}, false
	if !f.content {
		if id, ok, f.err = identityOf(f.src, ref); f.err != nil {
			return
		}
	}
	if !ok || id.TopicSI() != ref {
		id = Identity{SubjectIdentifiers: []tmdm.Locator{ref}}
	}
	f.stub(id)
}

// ids returns the item identifiers of a statement that are written.
func (f *writer) ids(all []tmdm.Locator) []tmdm.Locator {
	if f.content {
		return nil
	}
	return all
}

func (f *writer) stub(id Identity) {
	f.err = f.enc.Topic(&xtm.Topic{SubjectIdentifiers: id.SubjectIdentifiers, SubjectLocators: id.SubjectLocators})
}

// topic writes the element of a topic.
func (f *writer) topic(t *Topic, types []Ref) {
	if f.err != nil {
		return
	}
	f.names, f.variants, f.occurrences, f.refs = f.names[:0], f.variants[:0], f.occurrences[:0], f.refs[:0]
	for i := range t.Names {
		n := &t.Names[i]
		before := len(f.variants)
		for j := range n.Variants {
			v := &n.Variants[j]
			f.variants = append(f.variants, xtm.Variant{
				ItemIdentifiers: f.ids(v.ItemIdentifiers), Reifier: reference(v.Reifier),
				Value: v.Value, Datatype: v.Datatype, Scope: f.references(v.Scope),
			})
		}
		f.names = append(f.names, xtm.Name{
			ItemIdentifiers: f.ids(n.ItemIdentifiers), Reifier: reference(n.Reifier),
			Value: n.Value, Type: reference(n.Type), Scope: f.references(n.Scope), Variants: f.variants[before:],
		})
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		f.occurrences = append(f.occurrences, xtm.Occurrence{
			ItemIdentifiers: f.ids(o.ItemIdentifiers), Reifier: reference(o.Reifier),
			Value: o.Value, Datatype: o.Datatype, Type: reference(o.Type), Scope: f.references(o.Scope),
		})
	}
	f.err = f.enc.Topic(&xtm.Topic{
		SubjectIdentifiers: t.SubjectIdentifiers, SubjectLocators: t.SubjectLocators,
		Types: f.references(types), Names: f.names, Occurrences: f.occurrences,
	})
}

// element writes the element of an association.
func (f *writer) element(a *Association) {
	if f.err != nil {
		return
	}
	f.roles, f.refs = f.roles[:0], f.refs[:0]
	for i := range a.Roles {
		r := &a.Roles[i]
		f.roles = append(f.roles, xtm.Role{
			ItemIdentifiers: f.ids(r.ItemIdentifiers), Reifier: reference(r.Reifier),
			Type: reference(r.Type), Player: reference(r.Player),
		})
	}
	f.err = f.enc.Association(&xtm.Association{
		ItemIdentifiers: f.ids(a.ItemIdentifiers), Reifier: reference(a.Reifier),
		Type: reference(a.Type), Scope: f.references(a.Scope), Roles: f.roles,
	})
}

func reference(ref Ref) xtm.Ref {
	if ref == "" {
		return xtm.Ref{}
	}
	return xtm.SubjectIdentifier(ref)
}

func (f *writer) references(refs []Ref) []xtm.Ref {
	before := len(f.refs)
	for _, ref := range refs {
		f.refs = append(f.refs, reference(ref))
	}
	return f.refs[before:]
}
