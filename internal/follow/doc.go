// Package follow brings a sink in step with a source.
//
// A [Source] tells what has changed since a mark: from the fragments feed of a server of TMShare
// (package tmshare), from a feed of the Atom Feed Protocol for Metadata Harvesting (package atompmh), or
// from the documents of a Source of ResourceSync (package resourcesync).
//
// A look at a source brings a [Delta]. That of a fragments feed is a [Log] of changes, each of which
// is done in its turn. The others are sets of records, each with an identifier for life, a time at which
// it was last modified, and representations at URLs. Their Delta is statements about records; [Delta.Plan]
// compares them with the [Inventory] of whoever holds records.
//
// A [Sink] does what is planned: a folder with a file for each record (package folder), or the client,
// which makes topic maps of what it fetches. The [Engine] stands between both.
package follow
