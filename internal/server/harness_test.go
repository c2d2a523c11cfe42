package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// node is a server on a loopback socket over a store of its own.
type node struct {
	*server.Server
	t    testing.TB
	logs *testenv.Log
	lint *linter
	http *http.Client
	stop func() // ends the server and its store, once

	address string // that it listens on
	sync    resourcesync.Options
}

// syncing has the options of servers that are being started, by their configuration.
var syncing sync.Map

func syncOf(c *server.Config) *resourcesync.Options {
	o, _ := syncing.Load(c)
	return o.(*resourcesync.Options)
}

// start starts a server. What it publishes to this test is validated against
// the schemas when the test ends.
func start(t testing.TB, configure ...func(*server.Config)) *node {
	t.Helper()
	return startOn(t, store.Options{Dir: t.TempDir()}, configure...)
}

// startOn starts a server on the store that the options describe.
func startOn(t testing.TB, o store.Options, configure ...func(*server.Config)) *node {
	t.Helper()
	n := &node{t: t, logs: &testenv.Log{}, lint: newLinter(t), http: &http.Client{
		// A body that the server is to ask for is not sent before that.
		Transport:     &http.Transport{DisableCompression: true, ExpectContinueTimeout: time.Hour},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	logger := slog.New(slog.NewTextHandler(n.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Logger = slog.New(slog.DiscardHandler)
	if _, benchmark := t.(*testing.B); !benchmark {
		o.Badger = badger.Small
	}
	db := stores.Open(n.t, o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n.address = listener.Addr().String()
	c := server.Config{Store: db, BaseURL: "http://" + listener.Addr().String(), OnLoopback: true, Logger: logger}
	syncing.Store(&c, &n.sync)
	for _, f := range configure {
		f(&c)
	}
	syncing.Delete(&c)
	n.sync.ChangesPerList = cmp.Or(n.sync.ChangesPerList, 1000)
	for _, e := range ext.All() {
		if e.Name == "resourcesync" {
			e.Serve = resourcesync.With(n.sync)
		}
		c.Parts = append(c.Parts, extension.Parts([]extension.Extension{e})...)
	}
	n.Server, err = server.New(c)
	require.NoError(t, err)
	h := &http.Server{Handler: n.Server, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- h.Serve(listener) }()
	n.stop = sync.OnceFunc(func() {
		n.http.CloseIdleConnections()
		h.Close()
		<-served
		n.Close()
		require.NoError(t, db.Close())
	})
	t.Cleanup(n.stop)
	return n
}

// documentSize makes archive documents of size entries.
func documentSize(size int) func(*server.Config) {
	return func(c *server.Config) { c.DocumentSize = size }
}

// publish makes a collection of an XTM document, under the default prefix.
func (n *node) publish(name string, doc []byte) *store.Collection {
	n.t.Helper()
	c, err := n.Import(context.Background(), store.Collection{Name: name, SP: n.sp(name)}, bytes.NewReader(doc), name+".xtm")
	require.NoError(n.t, err)
	return c
}

// sp returns the prefix of a collection, or the one to import it with.
func (n *node) sp(name string) string {
	if l, err := n.Store.Latest(n.t.Context(), name); err == nil {
		return l.SP
	}
	return server.DefaultPrefix(n.BaseURL, name)
}

func (n *node) url(path string) string { return n.BaseURL + path }

// answer is a response with its body read.
type answer struct {
	*http.Response
	body []byte
	err  error // of reading the body
}

// do sends a request to a URL, or a path of the server. headers are pairs of
// names and values.
func (n *node) do(method, url string, body io.Reader, headers ...string) answer {
	n.t.Helper()
	if strings.HasPrefix(url, "/") {
		url = n.url(url)
	}
	req, err := http.NewRequest(method, url, body)
	require.NoError(n.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := n.http.Do(req)
	require.NoError(n.t, err, "%s %s", method, url)
	defer res.Body.Close()
	a := answer{Response: res}
	a.body, a.err = io.ReadAll(res.Body)
	if a.err == nil && method == http.MethodGet && res.StatusCode == http.StatusOK {
		n.lint.add(n.t, a)
	}
	return a
}

func (n *node) get(url string, headers ...string) answer {
	n.t.Helper()
	return n.do(http.MethodGet, url, nil, headers...)
}

// mustGet gets what must be there.
func (n *node) mustGet(url string, headers ...string) answer {
	n.t.Helper()
	a := n.get(url, headers...)
	require.Equal(n.t, http.StatusOK, a.StatusCode, "GET %s: %s", url, a.body)
	require.NoError(n.t, a.err, "GET %s", url)
	return a
}

// put sends a new version of a map.
func (n *node) put(name string, doc []byte, headers ...string) answer {
	n.t.Helper()
	return n.do(http.MethodPut, "/topicmaps/"+name, bytes.NewReader(doc), headers...)
}

// mustPut publishes a new version of a map.
func (n *node) mustPut(name string, doc []byte) publish.Published {
	n.t.Helper()
	return published(n.t, n.put(name, doc))
}

func published(t testing.TB, a answer) publish.Published {
	t.Helper()
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	var p publish.Published
	require.NoError(t, json.Unmarshal(a.body, &p))
	return p
}

func (a answer) mediaType() string {
	m, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return m
}

// plain returns the body without its content coding.
func (a answer) plain(t testing.TB) []byte {
	t.Helper()
	switch a.Header.Get("Content-Encoding") {
	case "gzip":
		return gunzip(t, a.body)
	case "zstd":
		return unzstd(t, a.body)
	}
	return a.body
}

func gunzip(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// canonical returns the content of an XTM document as CXTM.
func canonical(t testing.TB, doc []byte, sp string) string {
	t.Helper()
	tm, err := xtm.Read(t.Context(), bytes.NewReader(doc), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: tmdm.Locator(sp), OmitItemIdentifiers: true}))
	return b.String()
}

// replace returns doc with one piece of it replaced, which must be there once.
func replace(t testing.TB, doc []byte, old, new string) []byte {
	t.Helper()
	require.Equal(t, 1, bytes.Count(doc, []byte(old)), "occurrences of %q", old)
	return bytes.Replace(doc, []byte(old), []byte(new), 1)
}

// dialAll makes the test's client reach this server under any name, as a proxy in
// front of it would.
func (n *node) dialAll() {
	address := n.address
	n.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// topicMap makes an XTM 1.0 document.
func topicMap(parts ...string) []byte {
	return []byte(`<?xml version="1.0"?>` + "\n" +
		`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">` + "\n" +
		strings.Join(parts, "\n") + "\n</topicMap>\n")
}

// topic makes a topic http://psi.example.org/{id}; more goes after its identity.
func topic(id, name string, more ...string) string {
	return identified(id, []string{"http://psi.example.org/" + id}, name, more...)
}

func identified(id string, identifiers []string, name string, more ...string) string {
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

func note(typ, text string) string {
	return fmt.Sprintf(`<occurrence><instanceOf><topicRef xlink:href="#%s"/></instanceOf><resourceData>%s</resourceData></occurrence>`, typ, text)
}

// association makes one of topics that play roles of their own names.
func association(typ string, players ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<association><instanceOf><topicRef xlink:href="#%s"/></instanceOf>`, typ)
	for i, p := range players {
		fmt.Fprintf(&b, `<member><roleSpec><topicRef xlink:href="#role-%d"/></roleSpec><topicRef xlink:href="#%s"/></member>`, i+1, p)
	}
	return b.String() + `</association>`
}

// small is a map of nine topics: Oslo and Bergen are cities of Norway. Pairs of
// old and new names rename topics; a new name "" takes the name away.
func small(renames ...string) []byte {
	name := func(s string) string {
		for i := 0; i < len(renames); i += 2 {
			if renames[i] == s {
				return renames[i+1]
			}
		}
		return s
	}
	return topicMap(
		topic("city", name("City")), topic("note", name("Note")), topic("part-of", name("part of")),
		topic("role-1", name("part")), topic("role-2", name("whole")),
		topic("norway", name("Norway")),
		topic("oslo", name("Oslo"), note("note", "the capital")),
		topic("bergen", name("Bergen")),
		topic("tromsø", name("Tromsø")),
		association("part-of", "oslo", "norway"), association("part-of", "bergen", "norway"),
	)
}

// expected returns the content, as CXTM, that a collection must have after a
// document was published there: what the document says and the subject
// identifiers that the server assigns.
func (n *node) expected(name string, doc []byte) string {
	n.t.Helper()
	sp := n.sp(name)
	tm, err := xtm.Read(n.t.Context(), bytes.NewReader(doc), xtm.Options{Base: tmdm.Locator(sp), DropClashes: true})
	require.NoError(n.t, err)
	named, err := fragment.NameTopics(n.t.Context(), tm, sp, nil)
	require.NoError(n.t, err)
	var b bytes.Buffer
	require.NoError(n.t, cxtm.Write(&b, named.TopicMap(), cxtm.Options{Base: tmdm.Locator(sp), OmitItemIdentifiers: true}))
	return b.String()
}

// current returns the content of a collection now.
func (n *node) current(name string) string {
	n.t.Helper()
	return canonical(n.t, n.mustGet("/topicmaps/"+name+"/snapshots/current.xtm21").body, n.sp(name))
}
