package rdf_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/piprate/json-gold/ld"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/w3c"
)

// canonical returns a graph in the canonical form of RDF Dataset Canonicalization (RDFC-1.0), made by another program.
func canonical(t *testing.T, graph []rdf.Quad) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, turtle.WriteNTriples(&b, graph))
	o := ld.NewJsonLdOptions("")
	o.InputFormat, o.Format, o.Algorithm = "application/n-quads", "application/n-quads", ld.AlgorithmURDNA2015
	form, err := ld.NewJsonLdProcessor().Normalize(b.String(), o)
	require.NoError(t, err)
	return form.(string)
}

// agree checks that two graphs are the same for us as they are for the other program.
func agree(t *testing.T, a, b []rdf.Quad) (same bool) {
	t.Helper()
	same = canonical(t, a) == canonical(t, b)
	assert.Equal(t, same, rdf.Isomorphic(a, b), "%v\n%v", a, b)
	return same
}

// Two graphs are the same for us exactly if they have the same canonical form: random ones with many nodes that look
// alike, with other labels, and with one statement changed.
func TestIsomorphicAgreesWithRDFC(t *testing.T) {
	random := testenv.Rand(22)
	var same, different int
	for range testenv.Rounds(400, 10_000) {
		nodes := 2 + random.IntN(5)
		var a, b []rdf.Quad
		label := random.Perm(nodes)
		for range 1 + random.IntN(9) {
			s, p, o := random.IntN(nodes), rdf.NewIRI("http://example.org/p"+fmt.Sprint(random.IntN(2))), random.IntN(nodes+1)
			object := func(label func(int) int) rdf.Term {
				if o == nodes {
					return rdf.NewLiteral("v", "")
				}
				return rdf.NewBlank(fmt.Sprint("n", label(o)))
			}
			a = append(a, rdf.Quad{Subject: rdf.NewBlank(fmt.Sprint("n", s)), Predicate: p, Object: object(func(n int) int { return n })})
			b = append(b, rdf.Quad{Subject: rdf.NewBlank(fmt.Sprint("n", label[s])), Predicate: p, Object: object(func(n int) int { return label[n] })})
		}
		random.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		require.True(t, agree(t, a, b))
		b[0].Object = rdf.NewBlank(fmt.Sprint("n", random.IntN(nodes)))
		if agree(t, a, b) {
			same++
		} else {
			different++
		}
	}
	require.NotZero(t, same)
	require.Greater(t, different, same)
}

// Each valid graph of the W3C's suite of Turtle equals the result in the suite, also for the other program.
func TestSuiteAgreesWithRDFC(t *testing.T) {
	s := w3c.Open(t, "../../../shared/conformance/w3c-rdf11.tar.gz", "rdf-turtle")
	read := func(file string, n turtle.Notation, base string) (all []rdf.Quad) {
		require.NoError(t, turtle.Read(bytes.NewReader(s.File(file)), n, turtle.Options{URI: base}, func(q rdf.Quad) error {
			all = append(all, q)
			return nil
		}))
		return all
	}
	compared := 0
	for _, c := range s.Cases {
		if c.Result == "" || c.Negative() {
			continue
		}
		assert.True(t, agree(t, read(c.Action, turtle.Turtle, c.Base), read(c.Result, turtle.NTriples, c.Result)), c.Name)
		compared++
	}
	require.Greater(t, compared, 100)
	t.Log(compared, "graphs")
}
