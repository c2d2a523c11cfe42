// Package tmdm is the Topic Maps Data Model of ISO 13250-2 in memory: one type
// per item, identity, equality and merging.
//
// A [TopicMap] holds topics and associations. A [Topic] is known by subject
// identifiers, subject locators and item identifiers, and carries names,
// occurrences and the roles that it plays. Types, themes, players and reifiers
// are topics. Type-instance relations are associations (ISO 13250-2 §7.2,
// The type-instance relationship); [Topic.Types] and [Topic.AddType] are short
// cuts to them.
//
// Two topics that come to share an identifier must be merged. An operation that
// would make them share one changes nothing and returns an [*IdentityError]
// that names the other topic; the caller decides, usually for [Topic.Merge]. A
// topic that was merged into another stands for it from then on: methods called
// on it act on the other. Statements that become equal, by construction or
// through a merge, stay side by side until [TopicMap.Normalize] removes the
// duplicates; readers of documents call it once at the end.
//
// Everything is iterated in order of creation, so that the same input gives the
// same output. A map may be read by several goroutines at once as long as none
// changes it and it was normalized after the last merge; until then, reading
// settles references. The package does no I/O.
//
// Sibling packages: tmdm/cxtm writes the canonical form, xtm reads and writes
// documents, fragment cuts maps into pieces that travel.
package tmdm
