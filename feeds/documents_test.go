package feeds

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The fixtures of tmshare are the examples of the protocol's text, those of
// simplefeed and rfc5005 likewise; where an example elides its entries or is
// not well-formed, the fixture is the least change that decodes.
func TestDecodeDocuments(t *testing.T) {
	const np = "http://tmshare.networkedplanet.com/"
	cases := map[string]*Feed{
		"tmshare/topicmaps.xml": {
			ID:      "urn:uuid:60a76c80-d399-11d9-b93C-0003939e0af6",
			Title:   "Topic Maps managed by tmshare.networkedplanet.com",
			Author:  "TMShare Server",
			Updated: utc(t, "2008-12-13T18:30:02Z"),
			Links:   []Link{{Rel: "alternate", Href: np}},
			Entries: []Entry{{
				ID:      "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a",
				Title:   "eGovernment Resources Topic Map",
				Summary: "A topic map that contains the classification of eGovernment services.",
				Updated: utc(t, "2008-12-13T18:30:02Z"),
				Links:   []Link{{Rel: RelTopicMapFeed, Type: MediaTypeAtom, Href: np + "topicmaps/egov"}},
			}},
		},
		"tmshare/topicmap.xml": {
			ID:       "http://http://psi.egovpt.org/feeds/testtm/",
			Title:    "eGov TM",
			Subtitle: "Feeds around the eGov TM",
			Author:   "Isidor",
			Updated:  utc(t, "2008-09-26T12:13:40Z"),
			Links:    []Link{{Rel: "self", Href: "http://http://psi.egovpt.org/feeds/testtm/"}},
			Entries: []Entry{{
				ID:      "http://http://psi.egovpt.org/testtm/fragments/",
				Title:   "eGov TM: Fragments",
				Author:  "Isidor",
				Updated: utc(t, "2008-09-11T18:58:39Z"),
				Links: []Link{
					{Rel: "alternate", Type: MediaTypeAtom, Href: "http://http://psi.egovpt.org/testtm/fragments/"},
					{Rel: RelFragmentFeed, Type: MediaTypeAtom, Href: "http://http://psi.egovpt.org/testtm/fragments/"},
				},
			}, {
				ID:      "http://http://psi.egovpt.org/testtm/snapshots/",
				Title:   "eGov TM: Snapshots",
				Author:  "Isidor",
				Updated: utc(t, "2008-09-11T18:58:39Z"),
				Links: []Link{
					{Rel: "alternate", Type: MediaTypeAtom, Href: "http://http://psi.egovpt.org/testtm/snapshots/"},
					{Rel: RelSnapshotFeed, Type: MediaTypeAtom, Href: "http://http://psi.egovpt.org/testtm/snapshots/"},
				},
			}},
		},
		"tmshare/snapshots.xml": {
			ID:                     "urn:uuid:60a76c80-d399-11d9-b93C-0003939e0af6",
			Title:                  "The Snapshots of the eGovernment Resources Topic Map",
			Subtitle:               "A list of all XTM representations of this map",
			Author:                 "TMShare Server",
			Updated:                utc(t, "2008-07-17T12:15:07.020071Z"),
			ServerSrcLocatorPrefix: "http://psi.networkedplanet.com/",
			Links:                  []Link{{Rel: "self", Href: np + "topicmaps/egov/snapshots"}},
			Entries: []Entry{{
				ID:      "60a76c80-d300-11d9-b93C-0003939e0af6",
				Title:   "Snapshot 2008-07-17",
				Updated: utc(t, "2008-07-17T14:04:42.205299Z"),
				Links: []Link{{
					Rel: RelTopicMapData, Type: MediaTypeXTM1,
					Href: np + "topicmaps/egov/shapshots/60a76c80-d300-11d9-b93C-0003939e0af6",
				}},
			}},
		},
		"tmshare/fragments.xml": {
			ID:                     "28C5DBD8-652A-4617-8C4A-C0FFC49B4475",
			Title:                  "Change fragments from the eGovernment Resources Topic Map",
			Author:                 "TMShare Server",
			Updated:                utc(t, "2008-07-17T15:47:17.062211Z"),
			ServerSrcLocatorPrefix: "http://psi.networkedplanet.com/",
			Links:                  []Link{{Rel: "self", Href: np + "topicmaps/egov/fragments"}},
			Entries: []Entry{{
				ID:      "69CD5264-DB78-49c1-A7E4-04EECFA0AA85",
				Title:   "ISO 19115:2003 Geographic Information - Metadata",
				Updated: utc(t, "2008-07-17T15:55:21.971145Z"),
				Links: []Link{{
					Rel: RelTopicMapData, Type: "text/xtm1+xml",
					Href: np + "topicmaps/egov/fragments/69CD5264-DB78-49c1-A7E4-04EECFA0AA85",
				}},
				TopicSI: []string{"http://psi.egovpt.org/standard/ISO+19115%3A+Geographic+Information+-+Metadata"},
			}},
		},
		"simplefeed/notifications.xml": {
			ID:        "urn:uuid:ff31a040-75bc-11e2-bcfd-0800200c9a66",
			Title:     "Notifications",
			Generator: "Foo CMS",
			Updated:   utc(t, "2013-01-02T10:03:00Z"),
			Links:     []Link{{Rel: "self", Href: "http://example.com/documents/2"}},
			Entries: []Entry{{
				ID: "urn:uuid:eb3ee5a0-75be-11e2-bcfd-0800200c9a66", Title: "Edit", Author: "jsmith",
				Updated: utc(t, "2013-01-02T10:01:00Z"),
				Links:   []Link{{Rel: "self", Href: "http://example.com/entry/33"}},
				Content: SomeContent,
			}, {
				ID: "urn:uuid:1d3334a0-75bd-11e2-bcfd-0800200c9a66", Title: "User created", Author: "dgonzales",
				Updated: utc(t, "2013-01-02T07:31:00Z"),
				Links:   []Link{{Rel: "self", Href: "http://example.com/entry/32"}},
				Content: SomeContent,
			}},
		},
		"simplefeed/recent.xml": {
			ID:    "urn:uuid:ff31a040-75bc-11e2-bcfd-0800200c9a66",
			Title: "Recent notifications",
			Links: []Link{
				{Rel: "self", Href: "http://example.com/recent"},
				{Rel: "prev-archive", Href: "http://example.com/documents/3"},
				{Rel: "via", Href: "http://example.com/documents/4"},
			},
		},
		"simplefeed/archived.xml": {
			ID:    "urn:uuid:ff31a040-75bc-11e2-bcfd-0800200c9a66",
			Title: "Notifications",
			Links: []Link{
				{Rel: "self", Href: "http://example.com/documents/3"},
				{Rel: "next-archive", Href: "http://example.com/documents/4"},
				{Rel: "prev-archive", Href: "http://example.com/documents/2"},
			},
		},
		"rfc5005/complete.xml": {
			ID:       "urn:uuid:60a76c80-d399-11d9-b93C-0003939e0af6",
			Title:    "NetMovies Queue",
			Subtitle: "The DVDs you'll receive next.",
			Author:   "John Doe",
			Updated:  utc(t, "2003-12-13T18:30:02Z"),
			Links: []Link{
				{Rel: "alternate", Href: "http://example.org/"},
				{Rel: "self", Href: "http://netmovies.example.org/jdoe/queue/index.atom"},
			},
			Complete: true,
			Entries: []Entry{{
				ID: "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a", Title: "Casablanca",
				Summary: "Here's looking at you, kid...",
				Updated: utc(t, "2003-12-13T18:30:02Z"),
				Links:   []Link{{Rel: "alternate", Href: "http://netmovies.example.org/movies/Casablanca"}},
			}},
		},
		"rfc5005/paged.xml": {
			ID:      "urn:uuid:60a76c80-d399-11d9-b93C-0003939e0af6",
			Title:   "Example Feed",
			Author:  "John Doe",
			Updated: utc(t, "2003-12-13T18:30:02Z"),
			Links: []Link{
				{Rel: "alternate", Href: "http://example.org/"},
				{Rel: "self", Href: "http://example.org/index.atom"},
				{Rel: "next", Href: "http://example.org/index.atom?page=2"},
			},
			Entries: []Entry{robots(t)},
		},
		"rfc5005/subscription.xml": {
			ID:      "urn:uuid:60a76c80-d399-11d9-b93C-0003939e0af6",
			Title:   "Example Feed",
			Author:  "John Doe",
			Updated: utc(t, "2003-12-13T18:30:02Z"),
			Links: []Link{
				{Rel: "alternate", Href: "http://example.org/"},
				{Rel: "self", Href: "http://example.org/index.atom"},
				{Rel: "prev-archive", Href: "http://example.org/2003/11/index.atom"},
			},
			Entries: []Entry{robots(t)},
		},
		"rfc5005/archive.xml": {
			ID:      "urn:uuid:60a76c80-d399-11d9-b93C-0003939e0af6",
			Title:   "Example Feed",
			Author:  "John Doe",
			Updated: utc(t, "2003-11-24T12:00:00Z"),
			Links: []Link{
				{Rel: "current", Href: "http://example.org/index.atom"},
				{Rel: "self", Href: "http://example.org/2003/11/index.atom"},
				{Rel: "prev-archive", Href: "http://example.org/2003/10/index.atom"},
			},
			Archive: true,
			Entries: []Entry{{
				ID: "urn:uuid:2c355272-fd98-11dd-8474-0016415cd53f", Title: "Atom-Powered Robots Scheduled To Run Amok",
				Summary: "Some text from an old, different entry.",
				Updated: utc(t, "2003-11-24T12:00:00Z"),
				Links:   []Link{{Rel: "alternate", Href: "http://example.org/2003/11/24/robots_coming"}},
			}},
		},
		"sdshare/cwa-fragments.xml": {
			ID:                     "http://cwa.example.org/maps/opera/fragments",
			Title:                  "Changed fragments",
			Author:                 "Scarpia",
			Updated:                utc(t, "2010-03-04T00:00:00Z"),
			ServerSrcLocatorPrefix: "http://cwa.example.org/maps/opera.xtm#",
			Links:                  []Link{{Rel: "self", Href: "http://cwa.example.org/maps/opera/fragments"}},
			Entries: []Entry{{
				ID:      "tag:cwa.example.org,2010:tosca",
				Title:   "Tosca & others",
				Updated: utc(t, "2010-03-04T11:30:00.5Z"),
				Links: []Link{
					{
						Rel: "http://www.egovpt.org/sdshare/fragment", Type: "application/x-tm+xml; version=1.0",
						Href: "http://cwa.example.org/maps/opera/fragments/1", Length: 512,
					},
					{Rel: "alternate", Href: "http://other.example.org/fragments/1"},
				},
				TopicSI: []string{"http://psi.example.org/tosca", "http://psi.example.org/la tosca"},
				TopicSL: []string{"http://www.example.org/tosca.html"},
				TopicII: []string{"http://cwa.example.org/maps/opera.xtm#tosca"},
				SDShare: true,
			}},
		},
		"sdshare/2012-fragments.xml": {
			ID:      "http://2012.example.org/fragments",
			Title:   "Fragments",
			Updated: utc(t, "2012-05-06T07:08:00Z"),
			Links:   []Link{{Rel: "next", Href: "http://server.example/feed?since=2012-05-06T07:08:00Z&page=2"}},
			Entries: []Entry{{
				ID: "http://2012.example.org/fragments/1", Title: "Oslo",
				Updated: utc(t, "2012-05-06T07:08:09.123456789Z"),
				Links:   []Link{{Rel: RelSDShareFragment, Type: "application/rdf+xml", Href: "http://server.example/fragments/1.rdf"}},
				TopicSI: []string{"http://psi.example.org/oslo"},
				SDShare: true,
			}},
		},
	}
	files, err := filepath.Glob("testdata/*/*.xml")
	require.NoError(t, err)
	assert.Len(t, files, len(cases), "every fixture is expected to be something, and every expectation has a fixture")

	for path, want := range cases {
		t.Run(path, func(t *testing.T) {
			file, err := os.Open(filepath.Join("testdata", filepath.FromSlash(path)))
			require.NoError(t, err)
			defer file.Close()
			got, err := Decode(file, "http://server.example/feed", Limits{})
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

func robots(t *testing.T) Entry {
	return Entry{
		ID: "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a", Title: "Atom-Powered Robots Run Amok",
		Summary: "Some text.",
		Updated: utc(t, "2003-12-13T18:30:02Z"),
		Links:   []Link{{Rel: "alternate", Href: "http://example.org/2003/12/13/atom03"}},
	}
}
