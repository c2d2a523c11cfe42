// Package xtm reads and writes topic maps in XML: XTM 1.0, and XTM 2.0 and 2.1
// of ISO 13250-3.
//
// [Read] and [Write] handle whole maps. [Decoder] and [Encoder] handle documents as sequences of elements, such as
// [Topic] and [Association], which refer to topics by [Ref] and are independent of the rest of the document; so they
// process documents of any size in little memory. Read puts the elements of a Decoder into a map, Write passes the
// items of a map to an Encoder.
//
// All locators are absolute and in the normal form of internal/iri. Documents may be hostile: errors are of the type
// [*SyntaxError], with place and reason, and [Limits] bound the cost of a document. Only the Loader that the caller
// supplies fetches anything.
//
// # XTM 1.0
//
// XTM 1.0 is older than the data model of ISO 13250-2, and is mapped to it. The decoder adds the types that a document
// leaves out and replaces published subjects that have successors. Only Read, which has the whole document, finds
// reifiers: a topic whose subject identifier is the item identifier of a statement reifies that statement, and the
// locator is removed from both. The encoder writes a reifier as a stub topic after the statement. [Losses] counts the
// items that XTM 1.0 cannot represent.
//
// # Files
//
// scan.go hides the XML parser; decoder.go, xtm10.go and xtm2x.go are the reader; ahead.go reads long documents in
// parallel; build.go and finish.go build a map of the elements; encoder.go, encode10.go, encode2x.go and locator.go are
// the writer; write.go passes a map to it.
//
// Sibling packages: tmdm is the model, tmdm/cxtm the canonical form, fragment divides maps into parts for exchange.
package xtm
