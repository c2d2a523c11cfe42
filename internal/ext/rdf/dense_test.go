package rdf_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	extrdf "github.com/tmshare/tmshare/internal/ext/rdf"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/testhostile"
)

var extension = extrdf.Extension().Formats

// notation returns one of the formats.
func notation(name string) *formats.Format {
	f, err := extension.All().Named(name)
	if err != nil {
		panic(err)
	}
	return f
}

// Documents that make many statements of few bytes are refused before they fill the memory, in each notation that can
// make them.
func TestDenseDocumentsAreRefused(t *testing.T) {
	for name, make := range testhostile.Dense {
		f, ok := extension.OfFile(name)
		require.True(t, ok, name)
		read := func(n int) error {
			var o formats.ReadOptions
			o.Base, o.URI = "http://example.org/doc", "doc"
			_, err := f.Read(t.Context(), strings.NewReader(make(n)), o)
			return err
		}
		if err := read(1000); name != "empty.jsonld" { // it has no statements
			require.NoError(t, err, name)
		}
		err := read(700_000)
		var syntax *rdf.SyntaxError
		require.ErrorAs(t, err, &syntax, name)
		switch f.Name {
		case "jsonld": // it is read as a whole
			assert.Regexp(t, "more than 100000 (statements|values), and one more for each (32|8) bytes of it; divide it.*N-Triples with whole IRIs", err.Error(), name)
		default:
			assert.Greater(t, syntax.Line, 1, name)
			assert.Contains(t, err.Error(), "makes more than 100000 statements, and one more for each 32 bytes of it; divide its lists, or write it as N-Triples with whole IRIs", name)
		}
	}
}
