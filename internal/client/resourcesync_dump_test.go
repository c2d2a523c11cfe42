package client_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/client"
)

// A Source may have only packages: no list, no times, no documents at the URIs of its resources. It refuses resources
// of other servers in them, as in a list.
func TestSourceWithADumpOnly(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	urlset := func(metadata, items string) string {
		return `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md ` + metadata + `/>` + items + `</urlset>`
	}
	packed := func(uri, path string) string {
		return `<url><loc>` + uri + `</loc><rs:md path="` + path + `"/></url>`
	}
	p.put("package.zip", zipOf(t, map[string]string{
		"manifest.xml": urlset(`capability="resourcedump-manifest"`, packed(p.URL+"/a", "/a.xtm")+packed(p.URL+"/b", "/b.xtm")+packed("http://bank.example.com/c", "/c.xtm")),
		"a.xtm":        doc(topic("a", "A")), "b.xtm": doc(topic("b", "B")), "c.xtm": doc(topic("c", "C")),
	}))
	p.put("dump.xml", urlset(`capability="resourcedump" at="`+second(5)+`"`, `<url><loc>`+p.URL+`/package.zip</loc></url>`))
	s := p.following(t, "dump.xml", func(c *client.Config) { c.Tries = 1 })
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "bank.example.com")
	s.hasAs("egov", s.known("egov").SP, doc(topic("a", "A"), topic("b", "B")))
	assert.NotContains(t, s.reported(), "package")
}
