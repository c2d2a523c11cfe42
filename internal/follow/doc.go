// Package follow holds what the sources of records and those who hold records share.
//
// A source is a set of records; each has an identifier for life, a time at which it was
// last modified, and representations at URLs. A [Source] tells what has become of them: from a
// feed of the Atom Feed Protocol for Metadata Harvesting (package atompmh), or from the
// documents of a Source of ResourceSync (package resourcesync).
//
// A look at a source brings a [Delta]: statements about records, which go to files where they
// are many. [Delta.Plan] compares them with the [Inventory] of whoever holds records: a folder
// with a file for each (package folder), or the client, which makes topic maps of them.
package follow
