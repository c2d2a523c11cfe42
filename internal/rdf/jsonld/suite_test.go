package jsonld_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
)

// suite returns the folder with the cases of the W3C for JSON-LD, which come with the library that expands documents.
func suite(t *testing.T) string {
	t.Helper()
	found, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/piprate/json-gold").Output()
	folder := filepath.Join(strings.TrimSpace(string(found)), "ld/testdata")
	if _, missing := os.Stat(filepath.Join(folder, "toRdf-manifest.jsonld")); err != nil || missing != nil {
		t.Skip("NOT CHECKED: the cases of the library are not there.")
	}
	return folder
}

// others are cases that end otherwise.
var others = map[string]string{
	"a document that says nothing is refused":          "#te003 #te019",
	"an IRI with a character that none has is refused": "#tli12 #twf01 #twf02 #twf03 #twf04 #twf05 #twf07",
	"a base without a hierarchy is none":               "#t0130 #t0131 #t0132 #tli11",
	"an IRI may have two number signs":                 "#te111 #te112",
	"the library reads some contexts otherwise":        "#tc033 #tc037 #tc038 #tec02 #ter52 #ter56 #tpr28 #tpr38 #tpr39 #tpr43",
}

// Documents of the W3C are the graphs that they are to be (JSON-LD 1.1 API, toRdf). Cases that need another server, an
// option that there is none for, or generalized RDF are left out.
func TestSuiteOfTheW3C(t *testing.T) {
	folder := suite(t)
	var manifest struct {
		BaseIRI  string
		Sequence []struct {
			ID            string   `json:"@id"`
			Type          []string `json:"@type"`
			Input, Expect string
			Option        struct {
				Base, SpecVersion, ExpandContext, RDFDirection, ProcessingMode string
				ProduceGeneralizedRDF                                          bool `json:"produceGeneralizedRdf"`
			}
		}
	}
	content, err := os.ReadFile(filepath.Join(folder, "toRdf-manifest.jsonld"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &manifest))
	left := strings.Fields(strings.Join(slices.Collect(maps.Values(others)), " "))
	checked := 0
	for _, c := range manifest.Sequence {
		o := c.Option
		if slices.Contains(left, c.ID) {
			continue
		}
		if o.SpecVersion == "json-ld-1.0" || o.ProcessingMode == "json-ld-1.0" || o.ExpandContext != "" || o.RDFDirection != "" || o.ProduceGeneralizedRDF {
			continue
		}
		document, err := os.ReadFile(filepath.Join(folder, c.Input))
		require.NoError(t, err)
		base := manifest.BaseIRI + c.Input
		if o.Base != "" {
			base = o.Base
		}
		var graph []rdf.Quad
		err = jsonld.Read(bytes.NewReader(document), jsonld.Options{URI: c.Input, Base: base}, func(q rdf.Quad) error {
			graph = append(graph, q)
			return nil
		})
		if c.Expect == "" {
			if slices.Contains(c.Type, "jld:NegativeEvaluationTest") {
				assert.Error(t, err, c.ID)
			} else {
				assert.NoError(t, err, c.ID)
			}
			checked++
			continue
		}
		if err != nil && strings.Contains(err.Error(), "is not fetched") {
			continue
		}
		wanted, err2 := os.ReadFile(filepath.Join(folder, c.Expect))
		require.NoError(t, err2)
		var want []rdf.Quad
		require.NoError(t, turtle.Read(bytes.NewReader(wanted), turtle.NQuads, turtle.Options{URI: c.Expect}, func(q rdf.Quad) error {
			want = append(want, q)
			return nil
		}), c.ID)
		if assert.NoError(t, err, c.ID) {
			assert.True(t, rdf.Isomorphic(want, graph), "%s (%s): %s, not\n%s", c.ID, c.Input, text(t, graph), text(t, want))
		}
		checked++
	}
	require.Greater(t, checked, 390)
	t.Log(checked, "cases")
}
