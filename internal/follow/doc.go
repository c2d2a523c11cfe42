// Package follow updates a sink from a source.
//
// A [Source] finds the changes since a mark: from the fragments feed of a server of TMShare (package tmshare), from a
// feed of the Atom Feed Protocol for Metadata Harvesting (package atompmh), or from the documents of a Source of
// ResourceSync (package resourcesync).
//
// Reading a source returns a [Delta]. The Delta of a fragments feed is a [Log] of changes, which are applied in order.
// The other sources are sets of records. Each record has a permanent identifier, the time of its last change, and
// representations at URLs. Their Delta has statements about records; [Delta.Plan] compares them with the [Inventory] of
// the sink.
//
// A [Sink] applies the plan: a folder with a file for each record (package folder), or the client, which converts
// records to topic maps. The [Engine] connects both.
package follow
