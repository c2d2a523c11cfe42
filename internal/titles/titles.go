// Package titles selects the title of a topic among its names. All output uses this one rule
// (docs/decisions/0042-titles.md), for a topic as an item of a map, as a record, or as stored bytes.
//
// A name is better than another one by the first of these in which they differ:
//
//   - its group: preferred names, then skos:altLabel, then all others, such as those in scopes that are no languages
//   - its language: in the order of the [Languages] of the reader; then none; then any
//   - the number of its themes that are no languages
//   - its type, in the order of the constants of kind
//   - the tag of its language, and its text, so that the order of names never counts
//
// Names of the type skos:hiddenLabel (SKOS reference, section 5.1) and sort names (ISO 13250-2 §7.4) are no titles, nor
// is white space.
package titles

import (
	"unicode"
	"unicode/utf8"
)

// Types of names.
const (
	PrefLabel   = "http://www.w3.org/2004/02/skos/core#prefLabel"
	AltLabel    = "http://www.w3.org/2004/02/skos/core#altLabel"
	HiddenLabel = "http://www.w3.org/2004/02/skos/core#hiddenLabel"
	LiteralForm = "http://www.w3.org/2008/05/skos-xl#literalForm" // the name of a label that is a resource (SKOS-XL)
	XLPrefLabel = "http://www.w3.org/2008/05/skos-xl#prefLabel"   // leads to such a label
	XLAltLabel  = "http://www.w3.org/2008/05/skos-xl#altLabel"
	Default     = "http://psi.topicmaps.org/iso13250/model/topic-name"
	RDFSLabel   = "http://www.w3.org/2000/01/rdf-schema#label"
	SchemaName  = "https://schema.org/name"
	schemaName1 = "http://schema.org/name" // as it was first, and is in many documents
	DCTitle     = "http://purl.org/dc/terms/title"
	dcTitle1    = "http://purl.org/dc/elements/1.1/title"
	FOAFName    = "http://xmlns.com/foaf/0.1/name"
)

// Labels are the properties of RDF whose values are names.
var Labels = []string{PrefLabel, AltLabel, HiddenLabel, RDFSLabel, SchemaName, schemaName1, DCTitle, dcTitle1, FOAFName}

// sortTheme is the theme of sort names.
const sortTheme = "http://psi.topicmaps.org/iso13250/model/sort"

// kind is the place of a type of names among others.
type kind uint8

const (
	prefLabel kind = iota
	literalForm
	standard
	rdfsLabel
	schema
	dcterms
	dc
	foaf // the last preferred one
	altLabel
	other
	hidden
)

func kindOf[T ~string | []byte](typ T) kind {
	switch string(typ) {
	case PrefLabel:
		return prefLabel
	case LiteralForm, XLPrefLabel:
		return literalForm
	case Default:
		return standard
	case RDFSLabel:
		return rdfsLabel
	case SchemaName, schemaName1:
		return schema
	case DCTitle:
		return dcterms
	case dcTitle1:
		return dc
	case FOAFName:
		return foaf
	case AltLabel, XLAltLabel:
		return altLabel
	case HiddenLabel:
		return hidden
	}
	return other
}

// name has the properties of a name that determine the choice.
type name[T ~string | []byte] struct {
	value    T
	kind     kind
	never    bool // it is no title
	foreign  int  // themes that are no languages
	language Tag
	place    int // of the language
}

func (n *name[T]) group() int {
	switch {
	case n.foreign > 0 || n.kind > altLabel:
		return 2
	case n.kind == altLabel:
		return 1
	}
	return 0
}

// Chooser chooses the best of the names given one after the other. It keeps only the best one.
type Chooser[T ~string | []byte] struct {
	Languages Languages

	found     bool
	best, now name[T]
}

// Name begins the next name. Its types and themes follow, and End.
func (c *Chooser[T]) Name(value T) {
	n := &c.now
	n.value, n.kind, n.never, n.foreign, n.language.n, n.place = value, other, false, 0, 0, c.Languages.none()
}

// Type adds an identifier of the type of the name.
func (c *Chooser[T]) Type(typ T) {
	k := kindOf(typ)
	c.now.never = c.now.never || k == hidden
	c.now.kind = min(c.now.kind, k)
}

// Theme adds the identifiers of a theme of the name.
func (c *Chooser[T]) Theme(identifiers ...T) {
	for _, id := range identifiers {
		if language, ok := LanguageOf(id); ok {
			place := c.Languages.place(&language)
			if c.now.language.n == 0 || less(place, &language, c.now.place, &c.now.language) {
				c.now.language, c.now.place = language, place
			}
			return
		}
		c.now.never = c.now.never || string(id) == sortTheme
	}
	c.now.foreign++
}

func less(place int, tag *Tag, otherPlace int, otherTag *Tag) bool {
	if place != otherPlace {
		return place < otherPlace
	}
	return tag.compare(otherTag) < 0
}

// Loses reports whether the name can no longer be the best one, whatever themes follow.
func (c *Chooser[T]) Loses() bool { return c.now.never || c.found && c.now.group() > c.best.group() }

// End ends the name, and reports whether it is the best one so far.
func (c *Chooser[T]) End() bool {
	n := &c.now
	if n.never || isBlank(n.value) || c.found && !n.betterThan(&c.best) {
		return false
	}
	c.best, c.found = *n, true
	return true
}

func (n *name[T]) betterThan(m *name[T]) bool {
	for _, d := range [...]int{n.group() - m.group(), n.place - m.place, n.foreign - m.foreign,
		int(n.kind) - int(m.kind)} {
		if d != 0 {
			return d < 0
		}
	}
	if d := n.language.compare(&m.language); d != 0 {
		return d < 0
	}
	return string(n.value) < string(m.value)
}

func isBlank[T ~string | []byte](value T) bool {
	if len(value) > 0 && ' ' < value[0] && value[0] < utf8.RuneSelf {
		return false // as nearly all
	}
	for len(value) > 0 {
		r, size := utf8.DecodeRuneInString(string(value[:min(len(value), utf8.UTFMax)]))
		if !unicode.IsSpace(r) {
			return false
		}
		value = value[size:]
	}
	return true
}

// Best returns the best name, if any can be a title.
func (c *Chooser[T]) Best() (value T, ok bool) { return c.best.value, c.found }

// Final reports whether no name of a later type can be better, because the best one is a preferred label of SKOS.
func (c *Chooser[T]) Final() bool {
	return c.found && c.best.group() == 0 && c.best.kind <= literalForm
}

// Language returns the language of the best name, or "".
func (c *Chooser[T]) Language() string { return c.best.language.String() }
