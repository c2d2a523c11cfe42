// Package e2e_test runs whole nodes against each other: real servers on real
// sockets, real stores on disk, real maps.
package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func openStore(t testing.TB) *store.DB {
	o := store.Options{Dir: t.TempDir(), Logger: quiet, Indexes: ext.Indexes()}
	if _, benchmark := t.(*testing.B); !benchmark {
		o.Badger = badger.Small
	}
	db := stores.Open(t, o)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// startServer starts a server over a store of its own and returns it.
func startServer(t testing.TB, config server.Config) *server.Server {
	config.Store, config.Parts, config.Formats = openStore(t), ext.Parts(), ext.Formats()
	return serve(t, &config)
}

// serve starts a server at a free address, which it puts into the config.
func serve(t testing.TB, config *server.Config) *server.Server {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config.OnLoopback, config.Logger = true, quiet
	config.BaseURL = "http://" + listener.Addr().String()
	s, err := server.New(*config)
	require.NoError(t, err)
	h := &http.Server{Handler: s}
	go h.Serve(listener)
	t.Cleanup(func() {
		h.Close()
		s.Close()
	})
	return s
}

// startNode starts a server with pages about a store's subscriptions, for readers with a token. It returns its address.
func startNode(t testing.TB, held *extension.Holding, tokens ...string) (base string) {
	all := ext.All()
	extension.Held(all, held)
	config := server.Config{Store: held.DB, Tokens: tokens, Parts: extension.Parts(all)}
	serve(t, &config)
	return config.BaseURL
}

// node is a client with the merged view of its sources.
type node struct {
	*client.Client
	merged merged.View
}

func newClient(t testing.TB) *node {
	db := openStore(t)
	c, err := client.New(client.Config{Formats: ext.Formats(), Protocols: ext.Protocols(), Store: db, Logger: quiet})
	require.NoError(t, err)
	return &node{c, merged.View{Store: db, Report: c.Report}}
}

func importMap(t testing.TB, s *server.Server, name string, doc []byte) (sp string) {
	sp = server.DefaultPrefix(s.BaseURL, name)
	_, err := s.Import(context.Background(), store.Collection{Name: name, SP: sp}, bytes.NewReader(doc), name)
	require.NoError(t, err)
	return sp
}

// put publishes a version over HTTP.
func put(t testing.TB, s *server.Server, name string, doc []byte) publish.Published {
	return putAs(t, s, name, doc, "")
}

// putAs publishes a version with a token.
func putAs(t testing.TB, s *server.Server, name string, doc []byte, token string) publish.Published {
	req, err := http.NewRequest(http.MethodPut, s.BaseURL+"/topicmaps/"+name, bytes.NewReader(doc))
	require.NoError(t, err)
	req.Header.Set("TMShare-Max-Delete", "all")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
	var p publish.Published
	require.NoError(t, json.Unmarshal(body, &p))
	return p
}

func readXTM(t testing.TB, doc []byte, base string, lenient bool) *tmdm.TopicMap {
	tm, err := xtm.Read(t.Context(), bytes.NewReader(doc), xtm.Options{Base: tmdm.Locator(base), Lenient: lenient})
	require.NoError(t, err)
	return tm
}

func writeXTM(t testing.TB, tm *tmdm.TopicMap, base string) []byte {
	var b bytes.Buffer
	_, err := xtm.Write(&b, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(base)})
	require.NoError(t, err)
	return b.Bytes()
}

func canonical(t testing.TB, tm *tmdm.TopicMap, base string) string {
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: tmdm.Locator(base), OmitItemIdentifiers: true}))
	return b.String()
}

// TestClientFollowsEveryWayIn subscribes to a collection that is empty, and stays
// equal to it while it is filled, edited topic by topic, and replaced by another
// of the name.
func TestClientFollowsEveryWayIn(t *testing.T) {
	ctx := context.Background()
	s := startServer(t, server.Config{})
	do := func(method, path, contentType string, body []byte, status int) []byte {
		t.Helper()
		req, err := http.NewRequest(method, s.BaseURL+path, bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", contentType)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, status, res.StatusCode, "%s", answer)
		return answer
	}
	do("PUT", "/topicmaps/egov", "application/json", []byte(`{"title": "E-Government"}`), http.StatusCreated)
	c := newClient(t)
	_, err := c.Subscribe(ctx, s.BaseURL+"/topicmaps/egov", client.SubscribeOptions{})
	require.NoError(t, err)
	inStep := func(entries int, clean bool) {
		t.Helper()
		round, err := c.Sync(ctx, "egov")
		require.NoError(t, err)
		require.Equal(t, entries, round.Entries)
		require.Equal(t, clean, round.CleanStart)
		verdict, err := c.Verify(ctx, "egov", true)
		require.NoError(t, err)
		require.True(t, verdict.Equal)
	}
	inStep(0, true)
	filled := put(t, s, "egov", maps.EGov)
	require.Greater(t, filled.Added, 200)
	inStep(filled.Added, false)

	si := "https://psi.egov.example.org/service/dog-licence"
	topic := s.BaseURL + "/topicmaps/egov/topics?" + url.Values{"si": {si}}.Encode()
	res, err := http.Get(topic)
	require.NoError(t, err)
	defer res.Body.Close()
	res, err = http.Get(res.Request.URL.String() + ".xtm21")
	require.NoError(t, err)
	defer res.Body.Close()
	doc, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(doc), "<value>Dog licence</value>")
	do("POST", "/topicmaps/egov/topics", "application/xml", bytes.Replace(doc, []byte("<value>Dog licence</value>"), []byte("<value>Licence for a dog</value>"), 1), http.StatusOK)
	inStep(1, false)
	do("POST", "/topicmaps/egov/topics", "application/xml", doc, http.StatusOK)
	inStep(1, false)
	require.Zero(t, entries(put(t, s, "egov", maps.EGov)), "all is as it was")

	do("DELETE", "/topicmaps/egov", "", nil, http.StatusOK)
	_, err = c.Sync(ctx, "egov")
	require.Error(t, err, "it is gone, and the copy stays")
	do("PUT", "/topicmaps/egov", "application/json", []byte(`{}`), http.StatusCreated)
	put(t, s, "egov", maps.Libraries)
	_, err = c.Sync(ctx, "egov")
	require.ErrorAs(t, err, new(*follow.DoubtError), "another history is not believed at once")
	round, err := c.Confirm(ctx, "egov")
	require.NoError(t, err)
	require.True(t, round.CleanStart)
	verdict, err := c.Verify(ctx, "egov", true)
	require.NoError(t, err)
	require.True(t, verdict.Equal)
}

// A snapshot whose files have other bytes than the server wrote, but as many, is never taken for the map: a client gets
// the map or an error.
func TestSnapshotWithOtherBytesOfTheSameLengthIsNotTaken(t *testing.T) {
	stores.InFolders(t)
	for name, c := range map[string]struct {
		damage  func(t *testing.T, file []byte) []byte
		refused bool // otherwise the server detects it, and has another snapshot
	}{
		"another map, packed as it should be": {damage: another},
		"zeros in the middle": {refused: true, damage: func(_ *testing.T, file []byte) []byte {
			clear(file[len(file)/2 : len(file)/2+100])
			return file
		}},
		"zeros at the end": {damage: func(_ *testing.T, file []byte) []byte {
			clear(file[len(file)-20:])
			return file
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, server.Config{})
			importMap(t, s, "egov", maps.EGov)
			files, err := filepath.Glob(filepath.Join(s.Store.Dir(), "snapshots", "*", "*.gz"))
			require.NoError(t, err)
			require.Len(t, files, 1)
			for _, path := range files {
				file, err := os.ReadFile(path)
				require.NoError(t, err)
				damaged := c.damage(t, bytes.Clone(file))
				require.Len(t, damaged, len(file))
				require.NoError(t, os.WriteFile(path, damaged, 0o600))
			}

			node := newClient(t)
			_, err = node.Subscribe(t.Context(), s.BaseURL+"/topicmaps/egov", client.SubscribeOptions{})
			require.NoError(t, err)
			round, err := node.Sync(t.Context(), "egov")
			if c.refused {
				assert.ErrorContains(t, err, "snapshot")
				return
			}
			require.NoError(t, err)
			assert.True(t, round.CleanStart)
			verdict, err := node.Verify(t.Context(), "egov", true)
			require.NoError(t, err)
			assert.True(t, verdict.Equal)
		})
	}
}

// another returns the gzip file of another map, of the same length: an extra field fills it up (RFC 1952 §2.3.1.1,
// Extra field).
func another(t *testing.T, file []byte) []byte {
	const other = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="t"><subjectIdentifier href="http://psi.example.org/other"/></topic></topicMap>`
	pack := func(extra []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Extra = extra
		_, err := z.Write([]byte(other))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	const header = 2 // bytes of the field's own length
	return pack(make([]byte, len(file)-len(pack(nil))-header))
}
