package ext_test

import (
	"bytes"
	"mime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Each entry of the registry is complete, and no two have a name, an ending or a media type in common. The message
// for an added format names the missing functions.
func TestRegistryIsUnambiguous(t *testing.T) {
	seen := map[string]string{}
	unique := func(f *formats.Format, what string) {
		assert.NotContains(t, seen, what, "%s and %s", f.Name, seen[what])
		seen[what] = f.Name
	}
	require.NotEmpty(t, ext.Formats())
	for _, f := range ext.Formats().All() {
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
			assert.True(t, f.Stored != "" || f.Exchange != nil, "%s is served: it needs an Exchange", f.Name)
		}
		if x := f.Exchange; x != nil {
			assert.True(t, x.ReadFragment != nil && x.Apply != nil && x.ReadSnapshot != nil, "%s: subscribers take it", f.Name)
			assert.True(t, f.URLEnding == "" || x.Fragment != nil && x.Snapshot != nil, "%s: servers offer it", f.Name)
		}
	}
}

// If a format can read, it reads its own output for an empty map.
func TestFormatsReadWhatTheyWrite(t *testing.T) {
	read := 0
	for _, f := range ext.Formats().All() {
		m := tmdm.New()
		m.CreateTopicBySubjectIdentifier("http://psi.example.org/a")
		var b bytes.Buffer
		d := &formats.Document{Map: m, Base: "http://example.org/map"}
		_, err := d.Encoder(f, formats.WriteOptions{})(&b)
		require.NoError(t, err, f.Name)
		require.NotZero(t, b.Len(), f.Name)
		if f.Read == nil {
			continue
		}
		read++
		again, err := f.Read(t.Context(), &b, formats.ReadOptions{Options: xtm.Options{Base: "http://example.org/map"}})
		require.NoError(t, err, f.Name)
		n := 0
		for range again.Topics() {
			n++
		}
		assert.Equal(t, 1, n, f.Name)
	}
	assert.Positive(t, read)
}

// A document in another format than the expected one is refused, and the error names the likely format.
func TestDocumentsOfOtherFormats(t *testing.T) {
	documents := map[string]string{
		"XTM":          `<?xml version="1.0"?><!-- a map --><topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="a"/></topicMap>`,
		"CXTM":         "<topicMap>\n<topic number=\"1\">\n</topic>\n</topicMap>\n",
		"RDF/XML":      `<!DOCTYPE rdf:RDF [<!ENTITY e "http://e/">]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="http://e/a"><rdf:type rdf:resource="&e;C"/></rdf:Description></rdf:RDF>`,
		"an HTML page": "<!DOCTYPE html>\n<html lang=\"en\"><head><title>A</title></head><body><p>A</body></html>",
		"an Atom feed": `<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title></feed>`,
		"JSON-LD":      `{"@id": "http://e/a", "http://e/p": 1}`,
		"JSON":         `[{"a": 1}, "b"]`,
		"Turtle":       "# Written by hand.\n@prefix e: <http://e/> . e:a a e:C .",
		"LTM":          "[a : b = \"A\"]",
		"CTM":          "%version 1.0\n",
		"ZIP":          "PK\x03\x04\x14\x00",
	}
	// Some documents are of several formats, and some formats cannot be distinguished by a few characters.
	same := map[string][]string{
		"XTM 2.1": {"XTM"}, "RDF/XML": {"RDF/XML"}, "JSON-LD": {"JSON-LD", "JSON", "LTM"}, "Turtle": {"Turtle", "LTM", "JSON"}, "TriG": {"Turtle", "LTM", "JSON"},
		"N-Triples": {"", "LTM", "JSON"}, "N-Quads": {"", "LTM", "JSON"},
	}
	for _, f := range ext.Formats().Readable() {
		all, ok := same[f.Title]
		if !ok { // older versions of XTM have the same reader
			continue
		}
		for kind, document := range documents {
			_, err := formats.Source{Path: "-", Name: "given", Stdin: strings.NewReader(document), Format: f, Lenient: true}.Read(t.Context())
			switch {
			case kind == all[0]:
				assert.NoError(t, err, "%s as %s", kind, f)
			case kind == "ZIP":
				assert.ErrorContains(t, err, "this looks like a ZIP archive, not ", "as %s", f)
			case assert.Error(t, err, "%s as %s", kind, f):
				explained := false
				for _, unclear := range all {
					explained = explained || kind == unclear
				}
				if !explained {
					assert.Regexp(t, `^given:\d+:\d+: this looks like `+kind+", not ", err.Error(), "as %s", f)
				}
			}
		}
	}
}
