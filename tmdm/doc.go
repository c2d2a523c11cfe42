// Package tmdm is the Topic Maps Data Model of ISO 13250-2 in memory: one type
// per item, identity, equality and merging.
//
// A [TopicMap] holds topics and associations. A [Topic] is known by subject
// identifiers, subject locators and item identifiers, and carries names,
// occurrences and the roles that it plays. Types, themes, players and reifiers
// are topics.
//
// Associations state that a topic is an instance of a class, or a class a subtype of another (ISO 13250-2 §7.2, The
// type-instance relationship, and §7.3, The supertype-subtype relationship). Methods for them are [Topic.AddType],
// [Topic.Types] and [Topic.Instances]; [Topic.AddSupertype], [Topic.Supertypes] and [Topic.Subtypes]; and, through the
// whole hierarchy, [Topic.AllTypes], [Topic.AllInstances] and [Topic.IsInstanceOf].
//
// A topic leads to its names, occurrences and roles, all of them or those of a type, and a role to the
// [AssociationRole.Others]. [Topic.DisplayName] chooses a name for a reader. [TopicMap.Constructs] iterates over all
// items.
//
// Two topics that would share an identifier must be merged. An operation that would make them share one changes nothing
// and returns an [*IdentityError] that names the other topic; the caller then usually calls [Topic.Merge]. Methods of a
// merged topic act on the topic that it was merged into. Statements that become equal, by construction or by a merge,
// stay separate until [TopicMap.Normalize] removes the duplicates; readers of documents call it once at the end.
//
// The topics of a statement must belong to its map: for nil, a topic of another map or a removed one, methods return or
// panic with [ErrNoTopic], [ErrOtherMap] or [ErrRemoved], and change nothing. Queries accept any topic, and return
// false or nothing for a foreign one.
//
// Everything is iterated in order of creation, so that the same input gives the
// same output. A map may be read by several goroutines at once as long as none
// changes it and it was normalized after the last merge; until then, reading
// settles references. A [Scope] that the reader has held since before
// a merge is not settled by that, and must be looked up again. [TopicMap.Scope]
// may add to the map; readers have [Scope.ValidIn]. The package does no I/O.
//
// Sibling packages: tmdm/cxtm writes the canonical form, xtm reads and writes documents, fragment divides maps into
// parts for exchange.
package tmdm
