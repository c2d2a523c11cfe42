// Package merge updates a subscriber's state from its sources.
//
// [Apply] is the update algorithm of TMShare ("The Topic Map Fragment Update Algorithm") for one entry of a fragments
// feed. It works on the records of one source, a [State]. Because sources are kept apart, statements of one never
// affect those of another. Each record of a source is its claim, so no count of source locators is needed. TMShare
// defines the algorithm for one map of all sources, with source locators as claims. Such a map does not record the
// source of a topic: after one source has merged topics of another, the next fragment removes too much.
//
// [Join] computes the merged view of several sources as a topic map: it merges topics that share identifiers,
// transitively, and equal statements.
//
// [View] computes the same view on demand: one merged topic, or a whole map as a stream, with the sources of each
// statement.
//
// [Memory] is a State in memory, for programs that embed the library and as the reference in tests of stores. The
// package does no I/O.
package merge
