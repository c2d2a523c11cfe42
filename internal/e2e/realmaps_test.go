package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
)

// realMap returns one of the real maps beside the checkout.
func realMap(t testing.TB, file string) []byte {
	testenv.SkipUnderRace(t) // the maps of the clone show the same
	return testenv.SharedFile(t, "data/"+file)
}

// The edits in each version of a map.
const editsEach = 10

// versions returns the number of published versions.
func versions() int { return testenv.Rounds(3, 20) }

// TestMapsStayInStep imports a map, syncs, and then publishes 200 random edits in 20 versions (fewer in the short
// form). After each the client does a partial update, and equals the edited input with the subject identifiers assigned
// by the server: not only the documents of the server.
func TestMapsStayInStep(t *testing.T) {
	for name, load := range map[string]func(t testing.TB) []byte{
		"egov":      func(testing.TB) []byte { return maps.EGov },
		"libraries": func(testing.TB) []byte { return maps.Libraries },
		"gcl":       func(t testing.TB) []byte { return realMap(t, "GCL-2-1.xtm") },
		"tapsas":    func(t testing.TB) []byte { return realMap(t, "TapsasConcerts.xtm") },
		"mondial":   func(t testing.TB) []byte { return realMap(t, "mondial.xtm.gz") },
	} {
		t.Run(name, func(t *testing.T) { staysInStep(t, name, load(t)) })
	}
}

func staysInStep(t *testing.T, name string, doc []byte) {
	ctx := context.Background()
	s := startServer(t, server.Config{Lenient: true, Policy: upkeep.Policy{SnapshotEvery: 500}})
	sp := importMap(t, s, name, doc)
	c := newClient(t)
	_, err := c.Subscribe(ctx, s.BaseURL+"/topicmaps/"+name, client.SubscribeOptions{})
	require.NoError(t, err)
	round, err := c.Sync(ctx, name)
	require.NoError(t, err)
	require.True(t, round.CleanStart)

	input := readXTM(t, doc, sp, true)
	assigned := assignments{}
	requireInStep(t, c, input, sp, assigned)
	typed := typedNames(input)

	editor := testedit.New(readXTM(t, doc, sp, true), sp, 42)
	published, snapshot := 0, len(writeXTM(t, input, sp))
	for version := range versions() {
		var edits []string
		for range editsEach {
			edits = append(edits, editor.Edit())
		}
		edited := writeXTM(t, editor.Map, sp)
		p := put(t, s, name, edited)
		published += p.Added + p.Updated + p.Deleted
		require.Zero(t, entries(put(t, s, name, edited)), "the same version again publishes nothing")
		round, err := c.Sync(ctx, name)
		require.NoError(t, err, "version %d: %s", version, edits)
		require.False(t, round.CleanStart)
		require.Equal(t, entries(p), round.Entries)
		requireInStep(t, c, readXTM(t, edited, sp, true), sp, assigned)
	}
	verdict, err := c.Verify(ctx, name, true)
	require.NoError(t, err)
	require.True(t, verdict.Equal)
	assert.Positive(t, published)
	t.Logf("%s: %d topics, snapshot %d bytes, %d edits in %d versions, %d fragments published, equal: %v; %d typed names at the start",
		name, verdict.Topics, snapshot, versions()*editsEach, versions(), published, verdict.Equal, typed)
	if name == "gcl" {
		require.Greater(t, typed, 1000, "the names of the Government Category List have types")
	}
}

func entries(p publish.Published) int { return p.Added + p.Updated + p.Deleted }

// requireInStep compares the client's state with an input to which the
// identifiers are added that the server must have assigned.
func requireInStep(t *testing.T, c *node, input *tmdm.TopicMap, sp string, assigned assignments) {
	t.Helper()
	assigned.add(t, input, sp)
	tm, conflicts, err := c.merged.Map(t.Context(), false)
	require.NoError(t, err)
	require.Zero(t, conflicts)
	want, got := canonical(t, input, sp), canonical(t, tm, sp)
	if want != got { // without printing megabytes
		require.FailNow(t, "the client differs from the edited input", firstDifference(want, got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "line " + strings.Join(append(append(w[max(0, i-5):i+1], "--- got"), g[max(0, i-5):min(len(g), i+5)]...), "\n")
		}
	}
	return "one ends before the other"
}

// assignments are the ids of topics to which the server has assigned a subject
// identifier: a topic keeps it as long as it is there, also when it gains
// others.
type assignments map[string]bool

func (a assignments) add(t *testing.T, tm *tmdm.TopicMap, sp string) {
	seen := map[string]bool{}
	for topic := range tm.Topics() {
		var ids []string
		for _, l := range topic.ItemIdentifiers() {
			if id, ok := strings.CutPrefix(string(l), sp+"#"); ok {
				ids = append(ids, id)
			}
		}
		known := len(topic.SubjectIdentifiers()) > 0
		for _, id := range ids {
			seen[id] = true
			known = known || a[id]
		}
		if !known {
			require.NotEmpty(t, ids, "%s has neither a subject identifier nor an id", tmdm.Describe(topic))
			a[ids[0]] = true
		}
		for _, id := range ids {
			if a[id] {
				require.NoError(t, topic.AddSubjectIdentifier(tmdm.Locator(sp+"topic/"+id)))
			}
		}
	}
	for id := range a {
		if !seen[id] {
			delete(a, id)
		}
	}
}

func typedNames(tm *tmdm.TopicMap) (n int) {
	standard := tm.TopicBySubjectIdentifier(tmdm.PSIDefaultNameType)
	for t := range tm.Topics() {
		for _, name := range t.Names() {
			if name.Type() != standard {
				n++
			}
		}
	}
	return n
}
