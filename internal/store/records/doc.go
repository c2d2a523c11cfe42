// Package records stores the records of sources as rows: topics and associations, their indexes, and the number of
// mentions of each topic. See package fragment for the definition of a record.
//
// [State] reads and writes the records of one generation of a source. [Cached] is a State that decodes each record
// once. [Loader] writes a whole generation, and [Expect] returns the rows that must exist.
package records
