package formats

import (
	"bytes"
	"mime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/formats/format"
	"github.com/tmshare/tmshare/internal/formats/formatrdf"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func TestFormatsOfFilesAndNames(t *testing.T) {
	for name, want := range map[string]*Format{
		"a.xtm": XTM21, "a.xtm21": XTM21, "a.xtm2": XTM20, "a.xtm1": XTM10, "a.cxtm": CXTM,
		"b/a.b.xtm1.gz": XTM10, "a.cxtm.gz": CXTM, "a.gz": nil, "a": nil, "-": nil, "a.n3": nil, "xtm": nil,
		"a.ttl": formatrdf.Turtle, "a.TTL": formatrdf.Turtle, "a.nt": formatrdf.NTriples, "a.nq": formatrdf.NQuads, "a.trig": formatrdf.TriG, "a.rdf": formatrdf.RDFXML, "a.owl.gz": formatrdf.RDFXML, "a.jsonld": formatrdf.JSONLD,
	} {
		f, ok := OfFile(name)
		assert.Same(t, want, f, name)
		assert.Equal(t, want != nil, ok, name)
	}
	for name, want := range map[string]*Format{
		"xtm1": XTM10, "xtm1.0": XTM10, "xtm2": XTM20, "xtm2.0": XTM20, "xtm21": XTM21, "xtm2.1": XTM21, "cxtm": CXTM,
	} {
		f, err := Named(name)
		require.NoError(t, err)
		assert.Same(t, want, f)
	}
	_, err := Named("ctm")
	assert.EqualError(t, err, `unknown format "ctm": use xtm2.1, xtm2.0, xtm1, turtle, ntriples, rdfxml, jsonld, trig, nquads or cxtm`)
	_, err = ServedNamed("cxtm")
	assert.EqualError(t, err, `unknown format "cxtm": use xtm2.1, xtm1, turtle, ntriples or rdfxml`)
}

// Each entry of the registry is complete, and no two have a name, an ending or a media type in
// common: whoever adds a format is told here what is missing.
func TestRegistryIsUnambiguous(t *testing.T) {
	seen := map[string]string{}
	unique := func(f *Format, what string) {
		assert.NotContains(t, seen, what, "%s and %s", f.Name, seen[what])
		seen[what] = f.Name
	}
	require.NotEmpty(t, All)
	for _, f := range All {
		assert.NotEmpty(t, f.Title, f.Name)
		assert.NotNil(t, f.Write, f.Name)
		for _, name := range append(f.Aliases, f.Name) {
			unique(f, "name "+name)
		}
		for _, ending := range f.Endings {
			assert.Regexp(t, `^\.[a-z0-9]+$`, ending)
			unique(f, "ending "+ending)
		}
		for _, m := range f.MediaTypes {
			_, _, err := mime.ParseMediaType(m)
			assert.NoError(t, err, m)
			unique(f, "media type "+m)
		}
		if f.URLEnding != "" {
			assert.NotEmpty(t, f.MediaTypes, "%s is served: answers need a media type", f.Name)
			unique(f, "address "+f.URLEnding)
		}
	}
}

// What a format writes of an empty map, the same format reads, if it reads at all.
func TestFormatsReadWhatTheyWrite(t *testing.T) {
	read := 0
	for _, f := range All {
		m := tmdm.New()
		m.CreateTopicBySubjectIdentifier("http://psi.example.org/a")
		var b bytes.Buffer
		d := &Document{Map: m, Base: "http://example.org/map"}
		_, err := d.As(f, WriteOptions{})(&b)
		require.NoError(t, err, f.Name)
		require.NotZero(t, b.Len(), f.Name)
		if f.Read == nil {
			continue
		}
		read++
		again, err := f.Read(t.Context(), &b, format.ReadOptions{Options: xtm.Options{Base: "http://example.org/map"}})
		require.NoError(t, err, f.Name)
		n := 0
		for range again.Topics() {
			n++
		}
		assert.Equal(t, 1, n, f.Name)
	}
	assert.Positive(t, read)
}
