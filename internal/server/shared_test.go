package server_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
)

// sharing starts two servers over stores that share an engine.
func sharing(t *testing.T, configure ...func(*server.Config)) [2]*node {
	o := store.Options{Dir: t.TempDir(), Engine: memory.New()}
	nodes := [2]*node{startOn(t, o, configure...), startOn(t, o, configure...)}
	nodes[0].publish("m", topicMap(topic("first", "First")))
	return nodes
}

// Whatever one server has acknowledged the other answers with, for those too who have an answer
// of before.
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
		before := map[string]answer{}
		elapsed.Add(int64(3 * time.Second))
		for _, path := range paths {
			if a := reader.get(path); a.StatusCode == http.StatusOK {
				before[path] = a
				if date := a.Header.Get("Last-Modified"); date != "" {
					modified++
					assert.Equal(t, http.StatusNotModified, reader.get(path, "If-Modified-Since", date).StatusCode, path)
				}
				assert.Equal(t, http.StatusNotModified, reader.get(path, "If-None-Match", a.Header.Get("ETag")).StatusCode, path)
			}
		}
		require.Contains(t, before, paths[2])
		name := fmt.Sprint("Name ", i)
		switch rng.IntN(3) {
		case 0:
			published(t, nodes[writer].put("m", topicMap(topic("first", name), topic(fmt.Sprint("t", i), name))))
		case 1:
			published(t, nodes[writer].postTopics("m", topicMap(topic("first", name)), nil))
		default:
			published(t, nodes[writer].postTopics("m", topicMap(topic("gone", name)), nil))
			published(t, nodes[writer].delete("m", psi+"gone"))
		}
		elapsed.Add(int64(rng.IntN(1500)) * int64(time.Millisecond))
		for _, path := range []string{paths[2], paths[4]} {
			was, ok := before[path]
			if !ok {
				continue
			}
			assert.Equal(t, http.StatusOK, reader.get(path, "If-None-Match", was.Header.Get("ETag")).StatusCode, path)
			if date := was.Header.Get("Last-Modified"); date != "" {
				assert.Equal(t, http.StatusOK, reader.get(path, "If-Modified-Since", date).StatusCode, "%s, round %d", path, i)
			}
			now := nodes[writer].mustGet(path)
			there := reader.mustGet(path)
			assert.Equal(t, nowhere.Replace(string(now.body)), nowhere.Replace(string(there.body)), path)
		}
	}
	assert.Positive(t, modified)
}

// No write is lost, through whichever server it comes.
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
				a := through.postTopics("m", topicMap(topic(id, "Name of "+id)), nil)
				if !assert.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body) {
					return
				}
				assert.Contains(t, string(other.get("/topicmaps/m/snapshots/current.xtm21").body), "Name of "+id)
				if rng.IntN(3) == 0 {
					a := other.delete("m", psi+id)
					assert.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
					assert.NotContains(t, string(through.get("/topicmaps/m/snapshots/current.xtm21").body), "Name of "+id)
					published(t, through.postTopics("m", topicMap(topic(id, "Name of "+id)), nil))
				}
			}
		})
	}
	all.Wait()
	for _, n := range nodes {
		l, err := n.Store.Latest(t.Context(), "m")
		require.NoError(t, err)
		document := string(n.mustGet("/topicmaps/m/snapshots/current.xtm21").body)
		for w := range writers {
			for i := range rounds {
				assert.Contains(t, document, fmt.Sprintf("Name of w%d-%d<", w, i))
			}
		}
		assert.GreaterOrEqual(t, l.Topics, writers*rounds)
		require.NoError(t, n.Store.(*store.DB).Check(t.Context(), false, func(f store.Finding) { t.Errorf("%+v", f) }, func(string) {}))
	}
}
