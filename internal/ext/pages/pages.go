// Package pages shows people the content of a server: its maps, their topics, types and changes, as HTML without
// scripts. The address of a page is that of a feed or a resource with ".html" appended. Programs that ask for another
// type never get a page.
package pages

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Ending is that of the addresses of pages.
const Ending = ".html"

// MediaType is that of pages.
const MediaType = layout.MediaType

// Pages answers with pages. It is safe for concurrent use.
type Pages struct {
	*server.Server
	Sessions *Sessions

	SearchWithin time.Duration // limit of the time of a search; 0: that of other searches
	Forms        bool          // forms to change topics are available

	summaries summaries
	standings standings
	frames    recent[string, mapFrame] // by states and languages

	node http.Handler // serves the pages of the node; nil: there are none
}

// tag returns the entity tag of an answer that is made of a state of a collection, in the reader's languages.
func (p *Pages) tag(r *http.Request, c *store.Collection) string {
	return p.StateTag(r, server.StateOf(c)+"\x00"+r.URL.RawQuery+"\x00"+strings.Join(LanguagesOf(r, c), ",")+"\x00"+
		layout.LanguageOf(r).Tag+"\x00"+p.root(r))
}

// templates returns the pages within the layout, by name. They are parsed at first use, because most commands need
// none.
var templates = sync.OnceValue(func() map[string]*layout.Template {
	all := map[string]*layout.Template{}
	files, err := fs.Glob(texts.Pages, "server/*.html")
	if err != nil {
		panic(err)
	}
	const parts, ofForms = "server/parts.html", "server/formparts.html"
	for _, file := range files {
		if file != parts && file != ofForms {
			name := strings.TrimSuffix(path.Base(file), ".html")
			all[name] = layout.Parse(parts, ofForms, file)
		}
	}
	return all
})

// page is the data that all pages have.
type page struct {
	Title  string
	Self   link   // an addition to the title: a language, a notation
	Path   []link // from the overview to here
	Style  string
	Script string // address of the script; "": none
	Node   string // name of the server
	Named  bool   // that is no address, and belongs into titles
	Of     any    // data of the page's content
	Switch []layout.Choice
	frame

	Less func() (*page, error) // makes a shorter page if this one is too long; nil: impossible
}

// mostOfPage is the maximum length of a page that can be shortened, in bytes.
const mostOfPage = 62 << 10

// link leads to a page.
type link = layout.Link

// Policy is the content security policy of pages.
const Policy = layout.Policy

// write answers with a page that is made of a state of a collection, if the client does not have it.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, v *store.View, name string,
	build func() (*page, error)) error {
	return p.writeTagged(w, r, v, p.tag(r, &v.Collection), name, build)
}

// writeTagged answers with a page of a collection, if the client does not have the one with the tag.
func (p *Pages) writeTagged(w http.ResponseWriter, r *http.Request, v *store.View, tag, name string,
	build func() (*page, error)) error {
	head(w)
	proven, err := proven(v)
	if err != nil {
		return err
	}
	if proven != nil {
		tag = web.Digest([]byte(tag + feeds.FormatTime(*proven)))
	}
	if p.edits(r) {
		tag += "-edit" // there are links to forms on it
	}
	return p.Answers.WriteBytes(w, r, tag, "no-cache", func() ([]byte, error) {
		made, err := build()
		if err != nil {
			return nil, err
		}
		if err := p.framed(r, v, made); err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = p.execute(&b, r, name, made)
		return b.Bytes(), err
	})
}

// writeEachTime answers with a page that depends on more than the state of a collection. Its ETag is made of its bytes.
func (p *Pages) writeEachTime(w http.ResponseWriter, r *http.Request, name string, made *page) error {
	head(w)
	return p.Answers.WriteSmall(w, r, MediaType, "no-cache", func(w io.Writer) error {
		return p.execute(w, r, name, made)
	})
}

func head(w http.ResponseWriter) {
	layout.SetHeaders(w.Header())
	w.Header().Set("Vary", "Accept-Encoding, Accept-Language")
}

func (p *Pages) execute(w io.Writer, r *http.Request, name string, made *page) error {
	made.Node, made.Named = p.titleOfSearched(nil), p.Name != ""
	made.Style, made.Switch = p.fileURL(layout.StyleName), layout.Switch(r)
	root, in := p.root(r), layout.LanguageOf(r)
	var b bytes.Buffer
	if err := templates()[name].Execute(&b, in, made); err != nil {
		return err
	}
	if b.Len() > mostOfPage && made.Less != nil {
		less, err := made.Less()
		if err != nil {
			return err
		}
		less.frame = made.frame
		return p.execute(w, r, name, less)
	}
	if root == "" && !layout.Keeps(r) {
		_, err := w.Write(b.Bytes())
		return err
	}
	own := layout.Keep(r, b.Bytes(), string(p.URLs))
	if root != "" {
		for _, attribute := range []string{` href="`, ` action="`, ` src="`} {
			own = bytes.ReplaceAll(own, []byte(attribute+string(p.URLs)+"/"), []byte(attribute+root))
		}
	}
	_, err := w.Write(own)
	return err
}

// root returns the prefix of relative references from a page to others; "" for a request to the public URL of the
// server. For other hosts, such as tunnels, links and forms keep the requested host.
func (p *Pages) root(r *http.Request) string {
	base, err := url.Parse(string(p.URLs))
	if err != nil || r.Host == base.Host {
		return ""
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), base.EscapedPath())
	if depth := strings.Count(path, "/") - 1; depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}

func (p *Pages) fileURL(name string) string { return string(p.URLs) + "/pages/" + name }

// File answers with the style sheet, or the script.
func (p *Pages) File(w http.ResponseWriter, r *http.Request) error {
	content, mediaType := layout.Style, "text/css; charset=utf-8"
	switch web.Var(r, "name") {
	case layout.StyleName:
	case layout.ScriptName:
		content, mediaType = layout.Script, "text/javascript; charset=utf-8"
	default:
		return web.Problemf(http.StatusNotFound, "there is no such style sheet or script; reload the page")
	}
	return p.Answers.WriteSmall(w, r, mediaType, layout.StyleCaching, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// noIcon answers requests for an icon, which browsers send without a link to one. Its absence is no error.
func noIcon(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Cache-Control", "public, max-age=86400")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Home leads from the root of the server to the overview.
func (p *Pages) Home(w http.ResponseWriter, r *http.Request) error {
	to := p.URLs.Overview()
	if !forReaders(r) {
		to += Ending
	}
	return p.SeeOther(w, r, to)
}

// Alone returns a handler that redirects feed readers from the address of a page to its feed, and passes other requests
// to h. So users can subscribe to an address copied from a browser.
func (p *Pages) Alone(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !forReaders(r) {
			return h(w, r)
		}
		return p.SeeOther(w, r, string(p.URLs)+strings.TrimSuffix(r.URL.EscapedPath(), Ending))
	}
}

// forReaders reports whether a request is that of a reader of feeds.
func forReaders(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/atom+xml") && !strings.Contains(accept, "text/html")
}

// beside returns a handler that redirects browsers from a feed or a resource to its page. It passes other requests to
// h, and those that name a format or ask for the data, as links of pages do.
func (p *Pages) beside(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if web.Var(r, web.EndingVar) != "" || strings.HasSuffix(r.URL.Path, Ending) { // a form that was asked for
			return h(w, r)
		}
		if r.URL.Query().Get(layout.As) == layout.Data {
			return h(w, r)
		}
		web.RecorderOf(r).Varies = navigation // caches must not serve the data to browsers
		if !ForPeople(r) {
			return h(w, r)
		}
		to := string(p.URLs) + r.URL.EscapedPath() + Ending
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		return p.SeeOther(w, r, to)
	}
}

// navigation names the headers of a navigation.
const navigation = "Sec-Fetch-Mode, Upgrade-Insecure-Requests"

// ForPeople reports whether a browser sent the request to navigate to a page. Accept alone is not enough: Java's
// HttpURLConnection asks for HTML by default, and crawlers send what browsers do. Only browsers send the headers of a
// navigation: over HTTPS and to this machine Sec-Fetch-Mode (W3C Fetch Metadata), else Upgrade-Insecure-Requests.
func ForPeople(r *http.Request) bool {
	navigates := r.Header.Get("Sec-Fetch-Mode") == "navigate" || r.Header.Get("Upgrade-Insecure-Requests") == "1"
	return navigates && strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

// Trail is the path from the overview to a page of a collection.
func (p *Pages) Trail(r *http.Request, c *store.Collection, more ...link) []link {
	all := []link{{Title: Say(r, texts.Maps), URL: p.URLs.Overview() + Ending}}
	if c != nil {
		all = append(all, link{Title: titleOf(c), URL: p.URLs.Map(c) + Ending})
	}
	return append(all, more...)
}

// Say returns a text in the language of the page that answers a request.
func Say(r *http.Request, t texts.Text, values ...any) string {
	return layout.LanguageOf(r).Say(t, values...)
}

func titleOf(c *store.Collection) string {
	if t := strings.TrimSpace(c.Title); t != "" {
		return t
	}
	return c.Name
}

// Problem answers a browser with a page that describes the problem, and reports whether it did. It leaves answers to
// programs to its caller.
func (p *Pages) Problem(w http.ResponseWriter, r *http.Request, problem *web.Problem) bool {
	if !ForPeople(r) {
		return false
	}
	shown := struct {
		*web.Problem
		Detail  string
		Origin  address // of a map that is written elsewhere
		Missing bool
		Maps    string
		Map     *link // the map of the request; nil: none, or not readable for this client
		Search  string
	}{
		Problem: problem, Origin: addressOf(problem.Origin),
		Missing: problem.Status == http.StatusNotFound || problem.Status == http.StatusGone,
		Maps:    p.URLs.Overview() + Ending,
	}
	name, detail := web.Var(r, "map"), problem.Detail
	if what, ok := strings.CutPrefix(detail, store.ErrNotFound.Error()+": "); ok {
		detail = texts.ThereIsNo + strings.TrimPrefix(what, "a ")
	}
	shown.Detail = layout.Sentence(detail, name)
	c := p.mapFor(r, name)
	made := &page{Title: Say(r, texts.Text(problem.Title)), Path: p.Trail(r, c),
		frame: frame{Search: p.searchField(c, r.URL.Query().Get("q"))}}
	if c != nil && shown.Missing {
		shown.Map, shown.Search = &link{Title: titleOf(c), URL: p.URLs.Map(c) + Ending}, made.Search.Action
	}
	made.Of = shown
	head(w)
	w.WriteHeader(problem.Status)
	if r.Method != http.MethodHead {
		_ = p.execute(w, r, "problem", made) // the client has gone
	}
	return true
}

// mapFor returns the map with a name; nil if there is none that the client may read.
func (p *Pages) mapFor(r *http.Request, name string) *store.Collection {
	if name == "" {
		return nil
	}
	all, err := p.Visible(r)
	if err != nil {
		return nil // the problem itself is shown
	}
	if i := slices.IndexFunc(all, func(c store.Collection) bool { return c.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}
