// Package feeds models, writes and reads the Atom documents (RFC 4287) by which
// servers publish topic maps: the list of maps, the two feeds of a map, its
// snapshots and its fragments.
//
// The model is one [Feed] of [Entry] values, with the marks and links of
// archived and complete feeds (RFC 5005) and the elements that TMShare and
// SDShare add. [Feed.Encode] writes it, [Decode] reads it. Three generations of
// the protocol spell things differently; dialect.go has the whole table, and
// [Feed.Find] and [Entry.Find] ask for a link by what it means rather than by
// how it is spelled:
//
//	f, err := feeds.Decode(body, "http://example.org/topicmaps/egov/fragments", feeds.Limits{})
//	for _, e := range f.Entries {
//		for _, l := range e.Find(feeds.RelTopicMapData) { … l.Href, l.Type … }
//	}
//
// The package handles documents only. Fetching them and following their links
// belongs to the client, and what the links lead to is read by the packages
// fragment and xtm.
package feeds

import "time"

// Feed is one feed document (RFC 4287 §4.1.1): the whole of a logical feed, or
// one document of a paged or archived one (RFC 5005).
type Feed struct {
	// ID identifies the logical feed, so all documents of an archived feed
	// bear the same. Encode wants an absolute IRI; Decode takes any string.
	ID string
	// Title and Subtitle are plain text on one line. Decode reduces HTML and
	// XHTML to text.
	Title, Subtitle string
	// Author is the name of the first author.
	Author    string
	Generator string
	// Language is that of the texts of the feed and its entries: a tag of BCP 47 in lower case, or "" where none is
	// stated. TitleLanguage and SubtitleLanguage are "" unless these texts are in another one.
	Language, TitleLanguage, SubtitleLanguage string
	// Updated is zero where a decoded feed does not say.
	Updated time.Time
	Links   []Link

	// ServerSrcLocatorPrefix begins the item identifiers of all that this
	// source asserts. "" means that the feed declares none.
	ServerSrcLocatorPrefix string

	// Checkpoint is the signed checkpoint of the log as far as the feed shows it. Key is the public key of its signer.
	// Both are "" where the log is not signed.
	Checkpoint, Key string

	// Openings are the last openings of the database that the feed is read from, random ids, the newest first. A feed
	// that lacks one which it had, or has another after it, comes from a database that was restored. nil: the feed
	// states none.
	Openings []string

	// Rendering is the number of the way in which the fragments of the entries are written, which fixes their bytes; 0:
	// not stated.
	Rendering uint64

	Complete bool // fh:complete, RFC 5005 §2 (Complete Feeds)
	Archive  bool // fh:archive, RFC 5005 §4 (Archived Feeds)

	Entries []Entry // in document order
}

// Entry is one entry of a feed (RFC 4287 §4.1.2): a map, a feed of a map, a
// snapshot or a fragment.
type Entry struct {
	ID             string // as Feed.ID; decoded entries always have one
	Title, Summary string
	// Changes says in words what a fragment has changed, for readers of feeds. It stands in the summary, behind the text
	// of Summary, which is marked there.
	Changes string
	Author  string // "" where the feed's author is the entry's
	// Language is that of the feed, unless the entry states its own. SummaryLanguage is "" unless the summary is in
	// another one.
	Language, SummaryLanguage string
	// Updated orders the entries of a feed. It is written with six fractional
	// digits; finer fractions that another server sends are kept when read.
	Updated time.Time
	Links   []Link

	// TopicSI names the topic that a fragment describes, by subject
	// identifiers. At most one is written; other servers repeat the element.
	// A decoded value that is no absolute IRI is kept as it came: no topic
	// will be found under it, so that the fault stays with this entry.
	TopicSI []string
	// TopicSL and TopicII are what SDShare servers may give beside TopicSI or
	// instead of it: subject locators and item identifiers. They are read,
	// never written.
	TopicSL, TopicII []string
	// SDShare says that a decoded entry names its topic in dialects of SDShare only, and
	// states nothing of its own.
	SDShare bool

	State   State
	Content Content

	// Covered says of a fragment entry that its fragment need not be fetched: the topic has changed by associations
	// alone, and the fragments of other entries of the same commit have these. Only entries in a complete archived feed
	// are marked so. It supersedes no earlier entry of the topic.
	Covered bool

	// Fragment is the fragment itself in a bundle, nil where there is none: the root element of an XTM 2.1 document, as
	// it stands. Only [DecodeBundle] reads it.
	Fragment []byte

	// Digest is the state digest of the topic map after the change of a fragment, or of that of a
	// snapshot, "" where it is not stated. Only the last entry of a commit states it.
	Digest string

	// Commit is the number of the commit that a fragment belongs to: of all its fragments the same, and greater than
	// those of the commits before. Of a snapshot it is that of the commit whose state it has. 0: not stated.
	Commit uint64

	// Rendering is that of the feed, unless the entry states its own.
	Rendering uint64

	// Omits says that the fragment of a class leaves out those instances of which only the type is stated.
	Omits bool

	// Condition says of a topic map in the Topic Maps Feed in what way it is not as it should be, such as "being
	// filled"; "" for none. It is for people and for programs that show it to them.
	Condition string
}

// Content says what an entry has of atom:content (RFC 4287 §4.1.3).
type Content string

// The kinds of content. Most entries have none; those of Atom-PMH tell by it what
// they are.
const (
	NoContent    Content = ""
	EmptyContent Content = "empty" // an element without src, and with nothing in it
	SomeContent  Content = "some"  // read; written only as the fragment
)

// IsDeletion reports whether e is a deletion entry (Atom-PMH, Detecting entry type): it says that the record with its
// ID was deleted.
func (e *Entry) IsDeletion() bool {
	_, alternate := e.Link("alternate")
	return !alternate && e.Content == EmptyContent
}

// IsRecord reports whether e is an active or a historical entry (Atom-PMH, Detecting
// entry type) of the record that its ID identifies: its alternate links lead to what
// represents the record. Which of the two it is depends on whether there are later
// entries of the record.
func (e *Entry) IsRecord() bool {
	_, alternate := e.Link("alternate")
	return alternate && e.Content == NoContent
}

// State tells a fragment of a topic that exists from a tombstone, since both
// can be bare.
type State string

// The states of a fragment entry. The zero State is that of entries which are
// no fragments, and of servers that do not state it.
const (
	StateLive    State = "live"
	StateDeleted State = "deleted"
)

// Link is an atom:link (RFC 4287 §4.2.7).
type Link struct {
	// Rel is a registered name in lower case, or an IRI. "" is written as
	// "alternate", which is also what Decode makes of a link without it.
	Rel  string
	Type string
	// Href is absolute. Decode resolves it and writes spaces as %20, so it
	// can be requested as it stands.
	Href   string
	Length int64 // in bytes; 0 where unknown
}

// Find returns the links of the feed that have the relation rel in any
// dialect, in document order. Links that differ in spelling only are returned
// once.
func (f *Feed) Find(rel Rel) []Link { return find(f.Links, rel) }

// Find returns the links of the entry that have the relation rel in any
// dialect, in document order. Links that differ in spelling only are returned
// once.
func (e *Entry) Find(rel Rel) []Link { return find(e.Links, rel) }

// Link returns the first link that Find finds, and whether there is one.
func (f *Feed) Link(rel Rel) (Link, bool) { return first(f.Links, rel) }

// Link returns the first link that Find finds, and whether there is one.
func (e *Entry) Link(rel Rel) (Link, bool) { return first(e.Links, rel) }

func find(links []Link, rel Rel) []Link {
	want := concept(rel)
	type target struct{ href, mediaType string }
	seen := make(map[target]bool)
	var found []Link
	for _, l := range links {
		if concept(l.Rel) != want || seen[target{l.Href, l.Type}] {
			continue
		}
		seen[target{l.Href, l.Type}] = true
		found = append(found, l)
	}
	return found
}

func first(links []Link, rel Rel) (Link, bool) {
	want := concept(rel)
	for _, l := range links {
		if concept(l.Rel) == want {
			return l, true
		}
	}
	return Link{}, false
}
