package turtle_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/w3c"
)

const archive = "../../../../shared/conformance/w3c-rdf11.tar.gz"

func read(data []byte, n turtle.Notation, base string) (all []rdf.Quad, err error) {
	err = turtle.Read(bytes.NewReader(data), n, turtle.Options{URI: base}, func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	})
	return all, err
}

// Each case of the W3C's suites of the Turtle family is as it must be.
func TestW3CSuites(t *testing.T) {
	for _, suite := range []struct {
		name        string
		action, end turtle.Notation // of the action and of the result
		cases       int             // at least
	}{
		{"rdf-n-triples", turtle.NTriples, 0, 70},
		{"rdf-n-quads", turtle.NQuads, 0, 87},
		{"rdf-turtle", turtle.Turtle, turtle.NTriples, 313},
		{"rdf-trig", turtle.TriG, turtle.NQuads, 356},
	} {
		t.Run(suite.name, func(t *testing.T) {
			s := w3c.Open(t, archive, suite.name)
			require.GreaterOrEqual(t, len(s.Cases), suite.cases)
			kinds := map[string]int{}
			for _, c := range s.Cases {
				got, err := read(s.File(c.Action), suite.action, c.Base)
				switch {
				case c.Negative():
					var syntax *rdf.SyntaxError
					assert.ErrorAs(t, err, &syntax, "%s: it is accepted", c.Name)
				case !assert.NoError(t, err, c.Name):
				case c.Result != "":
					want, err := read(s.File(c.Result), suite.end, c.Base)
					require.NoError(t, err, c.Name)
					assert.True(t, rdf.Isomorphic(want, got), "%s: %v, not %v", c.Name, got, want)
				}
				kinds[c.Kind]++
			}
			t.Logf("%s: %d cases: %v", suite.name, len(s.Cases), kinds)
		})
	}
}
