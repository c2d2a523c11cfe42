package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// many serves many records: /feed states that each is deleted, /list.xml that each is a resource.
func many(ts *testscript.TestScript, _ bool, args []string) {
	count, err := strconv.Atoi(args[0])
	ts.Check(err)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/feed":
			fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:t="http://www.egovpt.org/tmshare"><id>urn:feed</id><title>Many</title><updated>2024-01-01T00:00:00Z</updated>`,
				`<t:ServerSrcLocatorPrefix>http://example.org/many/</t:ServerSrcLocatorPrefix>`)
			for i := range count {
				fmt.Fprintf(w, `<entry><id>urn:record:%d</id><title>Record %[1]d</title><updated>2024-01-01T00:00:00Z</updated><content/></entry>`, i)
			}
			fmt.Fprint(w, `</feed>`)
		case "/list.xml":
			fmt.Fprint(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2024-01-01T00:00:00Z"/>`)
			for i := range count {
				fmt.Fprintf(w, `<url><loc>%s/r/%d</loc><lastmod>2023-01-01T00:00:00Z</lastmod></url>`, server.URL, i)
			}
			fmt.Fprint(w, `</urlset>`)
		default:
			fmt.Fprint(w, r.URL.Path)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("MANY", server.URL)
}
