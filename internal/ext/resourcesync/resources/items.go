package resources

import (
	"encoding/hex"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/xml/patch"
)

// resource returns the item of a topic in a list of resources or a manifest: the generic URI with its default
// representation, and the forms as alternates (Z39.99 §14.3, Alternate Representations).
func (s *Site) resource(c *store.Collection, e *store.Entry, about *RecordForm) resourcesync.Item {
	offered := formsOf(c, e)
	item := resourcesync.Item{Loc: s.topicURL(e.TopicSI), LastMod: e.Updated}
	item.Representation = representation(about, offered[0], true)
	for _, f := range offered {
		item.Links = append(item.Links, resourcesync.Link{
			Rel: resourcesync.RelAlternate, Href: item.Loc + f.ending, Modified: e.Updated,
			Representation: representation(about, f, false),
		})
	}
	item.Links = append(item.Links, s.elsewhere(e)...)
	item.Links = append(item.Links, s.about(e)...)
	return item
}

// about returns the links that every item of a topic has: to its subject (Z39.99 §14.5,
// Resources and Metadata about Resources; by that identifier readers know which topic the
// resource describes), to the topic map (§14.7, Collection Membership), and to its versions
// (§14.6, Prior Versions of Resources).
func (s *Site) about(e *store.Entry) []resourcesync.Link {
	return []resourcesync.Link{
		{Rel: resourcesync.RelDescribes, Href: iri.Escape(string(e.TopicSI))},
		{Rel: resourcesync.RelCollection, Href: s.Map},
		{Rel: resourcesync.RelTimeGate, Href: s.TimeGateURL(e.TopicSI)},
	}
}

// change returns the item of a change. It describes the representation after the change, with its memento, because the
// resource may have changed again (Z39.99 §14.6, Prior Versions of Resources).
func (s *Site) change(c *store.Collection, e *store.Entry, about *RecordForm) resourcesync.Item {
	item := resourcesync.Item{Loc: s.topicURL(e.TopicSI)}
	if e.Lives() {
		item = s.resource(c, e, about)
		item.Change = resourcesync.Created
		if e.Modified {
			item.Change = resourcesync.Updated
		}
		// A version is available in all forms; the first one is the default.
		f, href := formsOf(c, e)[0], s.mementoURL(c, e)
		if f.version != forms[0].version {
			href += f.ending
		}
		item.Links = append(item.Links, resourcesync.Link{
			Rel: resourcesync.RelMemento, Href: href, Modified: e.Updated, Representation: item.Representation,
		})
	} else {
		item.Change = resourcesync.Deleted
		item.Links = s.about(e)
	}
	item.LastMod, item.Datetime = e.Updated, e.Updated
	item.Links = append(item.Links, resourcesync.Link{Rel: resourcesync.RelTimeMap, Href: s.TimeMapURL(e.TopicSI),
		Representation: resourcesync.Representation{Type: LinkFormat}})
	return item
}

// listed is change for a change list, with the patch from the previous version if that is shorter (Z39.99 §14.4, Patch
// Content). Packages have the whole content.
func (s *Site) listed(c *store.Collection, e *store.Entry, about *RecordForm) resourcesync.Item {
	item := s.change(c, e, about)
	if item.Change != resourcesync.Updated || len(item.Hashes) == 0 {
		return item
	}
	f, before := formsOf(c, e)[0], formsOf(c, &store.Entry{Seq: e.Prior})[0]
	if d := about.PatchIn(f.version); d != nil && before.version == f.version {
		link := resourcesync.Link{Rel: resourcesync.RelPatch, Href: s.mementoURL(c, e) + f.ending + ".patch",
			Modified: e.Updated}
		link.Type, link.Length = patch.MediaType, d.Length
		link.Hashes = []resourcesync.Hash{{Algorithm: resourcesync.SHA256, Digest: hex.EncodeToString(d.SHA256[:])}}
		item.Links = append(item.Links, link)
	}
	return item
}

// LinkFormat is the media type of TimeMaps (RFC 7089 §5).
const LinkFormat = "application/link-format"

// elsewhere returns the links to a topic at other servers (Z39.99 §14.2, Mirrored Content;
// §14.8, Republishing Resources).
func (s *Site) elsewhere(e *store.Entry) (links []resourcesync.Link) {
	path := s.topicURL(e.TopicSI)[len(s.Map):]
	for i, mirror := range s.Mirrors {
		links = append(links, resourcesync.Link{Rel: resourcesync.RelDuplicate, Href: mirror + path, Pri: i + 1})
	}
	if s.Via != "" {
		links = append(links, resourcesync.Link{Rel: resourcesync.RelVia, Href: s.Via + path})
	}
	return links
}

// representation describes a form of a topic. Change lists made on request do not describe large forms.
func representation(about *RecordForm, f form, md5 bool) resourcesync.Representation {
	r := resourcesync.Representation{Type: f.mediaType}
	if f.digest >= len(about.Digests) {
		return r
	}
	d := &about.Digests[f.digest]
	r.Length, r.Empty = d.Length, d.Length == 0
	if md5 {
		r.Hashes = append(r.Hashes, resourcesync.Hash{Algorithm: resourcesync.MD5, Digest: hex.EncodeToString(d.MD5[:])})
	}
	r.Hashes = append(r.Hashes, resourcesync.Hash{Algorithm: resourcesync.SHA256, Digest: hex.EncodeToString(d.SHA256[:])})
	return r
}
