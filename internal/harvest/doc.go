// Package harvest finds out what has become of the records of a source since it
// was looked at last, and keeps copies of them in a folder.
//
// A source is a set of records; each has an identifier for life, a time at which it was
// last modified, and representations at URLs. [AtomPMH] reads what has happened from a
// feed of the Atom Feed Protocol for Metadata Harvesting, atompmh.go has its rules.
// [ResourceSync] reads it from the documents of a Source of ResourceSync (Z39.99): where
// they are (rsdiscover.go), all there is (rslists.go), what has changed (rschanges.go), and
// packages with the content (rsdumps.go).
//
// [News.Todo] compares that with the records that are held. Whoever holds records is a
// [Holder]: a [Folder] is one, for records of any format; the client, which makes topic
// maps of records, is another. A Folder is flat (names.go), or a mirror, laid out as URIs
// are (tree.go), which [AuditMirror] compares with its Source.
package harvest
