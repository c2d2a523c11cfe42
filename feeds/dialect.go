package feeds

import "strings"

// The namespaces of elements, and of the link relations that are IRIs.
const (
	NamespaceAtom    = "http://www.w3.org/2005/Atom"
	NamespaceHistory = "http://purl.org/syndication/history/1.0" // RFC 5005
	NamespaceTMShare = "http://www.egovpt.org/tmshare"
	// NamespaceCWA is that of SDShare as the CEN workshop agreement had it.
	// Servers write it with and without a slash at the end.
	NamespaceCWA         = "http://www.egovpt.org/sdshare"
	NamespaceSDShare2012 = "http://www.sdshare.org/2012/core/"
	// NamespaceOwn holds the extensions of this project.
	NamespaceOwn = "https://github.com/tmshare/tmshare/ns/1"

	namespaceXML = "http://www.w3.org/XML/1998/namespace"
)

// The media types that we write.
const (
	MediaTypeAtom  = "application/atom+xml"
	MediaTypeXTM1  = "application/xtm1+xml"
	MediaTypeXTM2  = "application/x-tm+xml" // the root element has the version
	MediaTypeXTM21 = MediaTypeXTM2 + ";version=2.1"
	// MediaTypeTurtle is that of Turtle, one of the notations of RDF. A document that is offered in one
	// notation is offered in all.
	MediaTypeTurtle = "text/turtle"
	// MediaTypeBundle is the type of a feed document with the fragments of its entries in atom:content. The profile
	// (RFC 6906) distinguishes it from a document of the same feed without them.
	MediaTypeBundle = MediaTypeAtom + `;profile="` + NamespaceOwn + `/bundle"`
)

// Rel is a link relation: a registered name ("self", "prev-archive", "via") or
// an IRI.
type Rel = string

// The relations of TMShare. Find matches all spellings of each in the table below.
const (
	RelTopicMapFeed Rel = "topicmapfeed" // from a map's entry to its feed
	RelFragmentFeed Rel = "fragmentfeed" // from a map's feed to its fragments
	RelSnapshotFeed Rel = "snapshotfeed" // from a map's feed to its snapshots
	RelTopicMapData Rel = "topicmapdata" // from an entry to its fragment or snapshot
)

// RelCurrentSnapshot is our own relation, to a map as of now.
const RelCurrentSnapshot Rel = NamespaceOwn + "/current-snapshot"

// RelStateDigest is our own relation, from a map's fragments to the tree of its state digest. The paths to nodes
// are below that address.
const RelStateDigest Rel = NamespaceOwn + "/state-digest"

// RelBundle is our own relation, from a document of a map's fragments to the same document with the fragments in it.
const RelBundle Rel = NamespaceOwn + "/bundle"

// RelDuplicate leads from the fragments feed to the same one on another server (RFC 6249 §3.1, "duplicate" Link
// Relation).
const RelDuplicate Rel = "duplicate"

// RelOrigin is our own relation, from the fragments feed of a replica to that of the collection that it replicates.
const RelOrigin Rel = NamespaceOwn + "/origin"

// RelFormer is our own relation, from a collection in the overview to an address that it had, which leads to it.
const RelFormer Rel = NamespaceOwn + "/former"

// CheckedHeader is the header of an answer with a time by the clock of the origin: it shows all that the origin had
// published by then. It is the time of the data, whenever the answer was made.
const CheckedHeader = "TMShare-Checked"

// An answer to a request with AskedParameter in its query repeats the value in AskedHeader, so a client that sends a
// random value knows that the answer does not come from a cache. Values have up to 64 letters and digits of ASCII,
// dots, hyphens and underscores; others are not repeated.
const (
	AskedParameter = "asked"
	AskedHeader    = "TMShare-Asked"
)

// RelOpenings is our own relation, from a map's fragments to the list of the openings of the database
// ([Feed.Openings]).
const RelOpenings Rel = NamespaceOwn + "/openings"

// RelCheckpoint is TMShare's relation from a map's fragments to the signed checkpoint of the log. Below that address,
// "/consistency" has proofs that one log continues another.
const RelCheckpoint Rel = NamespaceOwn + "/checkpoint"

// RelDerivedFrom is TMShare's relation from the fragments feed of a derived collection to that of each collection that
// it is derived from. Those are not derived themselves.
const RelDerivedFrom Rel = NamespaceOwn + "/derived-from"

// The relations, our own too, by which other feeds lead to a feed of records (Atom-PMH).
const (
	RelRecordsFeed     Rel = NamespaceOwn + "/records-feed"
	RelCompleteRecords Rel = NamespaceOwn + "/complete-records-feed" // the same as a complete feed
)

// TMShare's relations by which a Capability List (Z39.99 §9) states properties of a feed of fragments: the
// ServerSrcLocatorPrefix, and the history of the topic map. Both are only names.
const (
	RelPrefix  Rel = NamespaceOwn + "/source-locator-prefix"
	RelHistory Rel = NamespaceOwn + "/history"
)

// The relations of SDShare 2012, which are written in addition to those of TMShare.
const (
	RelSDShareCollectionFeed Rel = NamespaceSDShare2012 + "collectionfeed"
	RelSDShareFragmentsFeed  Rel = NamespaceSDShare2012 + "fragmentsfeed"
	RelSDShareSnapshotsFeed  Rel = NamespaceSDShare2012 + "snapshotsfeed"
	RelSDShareFragment       Rel = NamespaceSDShare2012 + "fragment"
	RelSDShareSnapshot       Rel = NamespaceSDShare2012 + "snapshot"
)

// The relations of the CWA era, which are written too: its clients look for no others.
const (
	RelCWACollectionFeed Rel = NamespaceCWA + "/collectionfeed"
	RelCWAFragmentsFeed  Rel = NamespaceCWA + "/fragmentsfeed"
	RelCWASnapshotsFeed  Rel = NamespaceCWA + "/snapshotsfeed"
	RelCWAFragment       Rel = NamespaceCWA + "/fragment"
	RelCWASnapshot       Rel = NamespaceCWA + "/snapshot"
)

// sdshareNames maps SDShare's names to the relations of TMShare. They follow the namespace, after a slash if it ends in
// none; some servers omit that slash.
var sdshareNames = map[string]Rel{
	"collectionfeed": RelTopicMapFeed,
	"fragmentsfeed":  RelFragmentFeed,
	"snapshotsfeed":  RelSnapshotFeed,
	"fragment":       RelTopicMapData,
	"snapshot":       RelTopicMapData,
}

// concept returns the TMShare relation that rel spells in one of the dialects,
// or rel in its canonical form.
func concept(rel Rel) Rel {
	// RFC 8288 §2.1: relations compare without regard to case, IRIs included.
	rel = strings.ToLower(canonicalRel(rel))
	for _, space := range [...]string{NamespaceSDShare2012, NamespaceCWA + "/", NamespaceCWA} {
		if local, ok := strings.CutPrefix(rel, space); ok {
			if c, ok := sdshareNames[local]; ok {
				return c
			}
		}
	}
	return rel
}

// ianaRelations begins the IRI form of a registered relation (RFC 4287 §4.2.7.2).
const ianaRelations = "http://www.iana.org/assignments/relation/"

// canonicalRel returns the one spelling of a registered relation; other
// relations stay as they are.
func canonicalRel(rel Rel) Rel {
	if rel == "" {
		return "alternate"
	}
	if n := len(ianaRelations); len(rel) > n && strings.EqualFold(rel[:n], ianaRelations) {
		if local := rel[n:]; !strings.ContainsAny(local, ":/") {
			rel = local
		}
	}
	if strings.Contains(rel, ":") {
		return rel
	}
	return strings.ToLower(rel)
}

// Elements that TMShare and SDShare add to Atom.
const (
	elemPrefix     = "ServerSrcLocatorPrefix"    // in the examples of TMShare
	elemPrefixLong = "ServerSourceLocatorPrefix" // in its text
	elemTopicSI    = "TopicSI"
	elemTopicSL    = "TopicSL"
	elemTopicII    = "TopicII"
	elemResource   = "resource"
	elemState      = "state"
	attrCovered    = "covered"
	elemDigest     = "digest"
	elemCondition  = "condition"
	elemCheckpoint = "checkpoint"
	elemKey        = "key"
	elemOpening    = "opening"
	attrCommit     = "commit"
	attrRendering  = "rendering"
	attrNote       = "note" // of a summary: its text without the changes
	dash           = " — "  // stands before these
	attrOmits      = "omits"
	omitsInstances = "instances" // its value
)

// name is an expanded name (Namespaces in XML 1.0 §2.1).
type name struct{ space, local string }

// meaning returns the TMShare name of an extension element in any dialect; "" for an unknown element.
func (n name) meaning() string {
	switch n.space {
	case NamespaceSDShare2012:
		if n.local == elemResource {
			return elemTopicSI
		}
	case NamespaceTMShare, NamespaceCWA, NamespaceCWA + "/":
		switch n.local {
		case elemPrefix, elemPrefixLong:
			return elemPrefix
		case elemTopicSI, elemTopicSL, elemTopicII:
			return n.local
		}
	case NamespaceOwn:
		switch n.local {
		case elemState, elemDigest, elemCondition, elemCheckpoint, elemKey, elemOpening:
			return n.local
		}
	}
	return ""
}
