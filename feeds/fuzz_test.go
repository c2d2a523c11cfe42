package feeds

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/testhostile"
)

// A feed that decodes satisfies the invariants of the model. If it also encodes, it decodes to itself.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.xml")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range append(files, "testdata/encoded.golden") {
		document, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(document)
	}
	for _, document := range []string{
		"", "<", "<feed/>", "\uFEFF" + inFeed(""),
		inEntry(entryBasics + `<link rel="http://www.iana.org/assignments/relation/Self" href="%%2041"/><t:TopicSI>urn:%7e %</t:TopicSI>`),
		inFeed(`<subtitle xml:lang="FIN"/><summary xml:lang="x-a">a</summary>`), inEntry(entryBasics + `<summary xml:lang="pt-BR">a</summary>`),
		inFeed(`<title type="html">&lt;!-- &amp;#1; --&gt;&amp;#x10FFFF;&amp;#xFFFF;</title>`),
		inFeed(`<link xml:base="//b" href="../?#"/><updated>2016-12-31T23:59:60.9999999999-23:59</updated>`),
		"\xFE\xFF\x00<\x00f\x00e\x00e\x00d\x00/\x00>", "<?xml version='1.0' encoding='ISO-8859-1'?>" + inFeed("<title>\xDF</title>"),
		`<!DOCTYPE feed [<!ENTITY a "b">]>` + inFeed("<title>&a;</title>"),
	} {
		f.Add([]byte(document))
	}
	f.Add([]byte(testhostile.Feed(5000, 20)))
	f.Add([]byte(testhostile.Feed(9<<10, 2)))
	f.Fuzz(func(t *testing.T, document []byte) {
		limits := Limits{MaxBytes: 1 << 16, MaxDepth: 16, MaxEntries: 100, MaxGrowth: 1 << 16}
		feed, err := Decode(bytes.NewReader(document), "http://server.example/feed", limits)
		if err != nil {
			var syntax *SyntaxError
			var invalid *InvalidError
			var limit *LimitError
			if !errors.As(err, &syntax) && !errors.As(err, &invalid) && !errors.As(err, &limit) {
				t.Fatalf("untyped error %v", err)
			}
			if limit != nil && limit.Limit == "" {
				t.Fatalf("a limit without a name: %v", err)
			}
			return
		}
		if feed.ID == "" || len(feed.Entries) > limits.MaxEntries {
			t.Fatalf("accepted %+v", feed)
		}
		if n := lengthOfLinks(feed); n > 1<<16+(16+3)*3*len(document) { // 3: what bytes become in UTF-8
			t.Fatalf("%d bytes of links are made of %d", n, len(document))
		}
		for _, l := range feed.Links {
			if l.Rel == "" || !iri.IsAbsolute(l.Href) {
				t.Fatalf("accepted the link %+v", l)
			}
		}
		var encoded bytes.Buffer
		if feed.Encode(&encoded) != nil {
			return // servers may break rules that we keep
		}
		again, err := Decode(&encoded, "", Limits{})
		require.NoError(t, err, encoded.String())
		require.Equal(t, asWritten(feed), again)
	})
}

// asWritten returns the feed with times as they are written, and locators as
// reading normalises them.
func asWritten(f *Feed) *Feed {
	links := func(links []Link) {
		for i, l := range links {
			links[i].Href = iri.Escape(normalized(l.Href))
		}
	}
	f.Updated = f.Updated.Truncate(time.Microsecond)
	links(f.Links)
	if f.ServerSrcLocatorPrefix != "" {
		f.ServerSrcLocatorPrefix = normalized(f.ServerSrcLocatorPrefix)
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		e.Updated = e.Updated.Truncate(time.Microsecond)
		links(e.Links)
		for j, si := range e.TopicSI {
			e.TopicSI[j] = normalized(si)
		}
	}
	return f
}

func lengthOfLinks(f *Feed) (n int) {
	for _, e := range append(f.Entries, Entry{Links: f.Links}) {
		for _, l := range e.Links {
			n += len(l.Href)
		}
	}
	return n
}
