// Package feeds models, writes and reads the Atom documents (RFC 4287) by which
// servers publish topic maps: the list of maps, the two feeds of a map, its
// snapshots and its fragments.
//
// The model is one [Feed] of [Entry] values, with the marks and links of archived and complete feeds (RFC 5005) and the
// extensions of TMShare and SDShare. [Feed.Encode] writes it, [Decode] reads it. Three generations of the protocol
// differ in spelling; dialect.go has the whole table, and [Feed.Find] and [Entry.Find] find a link by its meaning in
// any spelling:
//
//	f, err := feeds.Decode(body, "http://example.org/topicmaps/egov/fragments", feeds.Limits{})
//	for _, e := range f.Entries {
//		for _, l := range e.Find(feeds.RelTopicMapData) { … l.Href, l.Type … }
//	}
//
// The package handles documents only. The client fetches them and follows their links, and the packages fragment and
// xtm read the linked documents.
package feeds

import "time"

// Feed is one feed document (RFC 4287 §4.1.1): the whole of a logical feed, or
// one document of a paged or archived one (RFC 5005).
type Feed struct {
	// ID identifies the logical feed, so all documents of an archived feed have the same. Encode requires an absolute
	// IRI; Decode takes any string.
	ID string
	// Title and Subtitle are plain text on one line. Decode reduces HTML and
	// XHTML to text.
	Title, Subtitle string
	// Author is the name of the first author.
	Author    string
	Generator string
	// Language is the language of the texts of the feed and its entries: a tag of BCP 47 in lower case; "" if not
	// stated. TitleLanguage and SubtitleLanguage are "" unless these texts are in another language.
	Language, TitleLanguage, SubtitleLanguage string
	// Updated is zero if a decoded feed does not state it.
	Updated time.Time
	Links   []Link

	// ServerSrcLocatorPrefix is the prefix of the item identifiers of all statements of this source. "" means that the
	// feed declares none.
	ServerSrcLocatorPrefix string

	// Checkpoint is the signed checkpoint of the log as far as the feed shows it. Key is the public key of its signer.
	// Both are "" where the log is not signed.
	Checkpoint, Key string

	// Openings are random ids of the last openings of the feed's database, the newest first. If one disappears, or
	// another one appears after it, the database was restored. nil: not stated.
	Openings []string

	// Rendering is the version of the output format of the fragments, which determines their bytes; 0: not stated.
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
	// Changes describes the change of a fragment in words, for feed readers. It is in the summary, after the text of
	// Summary, whose end is marked there.
	Changes string
	Author  string // "" where the feed's author is the entry's
	// Language is that of the feed, unless the entry states its own. SummaryLanguage is "" unless the summary is in
	// another one.
	Language, SummaryLanguage string
	// Updated orders the entries of a feed. It is written with six fractional
	// digits; finer fractions that another server sends are kept when read.
	Updated time.Time
	Links   []Link

	// TopicSI names the topic of a fragment by subject identifiers. At most one is written; other servers repeat the
	// element. Decode keeps a value that is no absolute IRI: no topic has it, so the error concerns this entry only.
	TopicSI []string
	// TopicSL and TopicII are subject locators and item identifiers, which SDShare servers may give in addition to
	// TopicSI or instead of it. They are read, never written.
	TopicSL, TopicII []string
	// SDShare states that a decoded entry names its topic in dialects of SDShare only, without a state.
	SDShare bool

	State   State
	Content Content

	// Covered states that the fragment of an entry need not be fetched: the topic has changed in associations only,
	// which the fragments of other entries of the same commit have. Only entries of a complete archived feed are
	// marked. Such an entry supersedes no earlier entry of the topic.
	Covered bool

	// Fragment is the fragment in a bundle: the root element of an XTM 2.1 document, unchanged; nil if there is none.
	// Only [DecodeBundle] reads it.
	Fragment []byte

	// Digest is the state digest of the topic map after the change of a fragment, or of that of a
	// snapshot, "" where it is not stated. Only the last entry of a commit states it.
	Digest string

	// Commit is the number of a fragment's commit, which all its fragments share, and which increases with each commit.
	// That of a snapshot is the commit whose state it has. 0: not stated.
	Commit uint64

	// Rendering is that of the feed, unless the entry states its own.
	Rendering uint64

	// Omits states that the fragment of a class leaves out the instances without other statements than the type.
	Omits bool

	// Condition is a problem of a topic map in the Topic Maps Feed, such as "being filled"; "" for none. Programs show
	// it to people.
	Condition string
}

// Content is the kind of an entry's atom:content (RFC 4287 §4.1.3).
type Content string

// The kinds of content. Most entries have none; those of Atom-PMH use it to state their type.
const (
	NoContent    Content = ""
	EmptyContent Content = "empty" // an element without src, and with nothing in it
	SomeContent  Content = "some"  // read; written only as the fragment
)

// IsDeletion reports whether e is a deletion entry (Atom-PMH, Detecting entry type), which states that the record with
// its ID was deleted.
func (e *Entry) IsDeletion() bool {
	_, alternate := e.Link("alternate")
	return !alternate && e.Content == EmptyContent
}

// IsRecord reports whether e is an active or a historical entry (Atom-PMH, Detecting entry type) of the record with its
// ID: its alternate links lead to representations of the record. An entry is historical if the record has a later one.
func (e *Entry) IsRecord() bool {
	_, alternate := e.Link("alternate")
	return alternate && e.Content == NoContent
}

// State distinguishes the fragment of an existing topic from a tombstone, because both can be without statements.
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
	// "alternate", and Decode sets "alternate" for a link without it.
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

// Link returns the first link of [Feed.Find], and whether there is one.
func (f *Feed) Link(rel Rel) (Link, bool) { return first(f.Links, rel) }

// Link returns the first link of [Entry.Find], and whether there is one.
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
