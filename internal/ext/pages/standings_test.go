package pages_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The stored tops of hierarchies equal those found by a read of all associations, after any history: versions of a
// map, topics that change and go, commits that are undone, history that is given up, collections that are made anew,
// and circles; in each of the servers that share a store, whether it reads after each commit or now and then.
func TestTopsAreThoseOfAllAssociations(t *testing.T) {
	t.Parallel()
	engine := memory.New()
	anyLoss := func(c *server.Config) { c.MaxDelete, c.KeepEntries = losses.All(), 3 }
	var nodes []*served.Node
	var shown []*pages.Pages
	for range 2 {
		n := served.StartOn(t, store.Options{Dir: t.TempDir(), Engine: engine}, anyLoss)
		p, _ := pages.New(n.Server)
		nodes, shown = append(nodes, n), append(shown, p)
	}
	round, looks, walks := 0, 0, 0
	testenv.Check(t, 40, 400, func(t *rapid.T) {
		round++
		name := fmt.Sprint("m", round)
		nodes[0].PutSettings(name, "{}")
		topics := rapid.IntRange(3, 7).Draw(t, "topics")
		one := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("x:", rapid.IntRange(1, topics).Draw(t, "topic")) })
		statements := rapid.Custom(func(t *rapid.T) string {
			doc := strings.ReplaceAll(skosPrefixes, "@prefix : <http://x/>", "@prefix x: <http://x/>") + marksOfTree
			for range rapid.IntRange(0, 6).Draw(t, "statements") {
				a, b := one.Draw(t, "one"), one.Draw(t, "other")
				if rapid.IntRange(0, 9).Draw(t, "circle") > 0 && a < b {
					a, b = b, a
				}
				property := rapid.SampledFrom([]string{"skos:broader", "skos:broader", "skos:narrower", "rdfs:subClassOf", "rdfs:subClassOf", "skos:related", "x:within", "a", "a owl:Class #", "skos:topConceptOf"}).Draw(t, "property")
				doc += fmt.Sprintf("%[1]s skos:prefLabel \"one\" . %[3]s skos:prefLabel \"other\" . %[1]s %[2]s %[3]s\n.\n", a, property, b)
			}
			return doc + "x:0 skos:prefLabel \"none\" .\n"
		})
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			n := rapid.IntRange(0, 1).Draw(t, "server")
			at, turtle := nodes[n], []string{"Content-Type", "text/turtle"}
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1:
				a := at.Put(name, []byte(statements.Draw(t, "version")), turtle...)
				require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
			case 2, 3, 4, 5:
				a := at.Do(http.MethodPost, "/topicmaps/"+name+"/topics", strings.NewReader(statements.Draw(t, "topics")), turtle...)
				require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
			case 6:
				at.Delete(name, strings.Replace(one.Draw(t, "gone"), "x:", "http://x/", 1))
			case 7:
				at.Post("/topicmaps/" + name + "/revert?force=true&commit=" + fmt.Sprint(headOf(at, name)))
			case 8:
				at.Post("/topicmaps/" + name + "/snapshots")
				at.Post("/topicmaps/" + name + "/gc")
			default:
				require.Less(t, at.Do(http.MethodDelete, "/topicmaps/"+name, nil).StatusCode, 300)
				at.PutSettings(name, "{}")
			}
			for i, n := range nodes {
				if rapid.IntRange(0, 2).Draw(t, "look") == 0 {
					continue
				}
				require.NoError(t, n.Store.View(n.T.Context(), name, func(v *store.View) error {
					want, all, err := pages.Tops(pages.Fresh(shown[i]), v)
					require.NoError(t, err)
					require.Positive(t, all)
					switch rapid.IntRange(0, 5).Draw(t, "before") {
					case 0: // the server starts again, and has the tops in rows
						shown[i], err = pages.Again(shown[i])
					case 1:
						err = pages.Find(shown[i], v)
					}
					require.NoError(t, err)
					have, some, err := pages.Tops(shown[i], v)
					require.NoError(t, err)
					require.Equal(t, want, have)
					looks, walks = looks+all, walks+some
					return nil
				}))
			}
		}
	})
	t.Logf("%d of %d looks were at all associations", walks, looks)
	assert.Less(t, walks, looks)
}

// A database that is put back to an earlier state, and goes on otherwise, has another history: the tops of the lost
// history are found anew.
func TestTopsOfADatabaseThatWasPutBack(t *testing.T) {
	testenv.SkipUnderRace(t) // the database is put back while the server stands still, which the detector does not see
	t.Parallel()
	first := memory.New()
	engine := &replaced{first}
	n := served.StartOn(t, store.Options{Dir: t.TempDir(), Engine: engine}, func(c *server.Config) { c.MaxDelete = losses.All() })
	p, _ := pages.New(n.Server)
	tops := func(p *pages.Pages) (all map[string][]string, walks int) {
		require.NoError(t, n.Store.View(t.Context(), "m", func(v *store.View) (err error) {
			all, walks, err = pages.Tops(p, v)
			return err
		}))
		return all, walks
	}
	version := func(above, below string) {
		publishTurtle(t, n, "m", skosPrefixes+fmt.Sprintf(":%[1]s a skos:Concept . :%[2]s skos:broader :%[1]s ; skos:prefLabel \"x\" .", above, below))
	}
	version("a", "b")
	early := first.Copy()
	version("c", "d")
	tops(p)
	version("e", "f")
	now, walks := tops(p)
	assert.Zero(t, walks, "it goes on")
	engine.Engine = early
	version("f", "e") // as many commits as there were
	version("b", "a")
	back, walks := tops(p)
	assert.Positive(t, walks)
	want, _ := tops(pages.Fresh(p))
	assert.Equal(t, want, back)
	assert.NotEqual(t, now, back)
}

type replaced struct{ kv.Engine }

// The tops of a large map are found in the background: after its first version, and when the server starts. So the
// first reader of its hierarchies does not wait for a read of all associations.
func TestTopsOfALargeMapAreFoundInTheBackground(t *testing.T) {
	t.Parallel()
	engine := memory.New()
	var p *pages.Pages
	start := func() *served.Node {
		return served.StartOn(t, store.Options{Dir: t.TempDir(), Engine: engine}, func(c *server.Config) {
			c.Parts = []func(*server.Server) (*server.Part, error){func(s *server.Server) (part *server.Part, err error) {
				p, part = pages.New(s)
				return part, nil
			}}
		})
	}
	found := func(n *served.Node) {
		t.Helper()
		const all = 3 // the classes, and the tops of types and concepts
		require.Eventually(t, func() bool { return pages.Known(p) == all }, time.Minute, 10*time.Millisecond)
		require.NoError(t, n.Store.View(t.Context(), "m", func(v *store.View) error {
			_, walks, err := pages.Tops(p, v)
			assert.Zero(t, walks)
			return err
		}))
	}
	n := start()
	doc := bytes.NewBufferString(skosPrefixes)
	for i := range 10_001 {
		fmt.Fprintf(doc, ":c%d skos:prefLabel \"C\" ; skos:broader :c%d .\n", i+1, i/100)
	}
	publishTurtle(t, n, "m", doc.String())
	found(n)
	require.Eventually(t, func() (written bool) {
		require.NoError(t, n.Store.View(n.T.Context(), "m", func(v *store.View) error {
			rows, err := pages.Stored(v)
			written = rows == 3
			return err
		}))
		return written
	}, time.Minute, 10*time.Millisecond)
	n.Stop()
	n = start()
	a := n.Do(http.MethodPost, "/topicmaps/m/topics", strings.NewReader(skosPrefixes+":new skos:broader :top ; skos:prefLabel \"new\" ."), "Content-Type", "text/turtle")
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	require.NoError(t, n.Store.View(n.T.Context(), "m", func(v *store.View) error {
		have, walks, err := pages.Tops(p, v)
		require.NoError(t, err)
		assert.Zero(t, walks, "before the background has found anything")
		want, _, err := pages.Tops(pages.Fresh(p), v)
		assert.Equal(t, want, have)
		return err
	}))
	require.NoError(t, n.Server.Start())
	found(n)
}

// marksOfTree has another kind of hierarchy than those of concepts and classes.
const marksOfTree = `@prefix h: <http://www.techquila.com/psi/hierarchy/#> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
x:within a h:hierarchical-relation-type . rdf:object a h:superordinate-role-type . rdf:subject a h:subordinate-role-type .
`

func headOf(n *served.Node, name string) (head uint64) {
	require.NoError(n.T, n.Store.View(n.T.Context(), name, func(v *store.View) error {
		head = v.Head
		return nil
	}))
	return head
}
