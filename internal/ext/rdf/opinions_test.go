package rdf_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// readers are programs of others that read RDF, and write it as N-Triples.
var readers = []struct {
	program string
	format  *formats.Format
	args    func(file string) []string
}{
	{"rapper", notation("turtle"), func(f string) []string {
		return []string{"-q", "-i", "turtle", "-o", "ntriples", f, "http://example.org/"}
	}},
	{"rapper", notation("ntriples"), func(f string) []string {
		return []string{"-q", "-i", "ntriples", "-o", "ntriples", f, "http://example.org/"}
	}},
	{"rapper", notation("rdfxml"), func(f string) []string {
		return []string{"-q", "-i", "rdfxml", "-o", "ntriples", f, "http://example.org/"}
	}},
	{"serdi", notation("turtle"), func(f string) []string { return []string{"-i", "turtle", "-o", "ntriples", f} }},
	{"serdi", notation("ntriples"), func(f string) []string { return []string{"-i", "ntriples", "-o", "ntriples", f} }},
}

// The written graph is the same for other programs: of a map with all constructs of topic maps, and of a real
// vocabulary.
func TestOthersReadWhatIsWritten(t *testing.T) {
	egov, err := xtm.Read(t.Context(), bytes.NewReader(maps.EGov), xtm.Options{Base: "http://example.org/map"})
	require.NoError(t, err)
	all := map[string]*tmdm.TopicMap{"egov": egov}
	if voc := vocabulary(t); voc != nil {
		all["voc4cat"] = voc
	}
	for _, r := range readers {
		t.Run(r.program+"/"+r.format.Name, func(t *testing.T) {
			program, err := exec.LookPath(r.program)
			if err != nil {
				t.Skipf("NOT CHECKED: %s is not installed.", r.program)
			}
			for name, m := range all {
				want, _ := mapping.Graph(m, mapping.Options{})
				file := filepath.Join(t.TempDir(), name)
				var b bytes.Buffer
				_, err := r.format.Write(&b, m, formats.WriteOptions{})
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
				out, err := exec.Command(program, r.args(file)...).Output()
				require.NoError(t, err)
				var got []rdf.Quad
				require.NoError(t, turtle.Read(bytes.NewReader(out), turtle.NTriples, turtle.Options{URI: r.program}, func(q rdf.Quad) error {
					got = append(got, q)
					return nil
				}))
				require.Greater(t, len(want), 1000)
				assert.True(t, rdf.Isomorphic(want, got), "%s: %d statements, not %d", name, len(got), len(want))
			}
		})
	}
}

func vocabulary(t *testing.T) *tmdm.TopicMap {
	f, err := os.Open("../../../../shared/data/voc4cat/v07.ttl.gz")
	if err != nil {
		t.Log("NOT CHECKED: the states of voc4cat are missing.")
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	m, err := notation("turtle").Read(t.Context(), bytes.NewReader(data), formats.ReadOptions{Options: xtm.Options{Base: "http://example.org/voc"}})
	require.NoError(t, err)
	return m
}
