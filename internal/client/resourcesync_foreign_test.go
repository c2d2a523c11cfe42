package client_test

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// Sources of other producers: lists of XTM documents without TMShare.

// second is the time at a second of the minute.
func second(n int) string { return fmt.Sprintf("2012-11-23T10:00:%02dZ", n) }

// sitemap publishes a document of ResourceSync, or without metadata a plain Sitemap.
func (p *producer) sitemap(path, metadata string, items ...string) {
	if metadata != "" {
		metadata = "<rs:md " + metadata + "/>"
	}
	p.put(path, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">`+metadata+strings.Join(items, "\n")+`</urlset>`)
}

// list publishes the Resource List of a second.
func (p *producer) list(at int, items ...string) {
	p.sitemap("list.xml", `capability="resourcelist" at="`+second(at)+`"`, items...)
}

// item lists the resource at a path; the time is left out where it is 0, the metadata where it
// is "".
func (p *producer) item(path string, at int, metadata string, links ...string) string {
	item := "<url><loc>" + p.URL + "/" + path + "</loc>"
	if at > 0 {
		item += "<lastmod>" + second(at) + "</lastmod>"
	}
	if metadata != "" {
		item += "<rs:md " + metadata + "/>"
	}
	return item + strings.Join(links, "") + "</url>"
}

func linkTo(rel, href, more string) string {
	return `<rs:ln rel="` + rel + `" href="` + href + `" ` + more + `/>`
}

// stated returns the metadata of the bytes of a document.
func stated(body string) string {
	return fmt.Sprintf(`hash="md5:%x sha-256:%x" length="%d"`, md5.Sum([]byte(body)), sha256.Sum256([]byte(body)), len(body))
}

// following returns a subscriber whose egov follows the document at a path.
func (p *producer) following(t *testing.T, path string, change ...func(*client.Config)) *subscriber {
	s := newSubscriber(t, append([]func(*client.Config){func(c *client.Config) { c.Parallel, c.Tries = 1, 1 }}, change...)...)
	sub, err := s.Subscribe(context.Background(), p.URL+"/"+path, client.SubscribeOptions{Name: "egov", Protocol: "resourcesync"})
	require.NoError(t, err)
	require.Equal(t, store.Protocol("resourcesync"), sub.Protocol)
	p.seen()
	return s
}

// hasOf asserts that the source is equal to a document of these elements.
func (s *subscriber) hasOf(p *producer, list string, elements ...string) {
	s.t.Helper()
	s.hasAs("egov", p.URL+"/"+list+"#", doc(elements...))
}

// A plain Sitemap of XTM documents is sufficient. Resources that it omits are removed, and those without metadata are
// fetched each time.
func TestSitemapOfXTMDocuments(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("a", doc(topic("a", "A")))
	p.put("b", xtm1("b", "B"))
	p.put("c", doc(topic("c", "C")))
	p.sitemap("sitemap.xml", "", p.item("a", 1, ""), p.item("b", 0, ""), p.item("c", 1, ""))
	s := p.following(t, "sitemap.xml")
	assert.Contains(t, s.reported(), "/sitemap.xml has no source locator prefix of its own; its statements will bear "+p.URL+"/sitemap.xml#")
	s.syncQuiet()
	assert.Equal(t, "sitemap.xml sitemap.xml b a c", p.seen())
	s.hasOf(p, "sitemap.xml", topic("a", "A"), topic("b", "B"), topic("c", "C"))

	p.put("a", doc(topic("a", "A changed")))
	p.put("b", xtm1("b", "B changed"))
	p.sitemap("sitemap.xml", "", p.item("a", 1, ""), p.item("b", 0, ""))
	s.syncQuiet()
	assert.Equal(t, "sitemap.xml sitemap.xml b sitemap.xml sitemap.xml b sitemap.xml sitemap.xml b", p.seen(), "the other says that it is the same; three readings lack c")
	s.hasOf(p, "sitemap.xml", topic("a", "A"), topic("b", "B changed"))
	p.sitemap("sitemap.xml", "", p.item("a", 2, ""), p.item("b", 0, ""))
	s.syncQuiet()
	s.hasOf(p, "sitemap.xml", topic("a", "A changed"), topic("b", "B changed"))
	s.hasTidied()

	_, err := s.Verify(context.Background(), "egov", true)
	assert.ErrorContains(t, err, "there is nothing to compare with")
}

// What a Source states of bytes is held to as far as it can be computed.
func TestWhatASourceStatesOfBytes(t *testing.T) {
	t.Parallel()
	body := doc(topic("a", "A"))
	other := doc(topic("a", "B")) // as long
	wrong := func(s string) string { return strings.NewReplacer("0", "1", "1", "2", "9", "0", "a", "b").Replace(s) }
	fixity := map[string]string{
		"md5":     fmt.Sprintf("md5:%x", md5.Sum([]byte(body))),
		"sha-1":   fmt.Sprintf("sha-1:%x", sha1.Sum([]byte(body))),
		"sha-256": fmt.Sprintf("sha-256:%x", sha256.Sum256([]byte(body))),
	}
	for name, c := range map[string]struct{ metadata, says string }{
		"nothing":               {``, ""},
		"the length":            {fmt.Sprintf(`length="%d"`, len(body)), ""},
		"another length":        {fmt.Sprintf(`length="%d"`, len(body)+1), fmt.Sprintf("its length is %d, not %d", len(body), len(body)+1)},
		"a shorter length":      {fmt.Sprintf(`length="%d"`, len(body)-1), fmt.Sprintf("not %d", len(body)-1)},
		"no length at all":      {`length="0"`, "not 0"},
		"md5":                   {`hash="` + fixity["md5"] + `"`, ""},
		"another md5":           {`hash="` + wrong(fixity["md5"][4:]) + `"`, ""}, // no effect without an algorithm
		"another md5, named":    {`hash="md5:` + wrong(fixity["md5"][4:]) + `"`, "its md5 is " + fixity["md5"][4:] + ", not " + wrong(fixity["md5"][4:])},
		"sha-1":                 {`hash="` + fixity["sha-1"] + `"`, ""},
		"sha-256":               {`hash="` + fixity["sha-256"] + `"`, ""},
		"another sha-256":       {`hash="sha-256:` + wrong(fixity["sha-256"][8:]) + `"`, "its sha-256 is " + fixity["sha-256"][8:] + ", not " + wrong(fixity["sha-256"][8:])},
		"one of two is another": {`hash="` + fixity["md5"] + ` sha-256:` + wrong(fixity["sha-256"][8:]) + `"`, "its sha-256 is"},
		"unknown":               {`hash="tiger:0123"`, ""},
		"unknown, and a length": {fmt.Sprintf(`hash="tiger:0123" length="%d"`, len(body)+1), "its length is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProducer(t)
			p.put("a", body)
			p.list(5, p.item("a", 1, c.metadata+` type="`+typeXTM21+`"`))
			s := p.following(t, "list.xml")
			if c.says == "" {
				s.syncQuiet()
				s.hasOf(p, "list.xml", topic("a", "A"))
				return
			}
			for range 2 {
				_, bad := s.syncPasses(1)
				assert.Contains(t, bad[0].Error, c.says)
				assert.Equal(t, p.URL+"/a", bad[0].Entry)
				s.hasOf(p, "list.xml")
			}
			p.list(6, p.item("a", 2, stated(body)))
			s.syncQuiet()
			s.hasOf(p, "list.xml", topic("a", "A"))
			p.put("a", other)
			p.list(8, p.item("a", 7, stated(other)))
			s.syncQuiet()
			s.hasOf(p, "list.xml", topic("a", "B"))
		})
	}
}

// Resources of other types are ignored and counted in a message; other content in a resource of type XTM is an error.
func TestResourcesThatAreNoXTM(t *testing.T) {
	t.Parallel()
	const page = "<!DOCTYPE html><html><body>Hello<br></body></html>"
	p := newProducer(t)
	p.put("page", page)
	p.put("picture", "\x89PNG")
	p.put("untold", page)
	p.put("a", doc(topic("a", "A")))
	p.put("b", page)
	p.put("b.xtm", doc(topic("b", "B")))
	items := func(at int) []string {
		return []string{
			p.item("page", at, `type="text/html"`), p.item("picture", at, `type="image/png"`), p.item("untold", at, ""), p.item("a", at, `type="text/xml"`),
			// A page with links to readable forms, and to others.
			p.item("b", at, `type="text/html"`, linkTo("alternate", p.URL+"/b.xhtml", `type="application/xhtml+xml"`), linkTo("alternate", p.URL+"/b.xtm", `type="`+typeXTM21+`"`),
				linkTo("describedby", p.URL+"/none.xtm", `type="`+typeXTM21+`"`), linkTo("collection", p.URL+"/all", ""), linkTo("http://example.org/rel", "urn:x:other", ""), linkTo("alternate", "urn:x:b", "")),
		}
	}
	p.list(5, items(1)...)
	s := p.following(t, "list.xml")
	r, bad := s.syncPasses(1)
	assert.Equal(t, []int{5, 2}, []int{r.Entries, r.Unusable})
	assert.Equal(t, p.URL+"/untold", bad[0].Entry)
	assert.Equal(t, "list.xml list.xml untold a b.xtm", p.seen())
	s.hasOf(p, "list.xml", topic("a", "A"), topic("b", "B"))

	_, bad = s.syncPasses(1)
	assert.Equal(t, 2, bad[0].Tries)
	assert.Equal(t, "list.xml list.xml untold", p.seen())
	p.put("untold", doc(topic("c", "C")))
	s.syncQuiet()
	s.hasOf(p, "list.xml", topic("a", "A"), topic("b", "B"), topic("c", "C"))

	p.list(9, append(items(8)[:4], p.item("b", 8, `type="text/html"`))...)
	r = s.syncQuiet()
	assert.Equal(t, 3, r.Unusable, "what it said in another form is gone")
	s.hasOf(p, "list.xml", topic("a", "A"), topic("c", "C"))
}

// Change Lists state new, changed and deleted resources, including unknown ones.
func TestForeignSourceWithChangeLists(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	capability := func(what, path string) string { return p.item(path, 0, `capability="`+what+`"`) }
	up := linkTo("up", p.URL+"/capabilities.xml", "")
	p.sitemap("capabilities.xml", `capability="capabilitylist"`, capability("resourcelist", "list.xml"), capability("changelist", "changes.xml"))
	p.list(5, p.item("a", 1, ""), p.item("b", 2, ""))
	changes := func(items ...string) {
		p.sitemap("changes.xml", `capability="changelist" from="`+second(5)+`"`, append([]string{up}, items...)...)
	}
	change := func(path string, at int, what string) string { return p.item(path, at, `change="`+what+`"`) }
	changes()
	p.put("a", doc(topic("a", "A")))
	p.put("b", doc(topic("b", "B")))
	s := p.following(t, "changes.xml")
	s.syncQuiet()
	hasOf := func(elements ...string) { t.Helper(); s.hasOf(p, "capabilities.xml", elements...) }
	hasOf(topic("a", "A"), topic("b", "B"))
	p.seen()

	p.put("a", doc(topic("a", "A2")))
	p.put("c", doc(topic("c", "C")))
	history := []string{change("a", 6, "updated"), change("c", 7, "created"), change("b", 8, "deleted"), change("unknown", 8, "deleted")}
	changes(history...)
	r := s.syncQuiet()
	assert.Equal(t, "capabilities.xml changes.xml a c", p.seen())
	assert.Equal(t, 3, r.Applied)
	hasOf(topic("a", "A2"), topic("c", "C"))

	p.put("b", doc(topic("b", "B again")))
	history = append(history, change("c", 9, "deleted"), change("b", 9, "created"), change("c", 10, "created"), change("c", 11, "deleted"))
	changes(history...)
	s.syncQuiet()
	hasOf(topic("a", "A2"), topic("b", "B again"))

	p.fail("a", http.StatusNotFound)
	changes(append(history, change("a", 12, "updated"))...)
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "404 Not Found")
	hasOf(topic("b", "B again"))
	changes(append(history, change("a", 12, "updated"), change("a", 13, "deleted"))...)
	s.syncQuiet()
	hasOf(topic("b", "B again"))
	assert.Zero(t, s.syncQuiet().Entries)
}

// URIs are compared as strings; only its URI may identify the topic of a document.
func TestResourcesWithURIsOfAllKinds(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	var items, elements []string
	for path, uri := range map[string]string{ // the first is the path requested from the server
		"größe": "größe", "a b": "a%20b", "x&y": "x&y", "ä": "%C3%A4", "dir/": "dir/", "dir": "dir", "日本": "日本", "~a": "%7ea", "q'": "q'",
	} {
		element := fmt.Sprintf(`<topic><subjectIdentifier href="%s/%s"/><name><value>%s</value></name></topic>`, p.URL, html.EscapeString(uri), html.EscapeString(path))
		p.put(path, doc(element, topic("mentioned", "m")))
		items, elements = append(items, p.item(html.EscapeString(uri), 1, "")), append(elements, element)
	}
	p.list(5, items...)
	s := p.following(t, "list.xml")
	s.syncQuiet()
	s.hasOf(p, "list.xml", elements...)
	p.list(6, items[1:]...)
	s.syncQuiet()
	s.hasOf(p, "list.xml", elements[1:]...)
}

// Statements have the prefix of the subscriber, or the one that the Source declares; if it declares one, its links
// state the topics of resources.
func TestPrefixOfAForeignSource(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	document := doc(topic("a", "A"), topic("b", "B"))
	p.put("a", document)
	p.put("b", document)
	describes := func(id string) string { return linkTo("describes", si(id), "") }
	p.sitemap("plain.xml", "", p.item("a", 1, "", describes("a")), p.item("b", 1, "", describes("b")))
	p.sitemap("declared.xml", `capability="resourcelist" at="`+second(5)+`"`,
		linkTo("https://github.com/tmshare/tmshare/ns/1/source-locator-prefix", "http://psi.example.org/map/", ""), p.item("a", 1, "", describes("a")), p.item("b", 1, "", describes("b")))

	s := newSubscriber(t, func(c *client.Config) { c.Tries = 1 })
	sub, err := s.Subscribe(context.Background(), p.URL+"/plain.xml", client.SubscribeOptions{Name: "egov", Protocol: "resourcesync", SP: "http://psi.example.org/mine#"})
	require.NoError(t, err)
	assert.Equal(t, "http://psi.example.org/mine#", sub.SP)
	_, bad := s.syncPasses(2)
	assert.Contains(t, bad[0].Error, "nothing says which of the topics in it this is about")

	_, err = s.Subscribe(context.Background(), p.URL+"/declared.xml", client.SubscribeOptions{Name: "other", Protocol: "resourcesync", SP: "http://psi.example.org/mine#"})
	assert.ErrorContains(t, err, "its ServerSrcLocatorPrefix is http://psi.example.org/map/")
	require.NoError(t, s.Unsubscribe(context.Background(), "egov"))
	sub, err = s.Subscribe(context.Background(), p.URL+"/declared.xml", client.SubscribeOptions{Name: "egov", Protocol: "resourcesync"})
	require.NoError(t, err)
	assert.Equal(t, "http://psi.example.org/map/", sub.SP)

	// Documents have the URI of a prefix, in any form.
	p.sitemap("ø.xml", `capability="resourcelist" at="`+second(5)+`"`,
		linkTo("https://github.com/tmshare/tmshare/ns/1/source-locator-prefix", "http://psi.example.org/%C3%B8/", ""), p.item("a", 1, "", describes("a")), p.item("b", 1, "", describes("b")))
	o, err := s.Subscribe(context.Background(), p.URL+"/%C3%B8.xml", client.SubscribeOptions{Name: "ø", Protocol: "resourcesync"})
	require.NoError(t, err)
	assert.Equal(t, "http://psi.example.org/ø/", o.SP)
	require.NoError(t, s.db.UpdateSubscription(p.t.Context(), "ø", func(s *store.Subscription) { s.SP = "http://psi.example.org/%C3%B8/" }))
	_, err = s.Sync(context.Background(), "ø")
	require.NoError(t, err)
	require.NoError(t, s.Unsubscribe(context.Background(), "ø"))
	s.syncQuiet()
	s.hasAs("egov", sub.SP, doc(topic("a", "A"), topic("b", "B")))
}

// Of two resources about one topic the first is used, until it is removed.
func TestTwoResourcesAboutOneTopic(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("one", doc(alias("a", "x", "first")))
	p.put("two", doc(topic("x", "second")))
	p.list(5, p.item("one", 1, ""), p.item("two", 2, ""))
	s := p.following(t, "list.xml")
	for range 2 {
		_, bad := s.syncPasses(1)
		assert.Contains(t, bad[0].Error, "/two: the record "+p.URL+"/one describes the topic "+si("a")+" already")
		s.hasOf(p, "list.xml", alias("a", "x", "first"))
	}
	p.list(6, p.item("two", 2, ""))
	s.syncQuiet()
	s.hasOf(p, "list.xml", topic("x", "second"))
}

// Mirrors are requested before the Source, if the subscriber allows it. One that fails, has old bytes or is not allowed
// is skipped.
func TestMirrorsOfASource(t *testing.T) {
	t.Parallel()
	body := doc(topic("a", "A"))
	for name, c := range map[string]struct {
		allowed         bool
		mirror          func(m *producer)
		unstated        bool
		source, mirrors string // the expected requests
	}{
		"it has it":           {true, func(m *producer) { m.put("a", body) }, false, "list.xml list.xml", "a"},
		"it is not allowed":   {false, func(m *producer) { m.put("a", body) }, false, "list.xml list.xml a", ""},
		"it has old bytes":    {true, func(m *producer) { m.put("a", doc(topic("a", "B"))) }, false, "list.xml list.xml a", "a"},
		"it has no XTM":       {true, func(m *producer) { m.put("a", "nothing") }, true, "list.xml list.xml a", "a"},
		"it has not got it":   {true, func(*producer) {}, false, "list.xml list.xml a", "a"},
		"it is out of order":  {true, func(m *producer) { m.fail("a", http.StatusInternalServerError) }, false, "list.xml list.xml a", "a"},
		"it is for some only": {true, func(m *producer) { m.fail("a", http.StatusUnauthorized) }, false, "list.xml list.xml a", "a"},
		"it has had too much": {true, func(m *producer) { m.fail("a", http.StatusTooManyRequests) }, false, "list.xml list.xml a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, first, second := newProducer(t), newProducer(t), newProducer(t)
			c.mirror(first)
			second.put("a", "not to be asked: its priority is lower, and it is not allowed")
			p.put("a", body)
			metadata := stated(body)
			if c.unstated {
				metadata = ""
			}
			p.list(5, p.item("a", 1, metadata, linkTo("duplicate", second.URL+"/a", `pri="2"`), linkTo("duplicate", first.URL+"/a", `pri="1"`), linkTo("duplicate", "urn:x:a", `pri="1"`)))
			s := p.following(t, "list.xml", func(config *client.Config) {
				config.Tries = 3
				if c.allowed {
					config.Hosts = []string{first.URL[len("http://"):]}
				}
			})
			s.syncQuiet()
			assert.Equal(t, []string{c.source, c.mirrors, ""}, []string{p.seen(), first.seen(), second.seen()})
			s.hasOf(p, "list.xml", topic("a", "A"))
		})
	}
}

// A server whose only reference is in robots.txt has a Source too. The user must choose one of several Sitemaps.
func TestSourceThatOnlyRobotsTxtNames(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("maps/a", doc(topic("a", "A")))
	p.sitemap("maps/list.xml", "", p.item("maps/a", 1, ""))
	p.sitemap("pages/list.xml", "", p.item("index.html", 1, ""))
	p.put("robots.txt", "User-agent: *\nSitemap: "+p.URL+"/maps/list.xml\n")
	for _, at := range []string{"", "maps/list.xml"} {
		s := newSubscriber(t)
		sub, err := s.Subscribe(context.Background(), p.URL+"/"+at, client.SubscribeOptions{Protocol: "resourcesync"})
		require.NoError(t, err)
		assert.Equal(t, []string{"maps", p.URL + "/maps/list.xml"}, []string{sub.Name, sub.FragmentsFeed})
		_, err = s.Sync(context.Background(), "maps")
		require.NoError(t, err)
		s.hasAs("maps", p.URL+"/maps/list.xml#", doc(topic("a", "A")))
	}

	p.put("robots.txt", "User-agent: *\nSitemap: /maps/list.xml\nSitemap: /pages/list.xml\n")
	_, err := newSubscriber(t).Subscribe(context.Background(), p.URL, client.SubscribeOptions{Protocol: "resourcesync"})
	var choice *follow.ChoiceError
	require.ErrorAs(t, err, &choice)
	assert.Equal(t, []follow.Offer{{Title: "maps", URL: p.URL + "/maps/list.xml"}, {Title: "pages", URL: p.URL + "/pages/list.xml"}}, choice.Collections)

	// The list that is followed is not there for a while, and robots.txt leads to another one.
	s := p.following(t, "maps/list.xml")
	s.syncQuiet()
	p.fail("maps/list.xml", http.StatusNotFound)
	p.put("robots.txt", "Sitemap: /pages/list.xml\n")
	_, err = s.syncFails()
	assert.ErrorContains(t, err, "/maps/list.xml: the server answered 404 Not Found")
	s.hasOf(p, "maps/list.xml", topic("a", "A"))
}
