// Package ldes is an extension that offers each collection as a Linked Data Event Stream (LDES, over TREE), and follows
// streams of other servers. docs/ldes.md describes it.
//
//	publish.go   the documents of a stream of a collection
//	times.go     when its members were published, in whole milliseconds
//	protocol.go  finds a stream, to follow it
//	source.go    a round of it
//	document.go  a document of it
//	terms.go     what it says of itself
//	member.go    what a member says
package ldes

import (
	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
)

// Extension returns it.
func Extension() extension.Extension {
	return extension.Extension{Name: "ldes", Protocols: []follow.Protocol{Protocol()}, Serve: serve}
}

// The vocabularies of streams.
const (
	nsLDES = "https://w3id.org/ldes#"
	nsTREE = "https://w3id.org/tree#"
	nsAS   = "https://www.w3.org/ns/activitystreams#"
	nsDCT  = "http://purl.org/dc/terms/"
	nsSH   = "http://www.w3.org/ns/shacl#"
)

// The terms of both directions.
const (
	eventStream    = nsLDES + "EventStream"
	timestampPath  = nsLDES + "timestampPath"
	versionOfPath  = nsLDES + "versionOfPath"
	createObject   = nsLDES + "versionCreateObject"
	updateObject   = nsLDES + "versionUpdateObject"
	deleteObject   = nsLDES + "versionDeleteObject"
	retention      = nsLDES + "retentionPolicy"
	versionAmount  = nsLDES + "versionAmount"
	fullLog        = nsLDES + "fullLogDuration"
	treeView       = nsTREE + "view"
	treeMember     = nsTREE + "member"
	treeRelation   = nsTREE + "relation"
	treeNode       = nsTREE + "node"
	treePath       = nsTREE + "path"
	treeValue      = nsTREE + "value"
	treeShape      = nsTREE + "shape"
	notBefore      = nsTREE + "GreaterThanOrEqualToRelation"
	before         = nsTREE + "LessThanRelation"
	notAfter       = nsTREE + "LessThanOrEqualToRelation"
	equalTo        = nsTREE + "EqualToRelation"
	isVersionOf    = nsDCT + "isVersionOf"
	published      = nsAS + "published"
	created        = nsAS + "Create"
	updated        = nsAS + "Update"
	deleted        = nsAS + "Delete"
	xsdInteger     = "http://www.w3.org/2001/XMLSchema#integer"
	xsdDateTime    = "http://www.w3.org/2001/XMLSchema#dateTime"
	xsdDuration    = "http://www.w3.org/2001/XMLSchema#duration"
	timeFormat     = "2006-01-02T15:04:05.000Z"
	streamFragment = "#stream" // the name that the root of a stream has for it

	statementsOf = feeds.NamespaceOwn + "/statements" // how many a document has in its notation
)
