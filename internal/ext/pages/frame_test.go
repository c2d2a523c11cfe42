package pages_test

import (
	"net/http"
	gopath "path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	publisher "github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Each page of a map leads to its hierarchy, and shows the possible actions: those of the current state, whatever was
// found before.
func TestPagesOfAMapHaveItsHierarchyAndLicence(t *testing.T) {
	t.Parallel()
	n := forTurtle(t)
	const concepts = skosPrefixes + `:dog a skos:Concept ; skos:broader :animal ; skos:inScheme :s . :animal a skos:Concept ; skos:inScheme :s .
`
	dog := served.TopicPath("voc", "http://x/dog") + ".html"
	paths := []string{dog, "/topicmaps/voc.html", "/topicmaps/voc/index.html", "/topicmaps/voc/types.html", "/topicmaps/voc/snapshots.html", "/topicmaps/voc/search.html?q=dog"}
	for _, version := range []struct{ says, licence string }{
		{"", ""},
		{":s a skos:ConceptScheme .", ""},
		{`:s a skos:ConceptScheme ; dct:license <https://creativecommons.org/licenses/by/4.0/> .`, `Licence: <a href="https://creativecommons.org/licenses/by/4.0/" rel="license"><bdi>CC BY 4.0</bdi></a>`},
		{`:s a skos:ConceptScheme ; dct:license :l . :l skos:prefLabel "ours"@en .`, `Licence: <a href="http://x/l" rel="license"><bdi lang="en" dir="ltr">ours</bdi></a>`},
		{`:s a skos:ConceptScheme ; dct:rights "All of them"@en .`, `Licence: <bdi lang="en" dir="ltr">All of them</bdi>`},
		{`:s a skos:ConceptScheme ; dct:license "https://opendatacommons.org/licenses/odbl/" .`, `Licence: <a href="https://opendatacommons.org/licenses/odbl/" rel="license"><bdi>odbl (opendatacommons.org)</bdi></a>`},
		{"", ""},
	} {
		publishTurtle(t, n, "voc", concepts+version.says)
		for _, path := range paths {
			page := string(n.MustGet(path).Bytes)
			assert.Contains(t, page, `<a href="`+n.URL("/topicmaps/voc/hierarchies/"+fragment.Key("http://www.w3.org/2004/02/skos/core#broader")+".html")+`">Hierarchy</a>`, path)
			tab, marked := map[string]string{"index.html": "A–Z", "types.html": "Types", "snapshots.html": "Snapshots"}[gopath.Base(path)]
			assert.Equal(t, marked, strings.Contains(page, ` aria-current="true">`+tab+`</a>`), path)
			assert.Contains(t, page, `<a href="`+n.URL("/topicmaps/voc.html#cite")+`">Cite it</a>`, path)
			assert.NotContains(t, page, "Proven")
			if version.licence != "" {
				assert.Contains(t, page, version.licence, path)
			} else {
				assert.NotContains(t, page, "Licence:", path)
			}
		}
	}
	assert.Contains(t, shown(n.MustGet(dog, "Accept-Language", "de")), "Hierarchie A–Z")
	n.Publish("m", served.Small())
	assert.NotContains(t, shown(n.MustGet("/topicmaps/m.html")), "Hierarchy")
	assert.NotContains(t, shown(n.MustGet("/topicmaps.html")), "Cite it")
}

// A copy shows on each page the time when it last equalled its source, also when nothing else is new.
func TestPagesOfACopySayWhenItWasProven(t *testing.T) {
	t.Parallel()
	origin, n, clock := served.Start(t), served.Start(t), served.NewClock()
	origin.Publish("m", served.Small())
	c, err := client.New(client.Config{Store: n.Store.(*store.DB), Logger: publisher.Silent, Now: clock.Now})
	require.NoError(t, err)
	_, err = c.Subscribe(t.Context(), origin.URL("/topicmaps/m"), client.SubscribeOptions{Replicate: true})
	require.NoError(t, err)
	proven := func(at time.Time) {
		clock.Set(at)
		_, err = c.Verify(t.Context(), "m", false)
		require.NoError(t, err)
	}
	_, err = c.Sync(t.Context(), "m")
	require.NoError(t, err)
	path := served.TopicPath("m", served.Oslo) + ".html"
	proven(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC))
	first := n.MustGet(path)
	assert.Contains(t, shown(first), "Proven equal to its source at 2026-05-01 10:00:00 UTC")
	assert.Equal(t, http.StatusNotModified, n.Get(path, "If-None-Match", first.Header.Get("ETag")).StatusCode)
	proven(time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC))
	assert.Contains(t, shown(n.MustGet(path, "If-None-Match", first.Header.Get("ETag"))), "2026-05-01 11:00:00 UTC")
}
