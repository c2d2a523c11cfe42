package ldes_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/testenv"
)

// thesaurus has so many concepts, as thesauri have them.
func thesaurus(concepts int) string {
	var b strings.Builder
	b.WriteString(":s a skos:ConceptScheme .\n")
	for i := range concepts {
		fmt.Fprintf(&b, ":c%d a skos:Concept ; skos:inScheme :s ; skos:prefLabel \"Concept number %[1]d\"@en , \"Begriff Nummer %[1]d\"@de ;"+
			" skos:altLabel \"Other name %[1]d\"@en ; skos:broader :c%[2]d ; skos:notation \"N%[1]d\" ; skos:definition"+
			" \"A definition of the concept with the number %[1]d, as it is in thesauri.\"@en .\n", i, i/10)
	}
	return b.String()
}

// BenchmarkFollowing follows a stream of ours to a map, and has ldes-client read the same stream, where that is there:
// the ratio is that of the processor times. The documents come from a server that has them as they are.
func BenchmarkFollowing(b *testing.B) {
	concepts := 50_000
	if testing.Short() {
		concepts = 1_000
	}
	n, h := start(b), host(b)
	n.put(thesaurus(concepts))
	root := n.URL("/topicmaps/m/ldes")
	take := func(at string) (g statements) {
		g, a := n.read(at + ".nq")
		h.pages[strings.TrimPrefix(at, n.BaseURL)] = hostedPage{kind: "application/n-quads",
			body: strings.ReplaceAll(string(a.Bytes), n.BaseURL, h.URL), cache: a.Header.Get("Cache-Control")}
		return g
	}
	g := take(root)
	for i, r := range g.objects(rdf.NewIRI(root), tree+"relation") {
		if i%2 == 0 { // two lead to a page
			take(g.object(b, r, tree+"node").Value)
		}
	}
	root = h.URL + "/topicmaps/m/ldes"
	for b.Loop() {
		f := newFollower(b)
		f.follow(root, "s", client.SubscribeOptions{})
		before := testenv.CPUTime()
		r := f.sync("s")
		ours := testenv.CPUTime() - before
		b.ReportMetric(ours.Seconds(), "CPU-s")
		b.ReportMetric(float64(ours.Microseconds())/float64(r.Applied), "µs/member")
		if os.Getenv("TMSHARE_LDES_CLIENT") == "" {
			b.Log("NOT CHECKED: the ratio to ldes-client, which TMSHARE_LDES_CLIENT does not name")
			continue
		}
		cmd := ldesClient(b, context.Background(), "--quiet", root)
		require.NoError(b, cmd.Run())
		theirs := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		b.ReportMetric(theirs.Seconds(), "ldes-client-CPU-s")
		b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
	}
}
