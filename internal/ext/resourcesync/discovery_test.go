package resourcesync_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	rs "github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// describedItems makes Source Descriptions of so many collections.
func describedItems(most int) rs.Options {
	return rs.Options{Sizes: resources.Sizes{DescribedItems: most}}
}

// create creates collections without topics.
func (n *node) create(names ...string) {
	n.T.Helper()
	for _, name := range names {
		a := n.PutSettings(name, `{"title":"M"}`)
		require.Equal(n.T, http.StatusCreated, a.StatusCode, "%s", a.Bytes)
	}
}

// described reads the Source Description, and returns the names of the collections that each of
// its parts lists; of one that is not divided, as of its only part.
func (n *node) described(header ...string) (parts [][]string) {
	t := n.T
	t.Helper()
	d := &reader{node: n}
	names := func(doc *listed) (names []string) {
		require.Equal(t, resourcesync.Description, doc.Capability)
		d.describedBy(doc.Find(resourcesync.RelDescribedBy))
		for _, item := range doc.items {
			require.Equal(t, resourcesync.CapabilityList, item.Capability)
			name, _, _ := strings.Cut(strings.TrimPrefix(item.Loc, n.URL("/topicmaps/")), "/")
			names = append(names, name)
		}
		return names
	}
	wellKnown := n.URL("/.well-known/resourcesync")
	top := d.parse(wellKnown, n.MustGet(wellKnown, header...).Bytes)
	if !top.Index {
		d.leads(top, resourcesync.RelIndex, "")
		return [][]string{names(top)}
	}
	require.Equal(t, resourcesync.Description, top.Capability)
	d.describedBy(top.Find(resourcesync.RelDescribedBy))
	for i, item := range top.items {
		require.Equal(t, n.URL(fmt.Sprintf("/resourcesync/description-%d.xml", i+1)), item.Loc)
		require.Equal(t, resourcesync.Description, item.Capability)
		a := n.MustGet(item.Loc, header...)
		require.Equal(t, resourcesync.MediaTypeXML, a.MediaType())
		part := d.parse(item.Loc, a.Bytes)
		require.False(t, part.Index)
		d.leads(part, resourcesync.RelIndex, wellKnown)
		parts = append(parts, names(part))
	}
	return parts
}

// More collections than a Source Description may list are in several, by an index at the
// well-known URL (Z39.99 §8, Describing the Source).
func TestSourceDescriptionIsDivided(t *testing.T) {
	t.Parallel()
	n := startWith(t, describedItems(2))
	n.create("b", "a")
	assert.Equal(t, [][]string{{"a", "b"}}, n.described())
	assert.Equal(t, http.StatusNotFound, n.Get("/resourcesync/description-1.xml").StatusCode, "there is only the one document")

	n.create("d", "c")
	assert.Equal(t, [][]string{{"a", "b"}, {"c", "d"}}, n.described())
	n.create("e")
	assert.Equal(t, [][]string{{"a", "b"}, {"c", "d"}, {"e"}}, n.described())
	for _, url := range []string{"/resourcesync/description-0.xml", "/resourcesync/description-4.xml", "/resourcesync/description-999999999999999999.xml", "/resourcesync", "/resourcesync/"} {
		assert.Equal(t, http.StatusNotFound, n.Get(url).StatusCode, url)
	}
	a := n.MustGet("/resourcesync/description-3.xml")
	assert.Equal(t, http.StatusNotModified, n.Get("/resourcesync/description-3.xml", "If-None-Match", a.Header.Get("ETag")).StatusCode)
	n.create("f")
	assert.Equal(t, http.StatusOK, n.Get("/resourcesync/description-3.xml", "If-None-Match", a.Header.Get("ETag")).StatusCode)

	d := &reader{node: n}
	list := n.URL("/topicmaps/e/resourcesync/capabilitylist.xml")
	d.leads(d.parse(list, n.MustGet(list).Bytes), resourcesync.RelUp, n.URL("/.well-known/resourcesync"))

	n.MustSet("a", `{"resourceSync":false}`)
	assert.Equal(t, [][]string{{"b", "c"}, {"d", "e"}, {"f"}}, n.described())
	if _, err := served.Schemas(); err == nil {
		checked, complaints := n.Lint.Validate(t)
		assert.Empty(t, complaints)
		assert.Positive(t, checked["siteindex11"])
		assert.Greater(t, checked["sitemap11"], 4)
	}
}

// The parts do not say how many collections there are that one may not read.
func TestPartsOfTheSourceDescriptionHaveWhatOneMayRead(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	n := startWith(t, describedItems(2), func(c *server.Config) { c.ReadTokens = map[string][]string{"b": {token}} })
	n.create("a", "b", "c", "d")
	assert.Equal(t, [][]string{{"a", "c"}, {"d"}}, n.described())
	assert.Equal(t, [][]string{{"a", "b"}, {"c", "d"}}, n.described("Authorization", "Bearer "+token))
	assert.Contains(t, n.MustGet("/resourcesync/description-1.xml").Header.Get("Cache-Control"), "private")
}

// A mirror that is given the address of the server alone finds the sets of all parts.
func TestSetsOfADividedSourceDescriptionAreFound(t *testing.T) {
	t.Parallel()
	n := startWith(t, describedItems(2))
	var sets []follow.Offer
	for i := range 5 {
		name := fmt.Sprint("m", i)
		n.Publish(name, served.Cities(2, name))
		sets = append(sets, follow.Offer{URL: n.URL("/topicmaps/" + name + "/resourcesync/capabilitylist.xml")})
	}
	mirror := func(ref string) (*follow.Delta, error) {
		source := &destination.Source{Fetcher: fetch.Fetcher{HTTP: n.HTTP}.WithDefaults()}
		t.Cleanup(func() { require.NoError(t, source.Close()) })
		return source.Delta(t.Context(), ref, follow.Look{}, nil)
	}
	var choice *follow.ChoiceError
	for _, ref := range []string{n.URL("/"), n.URL("/.well-known/resourcesync")} {
		_, err := mirror(ref)
		require.ErrorAs(t, err, &choice)
		assert.Equal(t, sets, choice.Collections)
	}
	_, err := mirror(n.URL("/resourcesync/description-2.xml"))
	require.ErrorAs(t, err, &choice)
	assert.Equal(t, sets[2:4], choice.Collections, "one part alone")
	news, err := mirror(sets[4].URL)
	require.NoError(t, err)
	records := 0
	for _, err := range news.Records(t.Context()) {
		require.NoError(t, err)
		records++
	}
	assert.Equal(t, 3, records)
}

// A topic leads to its forms, and each of these back (Z39.99 §14.3, Alternate Representations).
func TestTopicsAndTheirFormsLeadToEachOther(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Cities(1, "a"))
	links := func(url, rel string) (found []string) {
		for _, link := range n.MustGet(url).Header.Values("Link") {
			if href, rest, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">"); strings.Contains(rest, `rel="`+rel+`"`) {
				found = append(found, href)
			}
		}
		return found
	}
	topics := n.visit("m").list
	require.NotEmpty(t, topics)
	for topic := range topics {
		assert.Equal(t, []string{topic + ".xtm1", topic + ".xtm21"}, links(topic, "alternate"))
		assert.Empty(t, links(topic, "canonical"))
		for _, form := range links(topic, "alternate") {
			assert.Equal(t, []string{topic}, links(form, "canonical"))
			assert.Empty(t, links(form, "alternate"))
		}
	}
}

// From what belongs to a topic map its Capability List is found, where there is one.
func TestFeedsLeadToTheCapabilityList(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Cities(1, "a"))
	for _, path := range []string{"", "/fragments", "/snapshots", "/records", "/records/complete"} {
		at := n.URL("/topicmaps/m" + path)
		for range 2 { // the second time it is known
			found := resourcesync.DiscoverInHeader(n.MustGet(at).Header.Values("Link"), at)
			assert.Equal(t, []string{n.URL("/topicmaps/m/resourcesync/capabilitylist.xml")}, found, path)
		}
	}
	n.MustSet("m", `{"resourceSync":false}`)
	for _, path := range []string{"", "/fragments", "/snapshots", "/records", "/records/complete"} {
		at := n.URL("/topicmaps/m" + path)
		assert.Empty(t, resourcesync.DiscoverInHeader(n.MustGet(at).Header.Values("Link"), at), path)
	}
}
