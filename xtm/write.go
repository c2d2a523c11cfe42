package xtm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// WriteOptions are the options for writing a map.
type WriteOptions struct {
	Version   Version      // default V21
	Base      tmdm.Locator // of the document; see NewEncoder
	NameTypes NameTypes    // applies to XTM 1.0
}

// Write writes tm to w, topics first, both in the order of the map, so the output is deterministic. It writes
// type-instance associations without item identifiers as the types of their instances. It returns the items that the
// version cannot represent.
//
// A topic without any identifier gets an XML id with its position in the map, and so an item identifier when it is
// read; in versions that require ids, so does each topic without a usable item identifier.
func Write(w io.Writer, tm *tmdm.TopicMap, o WriteOptions) (Losses, error) {
	x := newExporter(w, tm, o)
	if err := x.write(func(tmdm.Construct) error { return nil }); err != nil {
		return x.enc.Losses(), err
	}
	return x.enc.Losses(), x.enc.Close()
}

// Check returns an error that names the first construct of a map that cannot be written as XTM, or that readers with
// the default [Limits] would refuse. Maps from XTM have none; those from other notations may.
func Check(tm *tmdm.TopicMap) error {
	var doc bytes.Buffer
	x := newExporter(&doc, tm, WriteOptions{})
	return x.write(func(c tmdm.Construct) error { // each construct was written into its own document
		err := x.enc.Close()
		least := 4 << 10 // bytes, of a name that is too long
		if bytes.Contains(doc.Bytes(), []byte(tmdm.XSDAnyType)) {
			least = 1 << 10 // 200 elements, nested, are 1,400
		}
		if err == nil && doc.Len() > least { // smaller documents are within all limits
			for d := NewDecoder(&doc, Options{Base: "x:"}); err == nil; {
				_, err = d.Next()
			}
		}
		if refused, ok := errors.AsType[*SyntaxError](err); ok {
			return &EncodeError{tmdm.Describe(c), "readers refuse it: " + refused.Reason}
		}
		if err != nil && err != io.EOF {
			return err
		}
		doc.Reset()
		x.enc.Reset(&doc, V21, "")
		x.enc.prefix = noBase
		return nil
	})
}

// exporter makes elements of the constructs of a map. It makes all of them in
// the same memory, since the encoder is done with one before the next is made.
type exporter struct {
	tm  *tmdm.TopicMap
	enc *Encoder
	ids map[*tmdm.Topic]tmdm.Locator // item identifiers made up for the sake of an id

	typeInstance, instance *tmdm.Topic // the topics of type-instance associations, if any

	topicElement       Topic
	associationElement Association
	variantElements    []Variant // of all names of the topic
	refRoom            []Ref     // of all types and scopes of the element
}

func newExporter(w io.Writer, tm *tmdm.TopicMap, o WriteOptions) *exporter {
	e := NewEncoder(w, cmp.Or(o.Version, V21), o.Base)
	e.NameTypes = o.NameTypes
	e.prefix = cmp.Or(e.prefix, noBase)
	x := &exporter{tm: tm, enc: e, ids: map[*tmdm.Topic]tmdm.Locator{}}
	x.typeInstance = tm.TopicBySubjectIdentifier(tmdm.PSITypeInstance)
	x.instance = tm.TopicBySubjectIdentifier(tmdm.PSIInstance)
	e.taken = x.taken
	x.makeIDs()
	return x
}

// makeIDs makes up ids for the topics that need one. No id is one that the map
// knows as an item identifier of another topic.
func (x *exporter) makeIDs() {
	n := 0
	for t := range x.tm.Topics() {
		self := self(t)
		if !self.IsZero() && (x.enc.version == V21 || slices.ContainsFunc(t.ItemIdentifiers(), x.isID)) {
			continue
		}
		n++
		id := madeID(self)
		if self.IsZero() {
			id = fmt.Sprintf("anonymous-%d", n)
		}
		for next, i := id, 2; ; i++ {
			l := tmdm.Locator(x.enc.prefix + next)
			if x.free(l, t) {
				x.ids[t] = l
				break
			}
			next = fmt.Sprintf("%s-%d", id, i)
		}
	}
}

// isID reports whether l makes an XML id that was not made up.
func (x *exporter) isID(l tmdm.Locator) bool {
	id, ok := x.enc.xmlID(l)
	return ok && !isMade(id)
}

// self returns a reference to t, by its first identifier.
func self(t *tmdm.Topic) Ref {
	e := Topic{ItemIdentifiers: t.ItemIdentifiers(), SubjectIdentifiers: t.SubjectIdentifiers(),
		SubjectLocators: t.SubjectLocators()}
	return e.self()
}

// write writes the elements, and calls done after each.
func (x *exporter) write(done func(tmdm.Construct) error) error {
	written := func(c tmdm.Construct, err error) error {
		if err == nil {
			err = done(c)
		}
		return err
	}
	m := &Map{ItemIdentifiers: x.statementIDs(x.tm), Reifier: x.ref(x.tm.Reifier())}
	if err := written(x.tm, x.enc.Map(m)); err != nil {
		return err
	}
	for t := range x.tm.Topics() {
		if err := written(t, x.enc.Topic(x.topic(t))); err != nil {
			return err
		}
	}
	for a := range x.tm.Associations() {
		if x.isTypeOnly(a) {
			continue
		}
		if err := written(a, x.enc.Association(x.association(a))); err != nil {
			return err
		}
	}
	return nil
}

// isTypeOnly reports whether a has no content except the type of a topic.
func (x *exporter) isTypeOnly(a *tmdm.Association) bool {
	if a.Type() != x.typeInstance || len(a.Roles()) != 2 || len(a.ItemIdentifiers()) > 0 {
		return false
	}
	for _, r := range a.Roles() {
		if len(r.ItemIdentifiers()) > 0 {
			return false
		}
	}
	_, _, ok := a.TypeInstance()
	return ok
}

func (x *exporter) topic(t *tmdm.Topic) *Topic {
	x.variantElements, x.refRoom = x.variantElements[:0], x.refRoom[:0]
	e := &x.topicElement
	*e = Topic{
		ItemIdentifiers:    t.ItemIdentifiers(),
		SubjectIdentifiers: t.SubjectIdentifiers(),
		SubjectLocators:    t.SubjectLocators(),
		Names:              e.Names[:0],
		Occurrences:        e.Occurrences[:0],
		id:                 strings.TrimPrefix(string(x.ids[t]), x.enc.prefix),
	}
	for _, r := range t.RolesPlayed() {
		if a := r.Association(); r.Type() == x.instance && x.isTypeOnly(a) {
			class, _, _ := a.TypeInstance()
			x.refRoom = append(x.refRoom, x.ref(class))
		}
	}
	e.Types = x.refRoom
	for _, n := range t.Names() {
		name := Name{
			ItemIdentifiers: x.statementIDs(n),
			Reifier:         x.ref(n.Reifier()),
			Value:           n.Value(),
			Type:            x.ref(n.Type()),
			Scope:           x.refs(n.Scope()),
		}
		before := len(x.variantElements)
		for _, v := range n.Variants() {
			x.variantElements = append(x.variantElements, Variant{
				ItemIdentifiers: x.statementIDs(v),
				Reifier:         x.ref(v.Reifier()),
				Value:           v.Value(),
				Datatype:        v.Datatype(),
				Scope:           x.refs(v.Scope()),
			})
		}
		name.Variants = x.variantElements[before:]
		e.Names = append(e.Names, name)
	}
	for _, o := range t.Occurrences() {
		e.Occurrences = append(e.Occurrences, Occurrence{
			ItemIdentifiers: x.statementIDs(o),
			Reifier:         x.ref(o.Reifier()),
			Value:           o.Value(),
			Datatype:        o.Datatype(),
			Type:            x.ref(o.Type()),
			Scope:           x.refs(o.Scope()),
		})
	}
	return e
}

func (x *exporter) association(a *tmdm.Association) *Association {
	x.refRoom = x.refRoom[:0]
	e := &x.associationElement
	*e = Association{
		ItemIdentifiers: x.statementIDs(a),
		Reifier:         x.ref(a.Reifier()),
		Type:            x.ref(a.Type()),
		Scope:           x.refs(a.Scope()),
		Roles:           e.Roles[:0],
	}
	for _, r := range a.Roles() {
		e.Roles = append(e.Roles, Role{
			ItemIdentifiers: x.statementIDs(r),
			Reifier:         x.ref(r.Reifier()),
			Type:            x.ref(r.Type()),
			Player:          x.ref(r.Player()),
		})
	}
	return e
}

// statementIDs returns the item identifiers of a statement. In XTM 1.0 it omits those that are the subject identifier
// of a topic, because they would make that topic a reifier.
func (x *exporter) statementIDs(c tmdm.Construct) []tmdm.Locator {
	ids := c.ItemIdentifiers()
	if len(ids) == 0 || x.enc.version != V10 {
		return ids
	}
	means := func(l tmdm.Locator) bool { return x.tm.TopicBySubjectIdentifier(l) != nil }
	if !slices.ContainsFunc(ids, means) {
		return ids
	}
	kept := slices.DeleteFunc(slices.Clone(ids), means)
	x.enc.losses.ItemIdentifiers += len(ids) - len(kept)
	return kept
}

// ref refers to t by the id of its element, if an item identifier provides it, and else by its first identifier.
func (x *exporter) ref(t *tmdm.Topic) Ref {
	if t == nil {
		return Ref{}
	}
	made, isMade := x.ids[t]
	switch {
	case x.enc.version == V20:
	case len(t.SubjectIdentifiers()) > 0:
		// Values that a reader supplies must be recognised as such.
		for _, l := range t.SubjectIdentifiers() {
			switch l {
			case tmdm.PSIDefaultNameType, PSIAssociation, PSIOccurrence, PSIRole:
				return SubjectIdentifier(l)
			}
		}
		if isMade {
			return SubjectIdentifier(t.SubjectIdentifiers()[0])
		}
	}
	if isMade {
		return ItemIdentifier(made)
	}
	for _, l := range t.ItemIdentifiers() {
		if x.isID(l) {
			return ItemIdentifier(l)
		}
	}
	return self(t)
}

func (x *exporter) refs(s *tmdm.Scope) []Ref {
	before := len(x.refRoom)
	for _, t := range s.Themes() {
		x.refRoom = append(x.refRoom, x.ref(t))
	}
	return x.refRoom[before:]
}

// free reports whether l can become an item identifier of t without another meaning in the map. A nil t stands for a
// statement.
func (x *exporter) free(l tmdm.Locator, t *tmdm.Topic) bool {
	if other := x.tm.TopicBySubjectIdentifier(l); other != nil && other != t {
		return false
	}
	switch other := x.tm.ConstructByItemIdentifier(l).(type) {
	case nil:
		return true
	case *tmdm.Topic:
		return other == t
	default:
		return false
	}
}

// taken implements [Encoder.taken].
func (x *exporter) taken(id string, self Ref) bool {
	var t *tmdm.Topic
	switch self.Kind {
	case ByItemIdentifier:
		t, _ = x.tm.ConstructByItemIdentifier(self.Locator).(*tmdm.Topic)
	case BySubjectIdentifier:
		t = x.tm.TopicBySubjectIdentifier(self.Locator)
	case BySubjectLocator:
		t = x.tm.TopicBySubjectLocator(self.Locator)
	}
	return !x.free(tmdm.Locator(x.enc.prefix+id), t)
}

// Copy writes a document in another version, element by element: it keeps references unchanged and merges nothing.
func Copy(w io.Writer, version Version, r io.Reader, o Options) error {
	var to Encoder
	to.Reset(w, version, o.Base)
	for from := NewDecoder(r, o); ; {
		e, err := from.Next()
		switch e := e.(type) {
		case *Topic:
			err = to.Topic(e)
		case *Association:
			err = to.Association(e)
		}
		if err == io.EOF {
			return to.Close()
		}
		if err != nil {
			return err
		}
	}
}
