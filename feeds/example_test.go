package feeds_test

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
)

// A fragments feed is asked for links by their meaning, however the server spells the relation.
func ExampleDecode() {
	const document = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sdshare="http://www.sdshare.org/2012/core/">
  <id>urn:example:cities</id>
  <title>Changes</title>
  <updated>2026-01-31T12:00:00Z</updated>
  <entry>
    <id>urn:example:cities:1</id>
    <title>Oslo</title>
    <updated>2026-01-31T12:00:00Z</updated>
    <sdshare:resource>http://psi.example.org/oslo</sdshare:resource>
    <link rel="http://www.sdshare.org/2012/core/fragment" type="application/x-tm+xml" href="fragments/1"/>
  </entry>
</feed>`
	f, err := feeds.Decode(strings.NewReader(document), "http://example.org/topicmaps/cities/fragments", feeds.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range f.Entries {
		for _, l := range e.Find(feeds.RelTopicMapData) {
			fmt.Println(e.TopicSI, l.Type, l.Href)
		}
	}
	// Output:
	// [http://psi.example.org/oslo] application/x-tm+xml http://example.org/topicmaps/cities/fragments/1
}

// A feed is written so that clients of all dialects find the elements that they need.
func ExampleFeed_Encode() {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	f := feeds.Feed{
		ID: "urn:example:cities", Title: "Changes", Author: "Example", Updated: at,
		ServerSrcLocatorPrefix: "http://maps.example.org/cities/",
		Entries: []feeds.Entry{{
			ID: "urn:example:cities:1", Title: "Oslo", Updated: at, TopicSI: []string{"http://psi.example.org/oslo"}, State: feeds.StateLive,
			Links: []feeds.Link{{Rel: "alternate", Type: "application/x-tm+xml;version=2.1", Href: "http://example.org/fragments/1"}},
		}},
	}
	var document bytes.Buffer
	if err := f.Encode(&document); err != nil {
		fmt.Println(err)
		return
	}
	again, err := feeds.Decode(&document, "http://example.org/feed", feeds.Limits{})
	fmt.Println(again.Entries[0].Title, again.Entries[0].TopicSI, again.Entries[0].State, err)

	f.Entries[0].ID = "not an IRI"
	fmt.Println(f.Encode(&document))
	// Output:
	// Oslo [http://psi.example.org/oslo] live <nil>
	// entry 1 ("Oslo")/id: "not an IRI": is not absolute: it has no scheme
}
