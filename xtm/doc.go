// Package xtm reads and writes topic maps in XML: XTM 1.0, and XTM 2.0 and 2.1
// of ISO 13250-3.
//
// [Read] and [Write] handle whole maps. [Decoder] and [Encoder] handle documents
// as sequences of elements, such as [Topic] and [Association], which refer to
// topics by [Ref] and depend on nothing else in the document; so they work on
// documents of any size, in little memory. Read is a Decoder whose elements are
// put into a map, Write a walk over a map that feeds an Encoder.
//
// All locators are absolute and in the normal form of internal/iri. Documents
// are hostile until shown otherwise: errors are of the type [*SyntaxError], say
// where and why, and [Limits] bound what a document may cost. Nothing is fetched
// except by the Loader that the caller supplies.
//
// # XTM 1.0
//
// XTM 1.0 is older than the data model of ISO 13250-2, and is mapped to it. The
// decoder supplies the types that a document leaves out and replaces published
// subjects that have successors. It is left to Read, which sees the whole
// document, to find reifiers: a topic whose subject identifier is the item
// identifier of a statement reifies that statement, and the locator is taken
// from both. The encoder says the same by a stub topic behind the statement.
// What XTM 1.0 cannot carry at all is counted in [Losses].
//
// # Files
//
// scan.go hides the XML parser; decoder.go, xtm10.go and xtm2x.go are the
// reader; ahead.go reads long documents on a core of its own; build.go and
// finish.go make a map of what is read; encoder.go, encode10.go,
// encode2x.go and locator.go are the writer; write.go feeds it from a map.
//
// Sibling packages: tmdm is the model, tmdm/cxtm the canonical form, fragment
// cuts maps into the pieces that travel.
package xtm
