// Package merge brings a subscriber's state in step with its sources.
//
// [Apply] is the update algorithm of TMShare ("The Topic Map Fragment Update
// Algorithm") for one entry of a fragments feed. It works on the records of one
// source, a [State]: sources are kept apart, so what one says is never lost or
// kept by accident because of what another says. Each record of a source is its
// claim; an explicit count of source locators is not needed. TMShare words the
// algorithm for one map that holds all sources, with source locators as claims.
// Such a map does not tell whose a topic is: once one source has joined topics of
// another, the next fragment takes away what it should not.
//
// [Join] derives the merged view of several sources as a topic map: topics whose
// identifiers meet are merged, transitively, and equal statements are one.
//
// [View] is that view as a source, made as it is read: one merged topic, or a
// whole map as a stream, and who asserts what.
//
// [Memory] is a State in memory, for programs that embed the library and as the
// plain counterpart against which stores are tested. The package does no I/O.
package merge
