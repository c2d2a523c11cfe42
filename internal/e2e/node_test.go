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
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func openStore(t testing.TB) *store.DB {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// startServer starts a server over a store of its own and returns it.
func startServer(t testing.TB, config server.Config) *server.Server {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config.Store, config.OnLoopback, config.Logger = openStore(t), true, quiet
	config.BaseURL = "http://" + listener.Addr().String()
	s, err := server.New(config)
	require.NoError(t, err)
	h := &http.Server{Handler: s}
	go h.Serve(listener)
	t.Cleanup(func() {
		h.Close()
		s.Close()
	})
	return s
}

// node is a client and what its sources say together.
type node struct {
	*client.Client
	merged merged.View
}

func newClient(t testing.TB) *node {
	db := openStore(t)
	c, err := client.New(client.Config{Store: db, Logger: quiet})
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
func put(t testing.TB, s *server.Server, name string, doc []byte) server.Published {
	req, err := http.NewRequest(http.MethodPut, s.BaseURL+"/topicmaps/"+name, bytes.NewReader(doc))
	require.NoError(t, err)
	req.Header.Set("TMShare-Max-Delete", "all")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
	var p server.Published
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
