// Package served starts servers for tests, sends requests, and checks the answers by the rules and schemas of their
// documents.
package served

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// The names of the protocol are repeated here, so that the tests detect changes in the package.
const (
	SDShare   = "http://www.sdshare.org/2012/core/"
	CWA       = "http://www.egovpt.org/sdshare"
	Own       = "https://github.com/tmshare/tmshare/ns/1"
	AtomType  = "application/atom+xml"
	XTM1Type  = "application/xtm1+xml"
	XTM21Type = "application/x-tm+xml;version=2.1"
)

// Document is an Atom document, or an entry of one, as it is sent.
type Document struct {
	XMLName  xml.Name
	IDs      []string  `xml:"http://www.w3.org/2005/Atom id"`
	Titles   []string  `xml:"http://www.w3.org/2005/Atom title"`
	Summary  []string  `xml:"http://www.w3.org/2005/Atom summary"`
	Updates  []string  `xml:"http://www.w3.org/2005/Atom updated"`
	Authors  []string  `xml:"http://www.w3.org/2005/Atom author>name"`
	Links    []Link    `xml:"http://www.w3.org/2005/Atom link"`
	Prefixes []string  `xml:"http://www.egovpt.org/tmshare ServerSrcLocatorPrefix"`
	TopicSI  []string  `xml:"http://www.egovpt.org/tmshare TopicSI"`
	Resource []string  `xml:"http://www.sdshare.org/2012/core/ resource"`
	State    []string  `xml:"https://github.com/tmshare/tmshare/ns/1 state"`
	Content  []Content `xml:"http://www.w3.org/2005/Atom content"`

	Archive  []struct{} `xml:"http://purl.org/syndication/history/1.0 archive"`
	Complete []struct{} `xml:"http://purl.org/syndication/history/1.0 complete"`

	Entries []Document `xml:"http://www.w3.org/2005/Atom entry"`

	Raw string
}

// Content is an atom:content.
type Content struct {
	Attributes []xml.Attr `xml:",any,attr"`
	Inside     string     `xml:",innerxml"`
}

type Link struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr"`
	Href string `xml:"href,attr"`
}

func (d *Document) ID() string { return d.IDs[0] }

func (d *Document) Updated() string { return d.Updates[0] }

// Hrefs returns the targets of the links with a relation.
func (d *Document) Hrefs(rel string) []string {
	var hrefs []string
	for _, l := range d.Links {
		if l.Rel == rel {
			hrefs = append(hrefs, l.Href)
		}
	}
	return hrefs
}

// Link returns the one link with a relation, or "".
func (d *Document) Link(t testing.TB, rel string) string {
	t.Helper()
	all := d.Hrefs(rel)
	if len(all) == 0 {
		return ""
	}
	require.Len(t, all, 1, "links with rel %s", rel)
	return all[0]
}

// Typed returns the targets of the links with a relation by media type.
func (d *Document) Typed(t testing.TB, rel string) map[string]string {
	t.Helper()
	byType := map[string]string{}
	for _, l := range d.Links {
		if l.Rel == rel {
			require.NotContains(t, byType, l.Type, "links with rel %s", rel)
			byType[l.Type] = l.Href
		}
	}
	return byType
}

// Feed gets a feed document and checks the rules for all of them.
func (n *Node) Feed(url string, headers ...string) *Document {
	n.T.Helper()
	a := n.MustGet(url, headers...)
	d := ParseAtom(n.T, a)
	require.Equal(n.T, "feed", d.XMLName.Local, url)
	_, err := feeds.Decode(bytes.NewReader(a.Bytes), url, feeds.Limits{})
	require.NoError(n.T, err, url)
	return d
}

// Entry gets an entry document and checks the rules for all of them.
func (n *Node) Entry(url string) *Document {
	n.T.Helper()
	d := ParseAtom(n.T, n.MustGet(url))
	require.Equal(n.T, "entry", d.XMLName.Local, url)
	require.Len(n.T, d.Authors, 1, "an entry document has an author of its own")
	return d
}

var (
	timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)
	idForm   = regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// ParseAtom reads an Atom document and checks the rules of RFC 4287 and of the protocol for all feeds and entries.
func ParseAtom(t testing.TB, a Answer) *Document {
	t.Helper()
	require.Equal(t, AtomType, a.Header.Get("Content-Type"))
	d := &Document{Raw: string(a.Bytes)}
	require.NoError(t, xml.Unmarshal(a.Bytes, d))
	require.Equal(t, "http://www.w3.org/2005/Atom", d.XMLName.Space)
	if d.XMLName.Local == "feed" {
		assert.Len(t, d.Authors, 1, "authors of the feed")
		assertEntriesAreLast(t, d.Raw)
	}
	checkCommon(t, d)
	for i := range d.Entries {
		checkCommon(t, &d.Entries[i])
		assert.Empty(t, d.Entries[i].Prefixes, "the prefix is the feed's")
	}
	return d
}

func checkCommon(t testing.TB, d *Document) {
	t.Helper()
	require.Len(t, d.IDs, 1)
	assert.Regexp(t, idForm, d.ID())
	require.Len(t, d.Updates, 1)
	assert.Regexp(t, timeForm, d.Updated())
	require.Len(t, d.Titles, 1)
	assert.NotEmpty(t, strings.TrimSpace(d.Titles[0]))
	assert.NotEmpty(t, d.Link(t, "self"), "self link of %s", d.Titles[0])
	d.Typed(t, "alternate") // one for each type
	for _, l := range d.Links {
		assert.NotEmpty(t, l.Type, l.Href)
		assert.False(t, strings.HasSuffix(l.Href, "/"), "%s ends in a slash", l.Href)
	}
	if d.XMLName.Local == "entry" {
		assert.NotEqual(t, len(d.Hrefs("alternate")) > 0, len(d.Content) > 0,
			"alternate links of %s, or content (of deletion entries)", d.Titles[0])
	}
}

// assertEntriesAreLast checks that a feed has no other elements after its first entry.
func assertEntriesAreLast(t testing.TB, raw string) {
	t.Helper()
	seen := false
	for s := scan.NewScanner(strings.NewReader(raw), scan.Options{}); ; {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		if kind == scan.StartElement && s.Depth() == 2 {
			entry := s.Name().Local == "entry"
			assert.False(t, seen && !entry, "<%s> follows an entry", s.Name().Local)
			seen = seen || entry
		}
	}
}

func At(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return v
}

func IDsOf(entries []Document) []string {
	all := make([]string, len(entries))
	for i := range entries {
		all[i] = entries[i].ID()
	}
	return all
}

// SameType reports whether two media types are the same, parameters included.
func SameType(a, b string) bool {
	x, p, err1 := mime.ParseMediaType(a)
	y, q, err2 := mime.ParseMediaType(b)
	return err1 == nil && err2 == nil && mime.FormatMediaType(x, p) == mime.FormatMediaType(y, q)
}

// History walks a fragments feed from its recent document back to the first one,
// and returns all entries, the newest first, and the documents.
func (n *Node) History(url string) (entries []Document, documents []*Document) {
	n.T.Helper()
	seen := map[string]bool{}
	for url != "" {
		require.False(n.T, seen[url], "the feed leads in a circle: %s", url)
		seen[url] = true
		d := n.Feed(url)
		entries = append(entries, d.Entries...)
		documents = append(documents, d)
		url = d.Link(n.T, "prev-archive")
	}
	return entries, documents
}

// Discard is a ResponseWriter without costs.
type Discard struct {
	Head   http.Header
	Status int
}

func (d *Discard) Header() http.Header { return d.Head }

func (d *Discard) WriteHeader(status int) { d.Status = status }

func (d *Discard) Write(p []byte) (int, error) { return len(p), nil }

func Unzstd(t testing.TB, data []byte) []byte {
	t.Helper()
	// more than readers must be able to take is not sent
	z, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderMaxWindow(1<<20))
	require.NoError(t, err)
	defer z.Close()
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

func (n *Node) PutSettings(name, settings string, headers ...string) Answer {
	n.T.Helper()
	return n.Do(http.MethodPut, "/topicmaps/"+name, strings.NewReader(settings),
		append([]string{"Content-Type", "application/json"}, headers...)...)
}

// MustSet changes settings of a collection that is there.
func (n *Node) MustSet(name, settings string) {
	n.T.Helper()
	a := n.PutSettings(name, settings)
	require.Equal(n.T, http.StatusOK, a.StatusCode, "%s", a.Bytes)
}

func (n *Node) Delete(name, si string, headers ...string) Answer {
	n.T.Helper()
	return n.Do(http.MethodDelete, "/topicmaps/"+name+"/topics/"+fragment.Key(fragment.Ref(si)), nil, headers...)
}

// Record returns the response of a handler, without a socket.
func Record(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Node is a server on a loopback socket over a store of its own.
type Node struct {
	*server.Server
	T    testing.TB
	Logs *testenv.Log
	Lint *Linter
	HTTP *http.Client
	Stop func() // ends the server and its store, once

	Address string // that it listens on
}

// Start starts a server on a store of its own, with all extensions unless Parts are given. After the test its answers
// are validated against the schemas.
func Start(t testing.TB, configure ...func(*server.Config)) *Node {
	t.Helper()
	return StartOn(t, store.Options{Dir: t.TempDir()}, configure...)
}

// StartOn starts a server on the store that the options describe.
func StartOn(t testing.TB, o store.Options, configure ...func(*server.Config)) *Node {
	t.Helper()
	n := &Node{T: t, Logs: &testenv.Log{}, Lint: NewLinter(t), HTTP: &http.Client{
		// The client never sends a body before the server requests it.
		Transport:     &http.Transport{DisableCompression: true, ExpectContinueTimeout: time.Hour},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	logger := slog.New(slog.NewTextHandler(n.Logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Logger, o.Indexes, o.Settings = slog.New(slog.DiscardHandler), ext.Indexes(), extension.Settings(ext.All())
	if _, benchmark := t.(*testing.B); !benchmark {
		o.Badger = badger.Small
	}
	db := stores.Open(n.T, o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n.Address = listener.Addr().String()
	c := server.Config{Store: db, BaseURL: "http://" + listener.Addr().String(), OnLoopback: true, Logger: logger}
	for _, f := range configure {
		f(&c)
	}
	if c.Parts == nil {
		c.Parts = ext.Parts()
	}
	if c.Formats == nil {
		c.Formats = ext.Formats()
	}
	n.Server, err = server.New(c)
	require.NoError(t, err)
	h := &http.Server{Handler: n.Server, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- h.Serve(listener) }()
	n.Stop = sync.OnceFunc(func() {
		n.HTTP.CloseIdleConnections()
		h.Close()
		<-served
		n.Close()
		require.NoError(t, db.Close())
	})
	t.Cleanup(n.Stop)
	return n
}

// DocumentSize makes archive documents of size entries.
func DocumentSize(size int) func(*server.Config) {
	return func(c *server.Config) { c.DocumentSize = size }
}

// Publish makes a collection of an XTM document, under the default prefix.
func (n *Node) Publish(name string, doc []byte) *store.Collection {
	n.T.Helper()
	c, err := n.Import(context.Background(), store.Collection{Name: name, SP: n.SP(name)}, bytes.NewReader(doc),
		name+".xtm")
	require.NoError(n.T, err)
	return c
}

// SP returns the prefix of a collection, or the one to import it with.
func (n *Node) SP(name string) string {
	if l, err := n.Store.Latest(n.T.Context(), name); err == nil {
		return l.SP
	}
	return server.DefaultPrefix(n.BaseURL, name)
}

func (n *Node) URL(path string) string { return n.BaseURL + path }

// Answer is a response with its body read.
type Answer struct {
	*http.Response
	Bytes []byte
	Err   error // of reading the body
}

// Do sends a request to a URL, or a path of the server. headers are pairs of
// names and values.
func (n *Node) Do(method, url string, body io.Reader, headers ...string) Answer {
	n.T.Helper()
	if strings.HasPrefix(url, "/") {
		url = n.URL(url)
	}
	req, err := http.NewRequest(method, url, body)
	require.NoError(n.T, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := n.HTTP.Do(req)
	require.NoError(n.T, err, "%s %s", method, url)
	defer res.Body.Close()
	a := Answer{Response: res}
	a.Bytes, a.Err = io.ReadAll(res.Body)
	if a.Err == nil && method == http.MethodGet && res.StatusCode == http.StatusOK {
		n.Lint.add(n.T, a)
	}
	return a
}

func (n *Node) Get(url string, headers ...string) Answer {
	n.T.Helper()
	return n.Do(http.MethodGet, url, nil, headers...)
}

// Post sends a request without a body.
func (n *Node) Post(path string, headers ...string) Answer {
	n.T.Helper()
	return n.Do(http.MethodPost, path, nil, headers...)
}

// AcceptDatetime returns the header that requests the state at a time (RFC 7089 §2.1.1).
func AcceptDatetime(t time.Time) []string {
	return []string{"Accept-Datetime", t.UTC().Format(http.TimeFormat)}
}

// MustGet gets a document that must exist.
func (n *Node) MustGet(url string, headers ...string) Answer {
	n.T.Helper()
	a := n.Get(url, headers...)
	require.Equal(n.T, http.StatusOK, a.StatusCode, "GET %s: %s", url, a.Bytes)
	require.NoError(n.T, a.Err, "GET %s", url)
	return a
}

// Put sends a new version of a map.
func (n *Node) Put(name string, doc []byte, headers ...string) Answer {
	n.T.Helper()
	return n.Do(http.MethodPut, "/topicmaps/"+name, bytes.NewReader(doc), headers...)
}

// MustPut publishes a new version of a map.
func (n *Node) MustPut(name string, doc []byte) publish.Published {
	n.T.Helper()
	return Published(n.T, n.Put(name, doc))
}

func Published(t testing.TB, a Answer) publish.Published {
	t.Helper()
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	var p publish.Published
	require.NoError(t, json.Unmarshal(a.Bytes, &p))
	return p
}

func (a Answer) MediaType() string {
	m, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return m
}

// Plain returns the body without its content coding.
func (a Answer) Plain(t testing.TB) []byte {
	t.Helper()
	switch a.Header.Get("Content-Encoding") {
	case "gzip":
		return Gunzip(t, a.Bytes)
	case "zstd":
		return Unzstd(t, a.Bytes)
	}
	return a.Bytes
}

func Gunzip(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

func Gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// Canonical returns the content of an XTM document as CXTM.
func Canonical(t testing.TB, doc []byte, sp string) string {
	t.Helper()
	tm, err := xtm.Read(t.Context(), bytes.NewReader(doc), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: tmdm.Locator(sp), OmitItemIdentifiers: true}))
	return b.String()
}

// Replace returns doc with one piece of it replaced, which must be there once.
func Replace(t testing.TB, doc []byte, old, new string) []byte {
	t.Helper()
	require.Equal(t, 1, bytes.Count(doc, []byte(old)), "occurrences of %q", old)
	return bytes.Replace(doc, []byte(old), []byte(new), 1)
}

// DialAll makes the test's client reach this server under any name, as through a proxy.
func (n *Node) DialAll() {
	address := n.Address
	n.HTTP.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// TopicMap makes an XTM 1.0 document.
func TopicMap(parts ...string) []byte {
	return []byte(`<?xml version="1.0"?>` + "\n" +
		`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">` + "\n" +
		strings.Join(parts, "\n") + "\n</topicMap>\n")
}

// Topic makes a topic http://psi.example.org/{id}; more follows its identity.
func Topic(id, name string, more ...string) string {
	return Identified(id, []string{"http://psi.example.org/" + id}, name, more...)
}

func Identified(id string, identifiers []string, name string, more ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<topic id=%q><subjectIdentity>`, id)
	for _, si := range identifiers {
		fmt.Fprintf(&b, `<subjectIndicatorRef xlink:href=%q/>`, si)
	}
	b.WriteString(`</subjectIdentity>`)
	if name != "" {
		fmt.Fprintf(&b, `<baseName><baseNameString>%s</baseNameString></baseName>`, name)
	}
	return b.String() + strings.Join(more, "") + `</topic>`
}

func Note(typ, text string) string {
	return fmt.Sprintf(
		`<occurrence><instanceOf><topicRef xlink:href="#%s"/></instanceOf><resourceData>%s</resourceData></occurrence>`, typ,
		text)
}

// Association makes one of topics that play roles of their own names.
func Association(typ string, players ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<association><instanceOf><topicRef xlink:href="#%s"/></instanceOf>`, typ)
	for i, p := range players {
		fmt.Fprintf(&b, `<member><roleSpec><topicRef xlink:href="#role-%d"/></roleSpec><topicRef xlink:href="#%s"/></member>`,
			i+1, p)
	}
	return b.String() + `</association>`
}

// Small is a map of nine topics: Oslo and Bergen are cities of Norway. Pairs of
// old and new names rename topics; a new name "" takes the name away.
func Small(renames ...string) []byte {
	name := func(s string) string {
		for i := 0; i < len(renames); i += 2 {
			if renames[i] == s {
				return renames[i+1]
			}
		}
		return s
	}
	return TopicMap(
		Topic("city", name("City")), Topic("note", name("Note")), Topic("part-of", name("part of")),
		Topic("role-1", name("part")), Topic("role-2", name("whole")),
		Topic("norway", name("Norway")),
		Topic("oslo", name("Oslo"), Note("note", "the capital")),
		Topic("bergen", name("Bergen")),
		Topic("tromsø", name("Tromsø")),
		Association("part-of", "oslo", "norway"), Association("part-of", "bergen", "norway"),
	)
}

// Expected returns the content, as CXTM, that a collection must have after a document was published there: that of the
// document, and the subject identifiers that the server assigns.
func (n *Node) Expected(name string, doc []byte) string {
	n.T.Helper()
	sp := n.SP(name)
	tm, err := xtm.Read(n.T.Context(), bytes.NewReader(doc), xtm.Options{Base: tmdm.Locator(sp), DropClashes: true})
	require.NoError(n.T, err)
	named, err := fragment.NameTopics(n.T.Context(), tm, sp, nil)
	require.NoError(n.T, err)
	var b bytes.Buffer
	require.NoError(n.T, cxtm.Write(&b, named.TopicMap(), cxtm.Options{Base: tmdm.Locator(sp), OmitItemIdentifiers: true}))
	return b.String()
}

// Current returns the content of a collection now.
func (n *Node) Current(name string) string {
	n.T.Helper()
	return Canonical(n.T, n.MustGet("/topicmaps/"+name+"/snapshots/current.xtm21").Bytes, n.SP(name))
}

// Schemas returns the folder of published schemas, which is beside the repository, or an error with the reason why
// nothing can be checked.
var Schemas = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("xmllint"); err != nil {
		return "", err
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		folder := filepath.Join(dir, "shared", "schemas")
		if _, err := os.Stat(filepath.Join(folder, "atom.rng")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("there is no folder shared/schemas above the package")
		}
		dir = parent
	}
})

// Linter collects the documents that a test gets, each once, and validates them
// when the test ends.
type Linter struct {
	mu        sync.Mutex
	Documents map[string][]string // kind → documents
	seen      map[string]bool
}

func NewLinter(t testing.TB) *Linter {
	l := &Linter{Documents: map[string][]string{}, seen: map[string]bool{}}
	t.Cleanup(func() {
		if _, err := Schemas(); err != nil {
			t.Logf("NOT CHECKED: documents against the schemas of Atom and XTM 1.0: %v", err)
			return
		}
		_, complaints := l.Validate(t)
		assert.Empty(t, complaints)
	})
	return l
}

func (l *Linter) add(t testing.TB, a Answer) {
	kind := map[string]string{"application/atom+xml": "atom", "application/xtm1+xml": "xtm1"}[a.MediaType()]
	if kind == "" && a.MediaType() != resourcesync.MediaTypeXML {
		return
	}
	document := string(a.Plain(t))
	switch {
	case kind != "":
	case strings.Contains(document, "<sitemapindex "):
		kind = "siteindex11"
	case strings.Contains(document, "<url>"): // the schemas allow none without any
		kind = "sitemap11"
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[document] {
		l.seen[document] = true
		l.Documents[kind] = append(l.Documents[kind], document)
	}
}

// Validate returns the number of checked documents of each kind, and the complaints of xmllint.
func (l *Linter) Validate(t testing.TB) (checked map[string]int, complaints string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, err := Schemas()
	require.NoError(t, err)
	checked = map[string]int{}
	dir, err := os.MkdirTemp("", "lint")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	for kind, documents := range l.Documents {
		var files []string
		for i, d := range documents {
			file := filepath.Join(dir, fmt.Sprintf("%s-%d.xml", kind, i))
			require.NoError(t, os.WriteFile(file, []byte(d), 0o600))
			files = append(files, file)
		}
		for batch := range slices.Chunk(files, 500) {
			switch kind {
			case "atom":
				complaints += XMLLint(t, batch, "--relaxng", filepath.Join(folder, "atom.rng"))
				complaints += XMLLint(t, batch, "--schematron", filepath.Join(folder, "atom.sch"))
			case "xtm1":
				complaints += XMLLint(t, batch, "--dtdvalid", filepath.Join(folder, "xtm1.dtd"))
			default:
				complaints += XMLLint(t, batch, "--schema", filepath.Join(folder, "resourcesync", "joint-"+kind+".xsd"))
			}
		}
		checked[kind] = len(files)
	}
	return checked, complaints
}

// XMLLint returns the errors in files, or "".
func XMLLint(t testing.TB, files []string, args ...string) string {
	t.Helper()
	args = append([]string{"--noout", "--nonet"}, args...)
	out, err := exec.CommandContext(context.Background(), "xmllint", append(args, files...)...).CombinedOutput()
	// xmllint must have checked each file: it prints the valid ones, except with a DTD, for which it prints nothing.
	if validates := bytes.Count(out, []byte(" validates\n")); err == nil && args[2] != "--dtdvalid" &&
		validates != len(files) {
		return fmt.Sprintf("%d of %d files validate:\n%s", validates, len(files), out)
	}
	if err == nil {
		return ""
	}
	var wrong []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasSuffix(line, " validates\n") {
			wrong = append(wrong, line)
		}
	}
	return err.Error() + ":\n" + strings.Join(wrong[:min(len(wrong), 40)], "")
}

// DataURL returns the URL of data without its fixed form.
func DataURL(t testing.TB, e Document) string {
	t.Helper()
	url, ok := strings.CutSuffix(e.Typed(t, "topicmapdata")[XTM1Type], ".xtm1")
	require.True(t, ok)
	return url
}

// Ask has the handler answer, without the socket.
func (n *Node) Ask(path string, headers ...string) *Discard {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for h := 0; h < len(headers); h += 2 {
		r.Header.Set(headers[h], headers[h+1])
	}
	w := &Discard{Head: http.Header{}}
	n.ServeHTTP(w, r)
	return w
}

// Allocates returns the number of bytes that f allocates.
func Allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Cities is a map of so many topics, all of them called name. The server adds one: that of the
// type of names.
func Cities(n int, name string) []byte {
	var parts []string
	for i := range n {
		parts = append(parts, Topic(fmt.Sprint("city-", i), name))
	}
	return TopicMap(parts...)
}

// Decoded gets a feed document of the server.
func (n *Node) Decoded(url string) *feeds.Feed {
	n.T.Helper()
	f, err := feeds.Decode(bytes.NewReader(n.MustGet(url).Bytes), url, feeds.Limits{})
	require.NoError(n.T, err)
	return f
}

const PSI = "http://psi.example.org/"

// Clock is a clock that tests set.
type Clock struct{ now atomic.Int64 }

// NewClock returns a clock that is set to a time of the year 2026.
func NewClock() *Clock {
	c := &Clock{}
	c.Set(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return c
}

// Set sets the clock.
func (c *Clock) Set(t time.Time) { c.now.Store(t.UnixMicro()) }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.now.Load()) }

// Advance puts the clock forward.
func (c *Clock) Advance(d time.Duration) { c.now.Add(d.Microseconds()) }

func (n *Node) Settings(name string, change func(*store.Settings)) {
	n.T.Helper()
	_, err := n.Store.ChangeSettings(n.T.Context(), name, func(s *store.Settings) error { change(s); return nil })
	require.NoError(n.T, err)
}

// State returns all that a collection publishes, for comparison: nothing of it may change if nothing is published.
func (n *Node) State(name string) map[string]string {
	n.T.Helper()
	s := map[string]string{}
	for _, path := range []string{"", "/" + name, "/" + name + "/snapshots", "/" + name + "/snapshots/current.xtm1",
		"/" + name + "/snapshots/current.xtm21"} {
		s[path] = string(n.MustGet("/topicmaps" + path).Bytes)
	}
	_, documents := n.History("/topicmaps/" + name + "/fragments")
	for _, d := range documents {
		s[d.Link(n.T, "self")] = d.Raw
	}
	if entries := documents[0].Entries; len(entries) > 0 {
		url := entries[0].Typed(n.T, "topicmapdata")[XTM21Type]
		s[url] = string(n.MustGet(url).Bytes)
	}
	return s
}

// Classified is a map of a class and of so many instances of it with long subject identifiers. The
// class itself is an instance of another.
func Classified(instances int, name string) []byte {
	classify := func(class, topic string) string {
		kind := fmt.Sprintf(`<instanceOf><topicRef xlink:href="#%s"/></instanceOf>`, class)
		return strings.Replace(topic, "<subjectIdentity>", kind+"<subjectIdentity>", 1)
	}
	parts := []string{Topic("kind", "Kind"), classify("kind", Topic("town", name))}
	for i := range instances {
		si := fmt.Sprint(PSI, "town-", strings.Repeat("long-", 200), i)
		parts = append(parts, classify("town", Identified(fmt.Sprint("t", i), []string{si}, "A town")))
	}
	return TopicMap(parts...)
}
