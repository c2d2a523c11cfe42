package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
)

// unlike returns topics with names that compress badly, to make a snapshot large.
func unlike(n, bytesOfName int, seed uint64) []string {
	random := rand.New(rand.NewPCG(seed, seed))
	all := make([]string, n)
	for i := range all {
		var name []byte
		for len(name) < bytesOfName {
			name = fmt.Appendf(name, "%016x", random.Uint64())
		}
		all[i] = topic(fmt.Sprintf("t%d", i), string(name))
	}
	return all
}

// wire counts the bytes sent of snapshots, and records the conditions of requests.
type wire struct {
	mu       sync.Mutex
	sent     int
	requests []string
}

// meter is an answer that is counted, and interrupted at a limit.
type meter struct {
	http.ResponseWriter
	*wire
	left int
}

func (m meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m *meter) Write(p []byte) (int, error) {
	cut := len(p) > m.left
	if cut {
		p = p[:m.left]
	}
	n, err := m.ResponseWriter.Write(p)
	m.mu.Lock()
	m.sent += n
	m.mu.Unlock()
	if m.left -= n; cut {
		_ = http.NewResponseController(m.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// cutting breaks each answer with a snapshot off after some bytes.
func (w *wire) cutting(after func(request int) int) fault {
	return func(to http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !isSnapshot(r) {
			return false
		}
		w.mu.Lock()
		n := len(w.requests)
		w.requests = append(w.requests, r.Header.Get("Range")+r.Header.Get("If-None-Match"))
		w.mu.Unlock()
		real.ServeHTTP(&meter{to, w, after(n)}, r)
		return true
	}
}

func whole(int) int { return always }

// asked returns the conditions of the requests so far, or "".
func (w *wire) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

// downloads lists the remaining files of downloads.
func (s *subscriber) downloads() []string {
	files, err := filepath.Glob(filepath.Join(s.dir, "downloads", "*"))
	require.NoError(s.t, err)
	return files
}

// instead answers requests for snapshots as another server might.
func instead(answer http.HandlerFunc) fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isSnapshot(r) {
			answer(w, r)
		}
		return isSnapshot(r)
	}
}

// file answers with content, its ETag and ranges of it.
func file(etag, coding string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		if coding != "" {
			w.Header().Set("Content-Encoding", coding)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

func zipped(t *testing.T, document string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(document))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// Repeated interruptions of a connection are harmless as long as each one makes progress: no byte is fetched twice.
func TestBrokenConnectionsAreGoneOnFrom(t *testing.T) {
	t.Parallel()
	document := doc(unlike(100, 2000, 1)...)
	for seed := range uint64(5) {
		o := publishing(t, document)
		s := subscribed(t, o)
		random := rand.New(rand.NewPCG(seed, seed))
		w := &wire{}
		o.BreakWith(w.cutting(func(int) int { return 1 + random.IntN(20_000) }))
		s.sync()
		s.has(o, document)
		require.Greater(t, len(w.asked()), 5)
		for i, asked := range w.asked() {
			assert.Equal(t, i > 0, strings.HasPrefix(asked, "bytes="), "request %d: %q", i, asked)
		}
		again := &wire{}
		o.BreakWith(again.cutting(whole))
		_, err := s.Replace(context.Background(), "egov")
		require.NoError(t, err)
		assert.Equal(t, []string{""}, again.asked(), "what was loaded is not kept")
		assert.Equal(t, again.sent, w.sent, "each byte once")
		assert.Empty(t, s.downloads())
	}
}

// A round that ends in the middle is taken up by the next, in another process too.
func TestInterruptedDownloadIsTakenUpByTheNextRound(t *testing.T) {
	t.Parallel()
	document := doc(unlike(100, 2000, 1)...)
	o := publishing(t, document)
	s := subscribed(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.BreakWith(func(to http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if isSnapshot(r) {
			w, body := recordAsIs(real, r)
			for name, values := range w.Header() {
				to.Header()[name] = values
			}
			_, _ = to.Write(body[:30_000])
			_ = http.NewResponseController(to).Flush()
			for info := os.FileInfo(nil); info == nil || info.Size() < 30_000; time.Sleep(time.Millisecond) {
				for _, path := range s.downloads() {
					if !strings.Contains(path, ".json") {
						info, _ = os.Stat(path)
					}
				}
			}
			cancel()
			<-r.Context().Done()
		}
		return isSnapshot(r)
	})
	_, err := s.Sync(ctx, "egov")
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, s.downloads(), 2)
	s.restart()
	w := &wire{}
	o.BreakWith(w.cutting(whole))
	s.sync()
	s.has(o, document)
	assert.Equal(t, []string{"bytes=30000-"}, w.asked())
	assert.Empty(t, s.downloads())
}

// What cannot be read is thrown away, with all that was made of it; another round
// fetches it again.
func TestSnapshotThatCannotBeReadIsThrownAway(t *testing.T) {
	t.Parallel()
	document := doc(unlike(25, 2000, 1)...)
	packed := zipped(t, document)
	changed := func(at int) []byte {
		b := bytes.Clone(packed)
		b[at] ^= 0x55
		return b
	}
	for name, content := range map[string][]byte{
		"truncated, with the right length": packed[:len(packed)-9],
		"truncated in the middle":          packed[:len(packed)/2],
		"a wrong checksum":                 changed(len(packed) - 8),
		"a wrong length":                   changed(len(packed) - 3),
		"damaged":                          changed(len(packed) / 2),
		"not gzip":                         []byte("hello"),
		"empty":                            {},
		"ill-formed XML at its end":        zipped(t, strings.TrimSuffix(document, ">\n")),
		"not a topic map":                  zipped(t, "<html/>"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, document)
			s := subscribed(t, o)
			o.BreakWith(instead(file(`"1"`, "gzip", content)))
			s.syncFails()
			assert.Empty(t, s.downloads())
			assert.Nil(t, s.known("egov").Staging)
			o.BreakWith(instead(file(`"1"`, "gzip", packed)))
			s.sync()
			s.has(o, document)
		})
	}
}

// The received and the unpacked sizes of snapshots are limited. A larger one is not fetched again.
func TestSnapshotsAreBounded(t *testing.T) {
	t.Parallel()
	padding := "<!--" + strings.Repeat(" ", 1<<16-7) + "-->"
	bomb := strings.Replace(doc(topics(3, "v1")...), "<topic>", strings.Repeat(padding, 20)+"<topic>", 1)
	require.Less(t, len(zipped(t, bomb)), 1<<16)
	for coding, content := range map[string][]byte{"gzip": zipped(t, bomb), "": []byte(bomb)} {
		o := publishing(t, doc(topics(3, "v1")...))
		s := subscribed(t, o, func(c *client.Config) { c.MaxSnapshot = 1 << 20 })
		n := 0
		o.BreakWith(instead(func(w http.ResponseWriter, r *http.Request) {
			n++
			file(`"1"`, coding, content)(w, r)
		}))
		_, err := s.syncFails()
		assert.ErrorContains(t, err, "longer than the limit of 1048576 bytes")
		assert.Equal(t, 1, n)
		assert.Empty(t, s.downloads())
		s.configure(func(c *client.Config) { c.MaxSnapshot = 2 << 20 })
		s.sync()
		s.has(o, doc(topics(3, "v1")...))
	}
}

// The newest snapshot is taken if the server has given up the other one meanwhile.
func TestSnapshotThatIsPrunedMeanwhileIsReplacedByTheNewest(t *testing.T) {
	t.Parallel()
	for _, status := range []int{404, 410} {
		o := publishing(t, doc(unlike(100, 2000, 1)...))
		s := subscribed(t, o, func(c *client.Config) { c.Tries = 1 })
		w := &wire{}
		o.BreakWith(w.cutting(func(n int) int { return 20_000 * (1 - n) })) // the second gets no farther
		s.syncFails()
		require.Len(t, s.downloads(), 2)
		o.Put(doc(unlike(100, 2000, 2)...))
		pruned := false
		o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
			if !isSnapshot(r) || pruned {
				return false
			}
			pruned = true
			assert.Equal(t, "bytes=20000-", r.Header.Get("Range"))
			o.TakeSnapshot()
			w.WriteHeader(status)
			return true
		})
		s.sync()
		s.has(o, doc(unlike(100, 2000, 2)...))
		assert.Empty(t, s.downloads())

		o.BreakWith(damage(isSnapshot, always, answering(status)))
		o.Seen()
		_, err := s.Replace(context.Background(), "egov")
		assert.ErrorContains(t, err, fmt.Sprint("the server answered ", status))
		assert.Equal(t, 1, times(o.Seen(), "/snapshots/"), "the newest one is not asked for again")

		named := 0
		o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
			switch {
			case isSnapshot(r):
				w.WriteHeader(status)
			case isSnapshots(r):
				named++
				was, body := record(real, r)
				w.Header().Set("Content-Type", was.Header().Get("Content-Type"))
				_, _ = w.Write(bytes.ReplaceAll(body, []byte("/snapshots/"), fmt.Appendf(nil, "/snapshots/%d-", named)))
			default:
				return false
			}
			return true
		})
		_, err = s.Replace(t.Context(), "egov")
		assert.ErrorContains(t, err, "the feed has named 5 snapshots, one after the other, of which none is there; try again later")
		assert.Equal(t, 5, named)
	}
}

// Of remaining downloads, only those that can still be used are kept.
func TestLeftoversAreRemoved(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(unlike(100, 2000, 1)...))
	s := subscribed(t, o, func(c *client.Config) { c.Tries = 1 })
	w := &wire{}
	o.BreakWith(w.cutting(func(n int) int { return 20_000 * (1 - n) }))
	s.syncFails()
	left := s.downloads()
	require.Len(t, left, 2)
	stranger := filepath.Join(filepath.Dir(left[0]), "4711")
	require.NoError(t, os.WriteFile(stranger, []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(stranger+".json", []byte("{}"), 0o600))
	o.Put(doc(unlike(100, 2000, 2)...))
	o.TakeSnapshot()
	w = &wire{}
	o.BreakWith(w.cutting(func(int) int { return 0 }))
	s.syncFails()
	assert.Equal(t, []string{""}, w.asked()[:1], "the old snapshot is not gone on with")
	assert.NoFileExists(t, stranger)
	assert.NoFileExists(t, stranger+".json")
	o.BreakWith(nil)
	s.sync()
	s.has(o, doc(unlike(100, 2000, 2)...))
	assert.Empty(t, s.downloads())
}

// Damaged notes of a download are not used.
func TestDamagedNotesAreNotTrusted(t *testing.T) {
	t.Parallel()
	document := doc(unlike(100, 2000, 1)...)
	for _, damaged := range []func(note map[string]any) any{
		func(map[string]any) any { return 5 },
		func(note map[string]any) any { delete(note, "ETag"); return note },
		func(note map[string]any) any { return ofAnother(note, 0, "urn:other") },
		func(note map[string]any) any { return ofAnother(note, 1, "2001-01-01T00:00:00.000000Z") },
		func(note map[string]any) any { return ofAnother(note, 2, "http://other/") },
	} {
		o := publishing(t, document)
		s := subscribed(t, o, func(c *client.Config) { c.Tries = 1 })
		w := &wire{}
		o.BreakWith(w.cutting(func(n int) int { return 20_000 * (1 - n) }))
		s.syncFails()
		path := s.downloads()[1]
		require.True(t, strings.HasSuffix(path, ".json"))
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var note map[string]any
		require.NoError(t, json.Unmarshal(b, &note))
		b, err = json.Marshal(damaged(note))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		w = &wire{}
		o.BreakWith(w.cutting(whole))
		s.sync()
		assert.Equal(t, []string{""}, w.asked())
		s.has(o, document)
	}
}

// ofAnother makes a note that of a snapshot that differs in its id, time or link.
func ofAnother(note map[string]any, part int, other string) any {
	parts := strings.Split(note["Key"].(string), "\x00")
	parts[part] = other
	note["Key"] = strings.Join(parts, "\x00")
	return note
}

// recordAsIs returns the answer of a handler, in its content coding.
func recordAsIs(h http.Handler, r *http.Request) (http.ResponseWriter, []byte) {
	var b bytes.Buffer
	w := &plain{header: http.Header{}, Writer: &b}
	h.ServeHTTP(w, r)
	return w, b.Bytes()
}

type plain struct {
	header http.Header
	io.Writer
}

func (p *plain) Header() http.Header { return p.header }
func (p *plain) WriteHeader(int)     {}
