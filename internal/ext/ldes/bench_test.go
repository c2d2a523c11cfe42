package ldes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
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

// stored is a page of a stream as a process that serves it has it.
type stored struct{ Body, Cache string }

// placeholder stands for the address of that process.
const placeholder = "http://placeholder.invalid"

// TestMain runs the tests, or serves the pages of a file until it is killed.
func TestMain(m *testing.M) {
	kill.Main(m, kill.Tasks{"serve": func(args []string) error {
		data, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		pages := map[string]stored{}
		if err := json.Unmarshal(data, &pages); err != nil {
			return err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		base := "http://" + l.Addr().String()
		fmt.Println(base)
		return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p, ok := pages[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/n-quads")
			w.Header().Set("Cache-Control", p.Cache)
			_, _ = io.WriteString(w, strings.ReplaceAll(p.Body, placeholder, base)) // the client may have gone
		}))
	}})
}

// BenchmarkFollowing follows a stream of ours to a map, and has ldes-client read the same stream, where that is there:
// the ratio is that of the processor times. The documents come from a process that has them as they are.
func BenchmarkFollowing(b *testing.B) {
	concepts := 50_000
	if testing.Short() {
		concepts = 3_000
	}
	n := start(b)
	n.put(thesaurus(concepts))
	pages := map[string]stored{}
	take := func(at string) (g statements) {
		g, a := n.read(at + ".nq")
		pages[strings.TrimPrefix(at, n.BaseURL)] = stored{strings.ReplaceAll(string(a.Bytes), n.BaseURL, placeholder),
			a.Header.Get("Cache-Control")}
		return g
	}
	root := n.URL("/topicmaps/m/ldes")
	g := take(root)
	for i, r := range g.objects(rdf.NewIRI(root), tree+"relation") {
		if i%2 == 0 { // two lead to a page
			take(g.object(b, r, tree+"node").Value)
		}
	}
	file := filepath.Join(b.TempDir(), "pages.json")
	data, err := json.Marshal(pages)
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(file, data, 0o600))
	base, ok := kill.Start(b, "serve", file).Line()
	require.True(b, ok)
	g, pages, data = nil, nil, nil
	runtime.GC()
	root = base + "/topicmaps/m/ldes"
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
