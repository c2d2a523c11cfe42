package feeds

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const aFragment = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="a"><name><value>A &amp; B</value></name></topic></topicMap>`

// A fragment comes back as it was put in, by DecodeBundle alone.
func TestFragmentsInFeeds(t *testing.T) {
	t.Parallel()
	feed := &Feed{ID: "urn:x:feed", Title: "F", Author: "A", Updated: time.Unix(0, 0).UTC(), Entries: []Entry{
		{ID: "urn:x:1", Title: "1", Updated: time.Unix(2, 0).UTC(), State: StateLive, TopicSI: []string{"http://psi.a/1"}, Links: []Link{{Rel: "alternate", Href: "http://a/1"}}, Fragment: []byte(aFragment)},
		{ID: "urn:x:2", Title: "2", Updated: time.Unix(1, 0).UTC(), State: StateLive, TopicSI: []string{"http://psi.a/2"}, Links: []Link{{Rel: "alternate", Href: "http://a/2"}}},
	}}
	var b bytes.Buffer
	require.NoError(t, feed.Encode(&b))
	with, err := DecodeBundle(bytes.NewReader(b.Bytes()), "http://a/", Limits{}, nil)
	require.NoError(t, err)
	require.Equal(t, aFragment, string(with.Entries[0].Fragment))
	require.Equal(t, SomeContent, with.Entries[0].Content)
	require.Nil(t, with.Entries[1].Fragment)
	without, err := Decode(bytes.NewReader(b.Bytes()), "http://a/", Limits{})
	require.NoError(t, err)
	require.Nil(t, without.Entries[0].Fragment)
	require.Equal(t, feed.Entries[0].Links, without.Entries[0].Links)
}

// The type of a fragment in a feed ends in "+xml": XML in atom:content of another one is not allowed (RFC 4287
// §4.1.3.3), and readers take its text for Base64.
func TestTypeOfAFragmentIsThatOfXML(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	feed := &Feed{ID: "urn:x:feed", Title: "F", Author: "A", Updated: time.Unix(0, 0), Entries: []Entry{{ID: "urn:x:1", Title: "1", Updated: time.Unix(0, 0), Links: []Link{{Rel: "alternate", Href: "http://a/1"}}, Fragment: []byte(aFragment)}}}
	require.NoError(t, feed.Encode(&b))
	_, content, found := strings.Cut(b.String(), "<content type=\"")
	require.True(t, found)
	mediaType, _, _ := strings.Cut(content, "\"")
	require.True(t, strings.HasSuffix(mediaType, "+xml"), mediaType)
}

// A part that is no fragment in XTM 2.1, or is too large, is passed over. A part that is not well-formed ends
// the document.
func TestContentsThatAreNoFragments(t *testing.T) {
	t.Parallel()
	document := func(content string) string {
		return `<feed xmlns="` + NamespaceAtom + `"><id>urn:x:f</id><updated>2024-01-01T00:00:00Z</updated><entry><id>urn:x:1</id><updated>2024-01-01T00:00:00Z</updated>` +
			content + `<summary>behind</summary></entry></feed>`
	}
	xtm21 := `<content type="` + MediaTypeXTM2 + `"`
	content := func(root string) string { return xtm21 + "> " + root + "<topic/></topicMap></content>" }
	for content, kept := range map[string]string{
		xtm21 + "> \n" + aFragment + "\n </content>":                                      aFragment,
		`<content type='Application/X-TM+XML; Version="2.1"'>` + aFragment + "</content>": aFragment,
		`<content type="application/xtm1+xml">` + aFragment + "</content>":                "",
		`<content type="` + MediaTypeXTM21 + `">` + aFragment + "</content>":              aFragment,
		`<content type='APPLICATION/x-tm+xml; charset=utf-8'>` + aFragment + "</content>": aFragment,
		`<content type="application/x-tm+xml;version=2.0">` + aFragment + "</content>":    "",
		`<content type="application/xml">` + aFragment + "</content>":                     "",
		content(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.0">`):         "",
		content(`<topicMap xmlns="http://www.topicmaps.org/xtm/">`):                       "",
		content(`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" version="2.1">`):     "",
		content(`<map xmlns="http://www.topicmaps.org/xtm/" version="2.1"/><topicMap>`):   "",
		xtm21 + ">text " + aFragment + "</content>":                                       "",
		xtm21 + ">" + aFragment + aFragment + "</content>":                                "",
		"<content>" + aFragment + "</content>":                                            "",
		xtm21 + ` src="http://a/">` + aFragment + "</content>":                            "",
		xtm21 + "/>":          "",
		xtm21 + "></content>": "",
		xtm21 + "><c>" + strings.Repeat("x", MaxInline) + "</c></content>": "",
	} {
		f, err := DecodeBundle(strings.NewReader(document(content)), "http://a/", Limits{}, nil)
		require.NoError(t, err, content)
		require.Equal(t, kept, string(f.Entries[0].Fragment))
		require.Equal(t, "behind", f.Entries[0].Summary)
	}
	_, err := DecodeBundle(strings.NewReader(document(xtm21+"><topicMap></content>")), "http://a/", Limits{}, nil)
	require.ErrorAs(t, err, new(*SyntaxError))
	_, err = DecodeBundle(strings.NewReader(document(xtm21+">"+aFragment+"</content>")), "http://a/", Limits{MaxBytes: 200}, nil)
	require.ErrorAs(t, err, new(*LimitError))
}
