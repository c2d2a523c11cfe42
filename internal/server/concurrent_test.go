package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// versions returns two versions of a map that differ in many topics: names,
// a topic with its associations, an identifier.
func versions(t testing.TB) [2][]byte {
	t.Helper()
	first := maps.Libraries
	second := bytes.ReplaceAll(first, []byte("<baseNameString>F"), []byte("<baseNameString>New F"))
	second = bytes.ReplaceAll(second, []byte("</baseNameString></baseName>\n  </topic>"), []byte("!</baseNameString></baseName>\n  </topic>"))
	second = bytes.Replace(second, []byte("</topicMap>"), []byte(served.Topic("added", "Added")+served.Association("added", "added", "service")+served.Topic("role-1", "one")+served.Topic("role-2", "two")+"</topicMap>"), 1)
	return [2][]byte{first, second}
}

// seen is the state of a collection for a reader at one moment.
type seen struct {
	updated string
	content string // as CXTM
	entries int    // in the whole history
}

// Readers see one whole version or the other, and of the feed whole commits.
func TestReadersSeeWholeVersionsWhileOthersArePublished(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(10_000), every(20))
	v := versions(t)
	c := n.Publish("libraries", v[0])
	sp := n.SP("libraries")
	content := [2]string{n.Expected("libraries", v[0]), n.Expected("libraries", v[1])}
	require.NotEqual(t, content[0], content[1])
	states := map[string]seen{feedTime(c): {feedTime(c), content[0], c.Topics}} // by time of the last change

	ctx, stop := context.WithCancel(context.Background())
	var mu sync.Mutex
	var snapshots, documents []seen
	var readers sync.WaitGroup
	fetch := func(url, accept string) (http.Header, []byte, error) {
		req, err := http.NewRequest(http.MethodGet, n.URL(url), nil)
		if err != nil {
			return nil, nil, err
		}
		req.Header.Set("Accept", accept)
		res, err := n.HTTP.Do(req)
		if err != nil {
			return nil, nil, err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusOK && err == nil {
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
		return res.Header, body, err
	}
	for i := range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				h, body, err := fetch("/topicmaps/libraries/snapshots/current", []string{served.XTM1Type, served.XTM21Type}[i%2])
				if !assert.NoError(t, err) {
					return
				}
				s := seen{updated: h.Get("TMShare-Updated"), content: string(body)}
				_, body, err = fetch("/topicmaps/libraries/fragments", served.AtomType)
				if !assert.NoError(t, err) {
					return
				}
				f, err := feeds.Decode(bytes.NewReader(body), "x", feeds.Limits{})
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				snapshots = append(snapshots, s)
				documents = append(documents, seen{updated: feeds.FormatTime(f.Updated), entries: len(f.Entries)})
				mu.Unlock()
			}
		})
	}
	total := c.Topics
	for i := range 12 {
		testenv.Eventually(t, func() bool { // so that readers see several states
			mu.Lock()
			defer mu.Unlock()
			return len(snapshots) > 3*i
		})
		p := n.MustPut("libraries", v[(i+1)%2])
		total += p.Added + p.Updated + p.Deleted
		require.Greater(t, p.Added+p.Updated+p.Deleted, 10)
		states[p.LastChange] = seen{p.LastChange, content[(i+1)%2], total}
	}
	stop()
	readers.Wait()
	require.Greater(t, len(snapshots), 10)
	distinct, read := map[string]bool{}, map[string]string{}
	for _, s := range snapshots {
		distinct[s.updated] = true
		want, ok := states[s.updated]
		require.True(t, ok, "a state of %s, between two commits", s.updated)
		if read[s.content] == "" {
			read[s.content] = served.Canonical(t, []byte(s.content), sp)
		}
		assert.Equal(t, want.content, read[s.content], "the map as of %s", s.updated)
	}
	assert.Greater(t, len(distinct), 2, "readers have seen several states")
	for _, d := range documents {
		want, ok := states[d.updated]
		require.True(t, ok, "a feed as of %s, between two commits", d.updated)
		assert.Equal(t, want.entries, d.entries, "the feed as of %s", d.updated)
	}
}

// sharing starts two servers over stores that share an engine.
func sharing(t *testing.T, configure ...func(*server.Config)) [2]*node {
	o := store.Options{Dir: t.TempDir(), Engine: memory.New()}
	nodes := [2]*node{startOn(t, o, configure...), startOn(t, o, configure...)}
	nodes[0].Publish("m", served.TopicMap(served.Topic("first", "First")))
	return nodes
}

// A change acknowledged by one server is visible at the other, also to clients with an earlier answer.
func TestServersThatShareAnEngineAnswerAlike(t *testing.T) {
	var elapsed atomic.Int64
	began := time.Now()
	nodes := sharing(t, func(c *server.Config) {
		c.Now = func() time.Time { return began.Add(time.Duration(elapsed.Load())) }
	})
	rng := testenv.Rand(5)
	paths := []string{"/", "/topicmaps/m", "/topicmaps/m/fragments", "/topicmaps/m/snapshots", "/topicmaps/m/snapshots/current.xtm21"}
	nowhere := strings.NewReplacer(nodes[0].BaseURL, "", nodes[1].BaseURL, "")
	modified := 0
	for i := range testenv.Rounds(30, 150) {
		writer := rng.IntN(2)
		reader := nodes[1-writer]
		before := map[string]served.Answer{}
		elapsed.Add(int64(3 * time.Second))
		for _, path := range paths {
			if a := reader.Get(path); a.StatusCode == http.StatusOK {
				before[path] = a
				if date := a.Header.Get("Last-Modified"); date != "" {
					modified++
					assert.Equal(t, http.StatusNotModified, reader.Get(path, "If-Modified-Since", date).StatusCode, path)
				}
				assert.Equal(t, http.StatusNotModified, reader.Get(path, "If-None-Match", a.Header.Get("ETag")).StatusCode, path)
			}
		}
		require.Contains(t, before, paths[2])
		name := fmt.Sprint("Name ", i)
		switch rng.IntN(3) {
		case 0:
			served.Published(t, nodes[writer].Put("m", served.TopicMap(served.Topic("first", name), served.Topic(fmt.Sprint("t", i), name))))
		case 1:
			served.Published(t, nodes[writer].postTopics("m", served.TopicMap(served.Topic("first", name)), nil))
		default:
			served.Published(t, nodes[writer].postTopics("m", served.TopicMap(served.Topic("gone", name)), nil))
			served.Published(t, nodes[writer].Delete("m", served.PSI+"gone"))
		}
		elapsed.Add(int64(rng.IntN(1500)) * int64(time.Millisecond))
		for _, path := range []string{paths[2], paths[4]} {
			was, ok := before[path]
			if !ok {
				continue
			}
			assert.Equal(t, http.StatusOK, reader.Get(path, "If-None-Match", was.Header.Get("ETag")).StatusCode, path)
			if date := was.Header.Get("Last-Modified"); date != "" {
				assert.Equal(t, http.StatusOK, reader.Get(path, "If-Modified-Since", date).StatusCode, "%s, round %d", path, i)
			}
			now := nodes[writer].MustGet(path)
			there := reader.MustGet(path)
			assert.Equal(t, nowhere.Replace(string(now.Bytes)), nowhere.Replace(string(there.Bytes)), path)
		}
	}
	assert.Positive(t, modified)
}

// No write is lost at either server.
func TestServersThatShareAnEngineLoseNothing(t *testing.T) {
	nodes := sharing(t)
	writers, rounds := 3, testenv.Rounds(10, 60)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(testenv.Seed(), uint64(w)))
			for i := range rounds {
				through, other := nodes[i%2], nodes[1-i%2]
				id := fmt.Sprintf("w%d-%d", w, i)
				a := through.postTopics("m", served.TopicMap(served.Topic(id, "Name of "+id)), nil)
				if !assert.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes) {
					return
				}
				assert.Contains(t, string(other.Get("/topicmaps/m/snapshots/current.xtm21").Bytes), "Name of "+id)
				if rng.IntN(3) == 0 {
					a := other.Delete("m", served.PSI+id)
					assert.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
					assert.NotContains(t, string(through.Get("/topicmaps/m/snapshots/current.xtm21").Bytes), "Name of "+id)
					served.Published(t, through.postTopics("m", served.TopicMap(served.Topic(id, "Name of "+id)), nil))
				}
			}
		})
	}
	all.Wait()
	for _, n := range nodes {
		l, err := n.Store.Latest(t.Context(), "m")
		require.NoError(t, err)
		document := string(n.MustGet("/topicmaps/m/snapshots/current.xtm21").Bytes)
		for w := range writers {
			for i := range rounds {
				assert.Contains(t, document, fmt.Sprintf("Name of w%d-%d<", w, i))
			}
		}
		assert.GreaterOrEqual(t, l.Topics, writers*rounds)
		require.NoError(t, n.Store.(*store.DB).Check(t.Context(), false, func(f store.Finding) { t.Errorf("%+v", f) }, func(string) {}))
	}
}
