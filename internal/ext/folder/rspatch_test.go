package folder_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// patchSource is a real server of a map with a large topic, and the proxy between it and its readers.
type patchSource struct {
	*server.Server
	t       *testing.T
	mu      sync.Mutex
	sent    map[string]int                        // bytes of bodies, by path
	between func(path string, body []byte) []byte // may be nil
}

func newPatchSource(t *testing.T) *patchSource {
	s := &patchSource{t: t, sent: map[string]int{}}
	socket := httptest.NewServer(s)
	t.Cleanup(socket.Close)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	db, err := store.Open(s.t.Context(), store.Options{Dir: t.TempDir(), Logger: quiet, Badger: badger.Small})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s.Server, err = server.New(server.Config{Parts: extension.Parts([]extension.Extension{resourcesync.Extension()}), Store: db, BaseURL: socket.URL, OnLoopback: true, Logger: quiet, DocumentSize: 1})
	require.NoError(t, err)
	t.Cleanup(s.Server.Close)
	_, err = s.Import(context.Background(), store.Collection{Name: "m", SP: server.DefaultPrefix(s.BaseURL, "m")}, bytes.NewReader(hubMap("first")), "m")
	require.NoError(t, err)
	return s
}

// hubMap is a map with a topic of 300 occurrences. One of them is given.
func hubMap(text string) []byte {
	var b strings.Builder
	b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	topic := func(id, more string) {
		fmt.Fprintf(&b, `<topic><subjectIdentifier href="http://psi.example.org/%s"/><name><value>%[1]s</value></name>%s</topic>`, id, more)
	}
	var notes strings.Builder
	for i := range 300 {
		note := fmt.Sprintf("What there is to say, number %d", i)
		if i == 150 {
			note = text
		}
		fmt.Fprintf(&notes, `<occurrence><type><subjectIdentifierRef href="http://psi.example.org/note"/></type><resourceData>%s</resourceData></occurrence>`, note)
	}
	topic("note", "")
	topic("small", "")
	topic("hub", notes.String())
	return []byte(b.String() + "</topicMap>")
}

func (s *patchSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Del("Accept-Encoding")
	answer := httptest.NewRecorder()
	s.Server.ServeHTTP(answer, r)
	s.mu.Lock()
	between := s.between
	s.mu.Unlock()
	body := answer.Body.Bytes()
	if between != nil && answer.Code == http.StatusOK {
		if body = between(r.URL.Path, body); body == nil {
			http.Error(w, "gone", http.StatusGone)
			return
		}
	}
	s.mu.Lock()
	s.sent[r.URL.Path] += len(body)
	s.mu.Unlock()
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}

func (s *patchSource) publish(document []byte) {
	req, err := http.NewRequest(http.MethodPut, s.BaseURL+"/topicmaps/m", bytes.NewReader(document))
	require.NoError(s.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, res.StatusCode)
	require.NoError(s.t, res.Body.Close())
}

// round does a round of a mirror, and returns the bytes of patches and of topics that it took.
func (s *patchSource) round(m *mirror) (patches, topics int) {
	s.t.Helper()
	s.mu.Lock()
	clear(s.sent)
	s.mu.Unlock()
	m.round()
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, n := range s.sent {
		switch {
		case strings.HasSuffix(path, ".patch"):
			patches += n
		case strings.Contains(path, "/topics/"):
			topics += n
		}
	}
	return patches, topics
}

// same checks that the mirror has the records of the server, and returns the length of the hub.
func (s *patchSource) same(m *mirror) (hub int) {
	s.t.Helper()
	s.mu.Lock()
	s.between = nil
	s.mu.Unlock()
	records := m.records()
	require.GreaterOrEqual(s.t, len(records), 3)
	for uri, content := range records {
		res, err := http.Get(uri)
		require.NoError(s.t, err)
		b, err := io.ReadAll(res.Body)
		require.NoError(s.t, err)
		require.NoError(s.t, res.Body.Close())
		require.Equal(s.t, string(b), content)
		hub = max(hub, len(content))
	}
	return hub
}

func (s *patchSource) lie(between func(path string, body []byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.between = between
}

// A mirror takes only the changes of a large topic. If there is any fault in them, it takes the whole topic.
func TestMirrorsTakePatches(t *testing.T) {
	t.Parallel()
	s := newPatchSource(t)
	f := fetch.Fetcher{Tries: 2, Backoff: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}.WithDefaults()
	m := &mirror{t: t, dir: t.TempDir(), url: s.BaseURL + "/topicmaps/m/resourcesync/capabilitylist.xml", noDumps: true, Options: Options{Fetcher: f}}
	_, topics := s.round(m)
	hub := s.same(m)
	require.Greater(t, hub, 30_000)
	require.Greater(t, topics, hub)
	change := func(text string) { s.publish(hubMap(text)) }
	patched := func(why string) {
		t.Helper()
		patches, topics := s.round(m)
		require.Positive(t, patches, why)
		require.Less(t, patches, 1000, why)
		require.Zero(t, topics, why)
		s.same(m)
	}
	whole := func(tried bool, why string) {
		t.Helper()
		patches, topics := s.round(m)
		require.Equal(t, tried, patches > 0, why)
		require.Greater(t, topics, 30_000, why)
		s.same(m)
	}

	change("second")
	patched("one change")
	change("third")
	patched("the change before stands in the list as well")

	change("fourth")
	change("fifth")
	whole(false, "the patch leads from a version that the mirror never had")
	change("sixth")
	patched("but then it has")

	isPatch := func(path string) bool { return strings.HasSuffix(path, ".patch") }
	change("seventh")
	s.lie(func(path string, body []byte) []byte {
		if isPatch(path) {
			return bytes.ReplaceAll(body, []byte("seventh"), []byte("seveNth"))
		}
		return body
	})
	whole(true, "another patch than stated")

	change("seventh and a half")
	s.lie(func(path string, body []byte) []byte {
		if isPatch(path) {
			return bytes.Replace(body, []byte(">\n<"), []byte("> <"), 1)
		}
		return body
	})
	whole(true, "another patch than stated, though it would lead to the same")

	change("eighth")
	s.lie(func(path string, body []byte) []byte {
		if isPatch(path) {
			return nil
		}
		return body
	})
	whole(false, "the patch is gone")

	for i, lie := range []string{
		`<p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink"></p:patch>`,
		`<p:patch xmlns:p="urn:ietf:rfc:7351" xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink"><p:remove sel="/*/*[1]" ws="after"/></p:patch>`,
		`nonsense`,
	} {
		change(fmt.Sprint("before lie ", i))
		patched("so that the next one is the only one")
		change(fmt.Sprint("lie ", i))
		s.lie(func(path string, body []byte) []byte {
			if isPatch(path) {
				return []byte(lie)
			}
			return lieAboutPatches(body, lie)
		})
		whole(true, lie)
	}

	change("tenth")
	require.NoError(t, filepath.WalkDir(m.dir, func(path string, e os.DirEntry, err error) error {
		if info, _ := e.Info(); err == nil && !e.IsDir() && e.Name() != StateFile && info.Size() > 30_000 {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, bytes.Replace(b, []byte("number 1<"), []byte("number I<"), 1), 0o600))
		}
		return err
	}))
	whole(true, "another program has changed the file")
	require.Empty(t, m.reports)
}

// lieAboutPatches states of each patch in a change list what something else is.
func lieAboutPatches(list []byte, lie string) []byte {
	parts := strings.Split(string(list), "<rs:ln ")
	for i, p := range parts {
		if strings.Contains(p, "/rs/terms/patch") {
			sum := sha256.Sum256([]byte(lie))
			p = replaceAttribute(p, "hash", "sha-256:"+hex.EncodeToString(sum[:]))
			parts[i] = replaceAttribute(p, "length", fmt.Sprint(len(lie)))
		}
	}
	return []byte(strings.Join(parts, "<rs:ln "))
}

func replaceAttribute(tag, name, value string) string {
	before, behind, _ := strings.Cut(tag, " "+name+`="`)
	_, rest, _ := strings.Cut(behind, `"`)
	return before + " " + name + `="` + value + `"` + rest
}
