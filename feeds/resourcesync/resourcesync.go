// Package resourcesync models, writes and reads the documents of ResourceSync (ANSI/NISO Z39.99). In these a Source
// lists its resources and their changes for Destinations. They are Sitemaps with a few more elements, and ZIP packages
// of resources.
//
// A [Document] is the head of any of them: its capability, its times, and its links to related documents. An [Item] is
// what it lists. [Writer] and [Read] handle documents item by item, so that none needs to be in memory:
//
//	r, err := resourcesync.Read(body, "http://example.com/changelist.xml", resourcesync.Limits{})
//	for {
//		item, err := r.Next()
//		if err == io.EOF {
//			break
//		}
//		… item.Loc, item.Change, item.ChangeTime() …
//	}
//
// The writer is strict: it writes documents that the specification allows and all known readers understand. The reader
// is lenient: it accepts the deviations that Sources are known to send. [PackageWriter] and [Package] do the same for
// dumps. The Discover functions find a Source's documents from its resources.
//
// The package handles documents only. The client fetches them and undoes content codings; the server decides what to
// list. Package feeds does the same for Atom.
package resourcesync

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// The namespaces of Z39.99 §4 (Namespace Prefix Bindings). Versions 1.0 and 1.1
// share them.
const (
	NamespaceSitemap = "http://www.sitemaps.org/schemas/sitemap/0.9"
	NamespaceRS      = "http://www.openarchives.org/rs/terms/"
)

// MediaTypeXML is the media type of all documents, MediaTypeZIP that of packages.
const (
	MediaTypeXML = "application/xml"
	MediaTypeZIP = "application/zip"
)

// The limits of a document (Z39.99 §7, Sitemap Document Formats).
const (
	MaxItems = 50_000
	MaxBytes = 50_000_000
)

// Capability is the type of a document (Z39.99 §7).
type Capability string

// The capabilities that Z39.99 defines.
const (
	Description          Capability = "description"    // §8: lists the Capability Lists of a Source
	CapabilityList       Capability = "capabilitylist" // §9: lists the documents of one set of resources
	ResourceList         Capability = "resourcelist"   // §10.1
	ResourceDump         Capability = "resourcedump"   // §11.1: lists packages
	ResourceDumpManifest Capability = "resourcedump-manifest"
	ChangeList           Capability = "changelist" // §12.1
	ChangeDump           Capability = "changedump" // §13.1: lists packages
	ChangeDumpManifest   Capability = "changedump-manifest"
)

// ChangeNotification is the capability of a channel on which others post changes to hubs (ResourceSync Change
// Notification 1.0.1). It may stand in a Capability List that is read.
const ChangeNotification Capability = "change-notification"

// Change is the nature of a change (Z39.99 §7).
type Change string

// The changes that Z39.99 defines.
const (
	Created Change = "created"
	Updated Change = "updated"
	Deleted Change = "deleted"
)

// The relations of links in Z39.99 §7, and that of discovery in §6.3.3 (Links).
const (
	RelUp           = "up"    // to the Capability List, and from there to the Source Description
	RelIndex        = "index" // to the index that lists the document
	RelDescribedBy  = "describedby"
	RelDescribes    = "describes"
	RelContents     = "contents" // from a package in a dump to a copy of its manifest
	RelDuplicate    = "duplicate"
	RelAlternate    = "alternate"
	RelCanonical    = "canonical"
	RelPatch        = "http://www.openarchives.org/rs/terms/patch"
	RelMemento      = "memento"
	RelTimeGate     = "timegate"
	RelTimeMap      = "timemap"
	RelCollection   = "collection"
	RelVia          = "via"
	RelResourceSync = "resourcesync" // from a resource to its Capability List
)

// Document is the head of a document: everything but its items.
type Document struct {
	// Index states that the document is a <sitemapindex>, which lists documents of the same capability, not a <urlset>.
	Index bool
	// Capability is "" in a plain Sitemap, which can be read but not written.
	Capability Capability
	Times
	Links []Link
}

// Times are the times of a document or package (Z39.99 Appendix A, Time Attribute Requirements). A zero time is not
// stated.
type Times struct {
	At        time.Time // when a snapshot was begun; it has at least all changes until then
	Completed time.Time // when the snapshot was completed
	From      time.Time // the list has all changes since then
	Until     time.Time // until then; without it the list will get more
}

// Item is a <url> or <sitemap> of a document: a resource, a change, a package or another document.
type Item struct {
	Loc string // its URI; absolute
	// LastMod is when the resource was last modified. In a change it is the
	// time of the change, as Datetime is.
	LastMod    time.Time
	lastModIn  time.Duration // the time from LastMod to the end of the stated period, in every zone; 0: exact
	ChangeFreq string        // always, hourly, daily, weekly, monthly, yearly, never, or ""
	Metadata
	Links []Link // to related resources (Z39.99 §14, Linking to Related Resources)
}

// Metadata is the <rs:md> of an item (Z39.99 §7).
type Metadata struct {
	Capability Capability // in a Source Description and a Capability List
	// Change is kept as it came where Z39.99 does not define it.
	Change Change
	// Datetime is the time of a change in version 1.1 of Z39.99. Version 1.0 has LastMod only. [Item.ChangeTime] returns
	// either.
	Datetime   time.Time
	datetimeIn time.Duration // as lastModIn
	Times
	Representation
}

// Representation describes the bytes that a URI leads to: the attributes that
// <rs:md> and <rs:ln> share (Z39.99 §7, Table 3).
type Representation struct {
	Hashes   []Hash
	Length   int64 // in bytes; 0 where it is not stated, and in an Empty one
	Empty    bool  // the length is stated, and is 0
	Type     string
	Encoding string // content codings, as in Content-Encoding
	// Path is the path of the file in a package, with a leading slash. Read keeps it as it stands; [Package.Open]
	// interprets it.
	Path string
}

// Link is a <rs:ln> (Z39.99 §7).
type Link struct {
	Rel      string // a registered name in lower case, or a URI
	Href     string // absolute
	Pri      int    // priority from 1, the highest, to 999,999; 0 counts as 999,999
	Modified time.Time
	Representation
}

// ChangeTime returns the time of the change that the item describes: Datetime, else LastMod; zero if neither is stated.
func (i *Item) ChangeTime() time.Time {
	if !i.Datetime.IsZero() {
		return i.Datetime
	}
	return i.LastMod
}

// ChangedBy returns a time by which the change had happened, in every zone. It differs from ChangeTime where a document
// states a day alone, as ChangeTime is then the begin of the day (W3C Date and Time Formats).
func (i *Item) ChangedBy() time.Time {
	if !i.Datetime.IsZero() {
		return i.Datetime.Add(i.datetimeIn)
	}
	return i.LastMod.Add(i.lastModIn)
}

// Find returns the links of the document that have the relation rel, those of
// the highest priority first.
func (d *Document) Find(rel string) []Link { return find(d.Links, rel) }

// Find returns the links of the item that have the relation rel, those of the
// highest priority first (Z39.99 §14.2, Mirrored Content).
func (i *Item) Find(rel string) []Link { return find(i.Links, rel) }

// Link returns the first link of [Document.Find], and whether there is one.
func (d *Document) Link(rel string) (Link, bool) { return first(d.Links, rel) }

// Link returns the first link of [Item.Find], and whether there is one.
func (i *Item) Link(rel string) (Link, bool) { return first(i.Links, rel) }

func first(links []Link, rel string) (Link, bool) {
	if found := find(links, rel); len(found) > 0 {
		return found[0], true
	}
	return Link{}, false
}

func find(links []Link, rel string) []Link {
	var found []Link
	for _, l := range links {
		if l.Rel == rel {
			found = append(found, l)
		}
	}
	slices.SortStableFunc(found, func(a, b Link) int { return cmp.Compare(a.priority(), b.priority()) })
	return found
}

const lastPriority = 999_999

func (l *Link) priority() int {
	if l.Pri == 0 {
		return lastPriority
	}
	return l.Pri
}

// canonicalRel returns a relation in canonical spelling: registered names ignore case (RFC 8288 §2.1.1), URIs do not.
func canonicalRel(rel string) string {
	if strings.Contains(rel, ":") {
		return rel
	}
	return strings.ToLower(rel)
}
