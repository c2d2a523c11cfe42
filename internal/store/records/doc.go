// Package records keeps the records of sources as rows: topics and associations, the indexes
// that lead to them, and how often each topic is mentioned. See package fragment for what a
// record is.
//
// [State] reads and writes the records of one generation of a source. [Cached] is a State that
// decodes each record once. [Loader] writes a whole generation, and [Expect] tells which rows
// there must be.
package records
