package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The records under random histories.

// world is a map that a test edits, independently of its publication.
type world struct {
	random *rand.Rand
	topics []*inhabitant
	free   []string // identifiers that were taken from topics
	made   int
	names  int
}

type inhabitant struct {
	id          string
	identifiers []string
	name        string
}

func (w *world) name() string {
	w.names++
	return fmt.Sprint("Name ", w.names)
}

// add adds a topic, under an identifier that another had before where again is true.
func (w *world) add(again bool) {
	w.made++
	si := fmt.Sprint(served.PSI, "topic-", w.made)
	if again && len(w.free) > 0 {
		i := w.random.IntN(len(w.free))
		si = w.free[i]
		w.free = slices.Delete(w.free, i, i+1)
	}
	w.topics = append(w.topics, &inhabitant{fmt.Sprint("t", w.made), []string{si}, w.name()})
}

// take removes any topic, and returns it, or nil.
func (w *world) take() *inhabitant {
	if len(w.topics) == 0 {
		return nil
	}
	i := w.random.IntN(len(w.topics))
	t := w.topics[i]
	w.topics = slices.Delete(w.topics, i, i+1)
	return t
}

// edit changes something.
func (w *world) edit() {
	t := w.take()
	if t == nil {
		w.add(true)
		return
	}
	keep := true
	switch other := w.take(); w.random.IntN(10) {
	default:
		t.name = w.name()
		w.back(other)
	case 0: // removed
		w.free, keep = append(w.free, t.identifiers...), false
		w.back(other)
	case 1: // both are one
		if other != nil {
			t.identifiers = append(t.identifiers, other.identifiers...)
		}
	case 2: // one is two
		if n := len(t.identifiers); n > 1 {
			w.made++
			w.topics = append(w.topics, &inhabitant{fmt.Sprint("t", w.made), t.identifiers[n-1:], w.name()})
			t.identifiers = t.identifiers[:n-1]
		}
		w.back(other)
	case 3: // another identifier, which may become that of the record
		w.made++
		t.identifiers = append(t.identifiers, fmt.Sprint(served.PSI, "topic-", w.made))
		w.back(other)
	case 4: // it gets another identifier
		if len(t.identifiers) > 1 {
			w.free = append(w.free, t.identifiers[0])
			t.identifiers = t.identifiers[1:]
		}
		w.back(other)
	case 5:
		w.add(false)
		w.back(other)
	case 6:
		w.add(true)
		w.back(other)
	}
	if keep {
		w.back(t)
	}
}

func (w *world) back(t *inhabitant) {
	if t != nil {
		w.topics = append(w.topics, t)
	}
}

// document returns the map; some topics are players of associations.
func (w *world) document() []byte {
	parts := []string{served.Topic("part-of", "part of"), served.Topic("role-1", "part"), served.Topic("role-2", "whole")}
	for i, t := range w.topics {
		parts = append(parts, served.Identified(t.id, t.identifiers, t.name))
		if i%3 == 2 {
			parts = append(parts, served.Association("part-of", t.id, w.topics[i-1].id))
		}
	}
	return served.TopicMap(parts...)
}

// recordsBatch is the number of records that one commit republishes.
const recordsBatch = 20

// recordsAt starts a server that has the same addresses however often it is started again.
func recordsAt(t testing.TB, dir string, configure ...func(*server.Config)) *node {
	n := startOn(t, store.Options{Dir: dir, Batch: recordsBatch}, append(configure, func(c *server.Config) { c.BaseURL = "http://127.0.0.1:1" })...)
	n.DialAll()
	return n
}

func TestRecordsKeepEveryRuleUnderRandomHistories(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	const steps = 25
	histories := uint64(testenv.Rounds(2, 16))
	var deletions, pruned, restated atomic.Int64
	t.Run("histories", func(t *testing.T) {
		for seed := range histories {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, 20121123))
				dir := t.TempDir()
				n := recordsAt(t, dir, served.DocumentSize(1+random.IntN(6)))
				world := &world{random: random}
				for range 6 {
					world.add(false)
				}
				n.Publish("m", world.document())
				w := walkRecords(n, "m")
				w.check()
				done := map[string]int{}
				for range steps {
					done[w.step(world, dir)]++
					w.settled()
					w.check()
				}
				for _, e := range w.known {
					if kindOf(t, &e) == ofDeletion {
						deletions.Add(1)
					}
				}
				pruned.Add(int64(len(w.pruned)))
				restated.Add(int64(strings.Count(n.Logs.String(), "published again")))
				t.Logf("%v; %d entries in the last history, %d documents have lost some", done, len(w.known), len(w.pruned))
			})
		}
	})
	if histories < 8 {
		assert.Positive(t, deletions.Load(), "deletion entries")
		return
	}
	assert.Greater(t, deletions.Load(), int64(20), "deletion entries")
	assert.Greater(t, pruned.Load(), int64(20), "documents that have lost entries")
	assert.Positive(t, restated.Load(), "other formats")
}

// step does something to the map, or to its server. What leads to several events looks at
// each, but for the last.
func (w *recordsWalker) step(world *world, dir string) string {
	t, random := w.T, world.random
	t.Helper()
	switch random.IntN(22) {
	default:
		for range 1 + random.IntN(3) {
			world.edit()
		}
		w.MustPut("m", world.document())
		return "put"
	case 0:
		w.MustPut("m", served.TopicMap())
		require.Empty(t, w.currentPool("m"))
		return "empty"
	case 1, 2:
		if t := world.take(); t != nil {
			world.free = append(world.free, t.identifiers...)
			a := w.Do(http.MethodDelete, "/topicmaps/m/topics?si="+url.QueryEscape(t.identifiers[0]), nil)
			require.Contains(w.T, []int{http.StatusOK, http.StatusNotFound}, a.StatusCode, "%s", a.Bytes)
		}
		return "delete"
	case 3, 4:
		one := world.take()
		if one == nil {
			return "nothing"
		}
		world.back(one)
		for i := range 6 { // many times within one document
			if i > 0 {
				w.check()
			}
			one.name = world.name()
			served.Published(t, w.postTopics("m", served.TopicMap(served.Identified(one.id, one.identifiers, one.name)), nil))
		}
		return "post"
	case 5:
		w.node.Settings("m", func(s *store.Settings) { s.DocumentSize = 1 + random.IntN(7) })
		return "resize"
	case 6:
		a := w.Post("/topicmaps/m/snapshots")
		require.Contains(t, []int{http.StatusOK, http.StatusCreated}, a.StatusCode)
		return "snapshot"
	case 7, 8:
		w.Post("/topicmaps/m/snapshots")
		w.node.Settings("m", func(s *store.Settings) { s.KeepEntries = uint64(1 + random.IntN(10)) })
		a := w.Post("/topicmaps/m/gc")
		var p server.Pruned
		require.NoError(t, json.Unmarshal(a.Bytes, &p))
		if p.Entries > 0 {
			return "prune"
		}
		return "nothing to prune"
	case 9, 10:
		some := [][]string{{"xtm1"}, {"xtm2.1"}, {"xtm1", "xtm2.1"}, {}}[random.IntN(4)]
		w.offer(some...)
		return "formats"
	case 11:
		w.Stop()
		w.node = recordsAt(t, dir)
		w.restarted()
		require.NoError(t, w.Start())
		return "restart"
	case 12:
		require.Equal(t, http.StatusOK, w.remove("m").StatusCode)
		w.begin()
		w.Publish("m", world.document())
		w.formats, w.complete = []string{served.XTM1Type, served.XTM21Type}, served.Answer{}
		return "another history"
	}
}

// offer changes the formats in which records are offered.
func (w *recordsWalker) offer(formats ...string) {
	w.T.Helper()
	given, err := json.Marshal(formats)
	require.NoError(w.T, err)
	if formats == nil {
		given = []byte("[]")
	}
	a := w.PutSettings(w.name, `{"recordFormats": `+string(given)+`}`)
	require.Equal(w.T, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	types := map[string]string{"xtm1": served.XTM1Type, "xtm2.1": served.XTM21Type}
	w.formats = nil
	for _, f := range formats {
		w.formats = append(w.formats, types[f])
	}
	if len(formats) == 0 {
		w.formats = []string{served.XTM1Type, served.XTM21Type}
	}
}
