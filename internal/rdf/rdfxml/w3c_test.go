package rdfxml_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/w3c"
)

const archive = "../../../../shared/conformance/w3c-rdf11.tar.gz"

// Each case of the W3C's suite of RDF/XML is as it must be.
func TestW3CSuite(t *testing.T) {
	s := w3c.Open(t, archive, "rdf-xml")
	require.GreaterOrEqual(t, len(s.Cases), 166)
	kinds := map[string]int{}
	for _, c := range s.Cases {
		var got, want []rdf.Quad
		err := rdfxml.Read(bytes.NewReader(s.File(c.Action)), rdfxml.Options{URI: c.Base}, func(q rdf.Quad) error {
			got = append(got, q)
			return nil
		})
		if c.Negative() {
			var syntax *rdf.SyntaxError
			assert.ErrorAs(t, err, &syntax, "%s: it is accepted", c.Name)
		} else if assert.NoError(t, err, c.Name) {
			require.NoError(t, turtle.Read(bytes.NewReader(s.File(c.Result)), turtle.NTriples, turtle.Options{URI: c.Result}, func(q rdf.Quad) error {
				want = append(want, q)
				return nil
			}))
			assert.True(t, rdf.Isomorphic(want, got), "%s:\n%v, not\n%v", c.Name, got, want)
		}
		kinds[c.Kind]++
	}
	t.Logf("%s: %d cases: %v", "rdf-xml", len(s.Cases), kinds)
}
