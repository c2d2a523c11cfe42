package xtm

import "github.com/tmshare/tmshare/tmdm"

// Version is a version of the syntax.
type Version string

// The versions that documents declare: XTM 1.0 by its namespace, XTM 2.0 and
// 2.1 (ISO 13250-3) by the version attribute.
const (
	V10 Version = "1.0"
	V20 Version = "2.0"
	V21 Version = "2.1"
)

// Position is a place in a document, counted from 1; columns count bytes.
type Position struct {
	Line, Column int
}

// RefKind is the property of a topic that a Ref contains.
type RefKind uint8

// The kinds of references (ISO 13250-3 §4.20 to §4.22).
const (
	ByItemIdentifier RefKind = iota + 1
	BySubjectIdentifier
	BySubjectLocator
)

// Ref is a reference to a topic. Its zero value is no reference.
type Ref struct {
	Kind    RefKind
	Locator tmdm.Locator
}

// IsZero reports whether r is no reference.
func (r Ref) IsZero() bool { return r == Ref{} }

// ItemIdentifier returns a reference to the topic with the item identifier l.
func ItemIdentifier(l tmdm.Locator) Ref { return Ref{ByItemIdentifier, l} }

// SubjectIdentifier returns a reference to the topic with the subject identifier l.
func SubjectIdentifier(l tmdm.Locator) Ref { return Ref{BySubjectIdentifier, l} }

// SubjectLocator returns a reference to the topic with the subject locator l.
func SubjectLocator(l tmdm.Locator) Ref { return Ref{BySubjectLocator, l} }

// Element is an element of a document: a [*Topic], [*Association], [*MergeMap] or [*Map].
type Element interface {
	// Position is where the element's start tag begins, or zero where the
	// element was not read from a document.
	Position() Position
}

// Map holds properties of the topic map itself. A document yields it before all other elements, in one or several
// parts, or not at all.
type Map struct {
	ItemIdentifiers []tmdm.Locator
	Reifier         Ref
	Pos             Position
}

// Topic is a topic element. It may be one of several that describe the same
// topic. The first of its item identifiers is the one that its id makes.
type Topic struct {
	ItemIdentifiers    []tmdm.Locator
	SubjectIdentifiers []tmdm.Locator
	SubjectLocators    []tmdm.Locator
	Types              []Ref
	Names              []Name
	Occurrences        []Occurrence
	Pos                Position

	id string // of the element, where Write has made one up
}

// self returns a reference to t, by its first identifier.
func (t *Topic) self() Ref {
	switch {
	case len(t.SubjectIdentifiers) > 0:
		return SubjectIdentifier(t.SubjectIdentifiers[0])
	case len(t.SubjectLocators) > 0:
		return SubjectLocator(t.SubjectLocators[0])
	case len(t.ItemIdentifiers) > 0:
		return ItemIdentifier(t.ItemIdentifiers[0])
	}
	return Ref{}
}

// Name is a topic name.
type Name struct {
	ItemIdentifiers []tmdm.Locator
	Reifier         Ref
	Value           string
	Type            Ref // the decoder sets the default type if the document has none
	Scope           []Ref
	Variants        []Variant
}

// Variant is another form of a name. An empty datatype is xsd:string.
type Variant struct {
	ItemIdentifiers []tmdm.Locator
	Reifier         Ref
	Value           string
	Datatype        string
	// Scope is the scope of the variant in the data model: that of the name and the additional themes. Documents have
	// only the latter.
	Scope []Ref
}

// Occurrence is an occurrence. An empty datatype is xsd:string.
type Occurrence struct {
	ItemIdentifiers []tmdm.Locator
	Reifier         Ref
	Value           string
	Datatype        string
	Type            Ref
	Scope           []Ref
}

// Association is an association.
type Association struct {
	ItemIdentifiers []tmdm.Locator
	Reifier         Ref
	Type            Ref
	Scope           []Ref
	Roles           []Role
	Pos             Position
}

// Role is an association role.
type Role struct {
	ItemIdentifiers []tmdm.Locator
	Reifier         Ref
	Type            Ref
	Player          Ref
}

// MergeMap names another document to be merged. Its themes, in XTM 1.0 only, are added to the scope of all its names,
// occurrences and associations.
type MergeMap struct {
	Locator tmdm.Locator
	Themes  []Ref
	Pos     Position
}

// Position implements [Element].
func (m *Map) Position() Position { return m.Pos }

// Position implements [Element].
func (t *Topic) Position() Position { return t.Pos }

// Position implements [Element].
func (a *Association) Position() Position { return a.Pos }

// Position implements [Element].
func (m *MergeMap) Position() Position { return m.Pos }
