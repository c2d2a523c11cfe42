package xtm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

const fuzzBase = "http://example.org/map.xtm"

// FuzzRead starts from one document of each kind, so that it soon has others.
func FuzzRead(f *testing.F) {
	const kinds = 20 // of documents in a folder, whose names begin with their subject
	for i, path := range documents(f) {
		if i%kinds == 0 {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data, i%(2*kinds) == 0)
		}
	}
	for _, hostile := range testhostile.Amplifying {
		f.Add([]byte(hostile(800, 2)), false)
	}
	f.Add([]byte(testhostile.Scope(10, 10, 2)), false)
	f.Add([]byte(testhostile.Association(5)), false)
	f.Fuzz(checkReading)
}

// The invariants of FuzzRead hold for all documents of the tests, and for hostile ones of some size.
func TestReadingAllDocuments(t *testing.T) {
	paths := documents(t)
	require.Greater(t, len(paths), 200)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, lenient := range []bool{false, true} {
			t.Run(fmt.Sprint(path, lenient), func(t *testing.T) { checkReading(t, data, lenient) })
		}
	}
	for name, hostile := range testhostile.Amplifying {
		t.Run(name, func(t *testing.T) {
			checkReading(t, []byte(hostile(8000, 20)), false)
			checkReading(t, []byte(hostile(9<<10, 2)), false)
		})
	}
	checkReading(t, []byte(testhostile.Scope(100, 100, 20)), false)
	checkReading(t, []byte(testhostile.Association(50)), false)
}

// documents returns the files of the documents that tests read.
func documents(t testing.TB) (all []string) {
	for _, pattern := range []string{
		filepath.Join("..", "testdata", "xtm", "*", "*", "*.xtm"),
		filepath.Join("..", "..", "shared", "conformance", "cxtm", "*", "*", "*.xtm"),
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, files...)
	}
	return all
}

// checkReading checks that no document makes the reader panic, that every error has its place, and that an accepted
// document means the same after it has been written and read again. Where problems are collected, the first is the
// error that there is otherwise, and the rest of the document is a valid map.
func checkReading(t *testing.T, data []byte, lenient bool) {
	o := xtm.Options{
		Base: fuzzBase, Lenient: lenient, Limits: xtm.Limits{Token: 1 << 20, Depth: 100, Growth: 1 << 16, Expansion: 1 << 16},
		Loader: func(tmdm.Locator) (io.ReadCloser, error) { return nil, errors.New("none") },
	}
	tm, err := xtm.Read(t.Context(), bytes.NewReader(data), o)
	var problems []*xtm.SyntaxError
	o.Problem = func(e *xtm.SyntaxError) { problems = append(problems, e) }
	rest, broken := xtm.Read(t.Context(), bytes.NewReader(data), o)
	if err == nil {
		require.NoError(t, broken)
		require.Empty(t, problems)
		require.LessOrEqual(t, textOf(tm), 1<<17+(1+1+16)*3*len(data), "bytes in the map, of %d", len(data)) // 3: what bytes become in UTF-8
		checkRoundTrip(t, tm)
		require.Equal(t, canonical(t, tm, cxtm.Options{}), canonical(t, rest, cxtm.Options{}))
		return
	}
	for _, e := range append(problems, syntaxError(t, err)) {
		require.Positive(t, e.Line)
		require.Positive(t, e.Column)
	}
	if broken != nil {
		problems = append(problems, syntaxError(t, broken))
	}
	require.NotEmpty(t, problems)
	require.Equal(t, err.Error(), problems[0].Error())
	if broken == nil {
		checkRoundTrip(t, rest)
	}
}

func syntaxError(t *testing.T, err error) *xtm.SyntaxError {
	var syntax *xtm.SyntaxError
	require.ErrorAs(t, err, &syntax)
	return syntax
}

// checkRoundTrip writes tm and reads it again, in all versions.
func checkRoundTrip(t *testing.T, tm *tmdm.TopicMap) {
	o := cxtm.Options{Base: fuzzBase}
	for topic := range tm.Topics() {
		if len(topic.SubjectIdentifiers())+len(topic.SubjectLocators())+len(topic.ItemIdentifiers()) == 0 {
			return // it would get an item identifier
		}
	}
	for _, v := range []xtm.Version{xtm.V10, xtm.V20, xtm.V21} {
		var doc bytes.Buffer
		losses, err := xtm.Write(&doc, tm, xtm.WriteOptions{Version: v, Base: fuzzBase, NameTypes: xtm.OntopiaNameTypes})
		var unwritable *xtm.EncodeError
		if v == xtm.V20 && errors.As(err, &unwritable) {
			continue
		}
		require.NoError(t, err)
		again, err := xtm.Read(t.Context(), bytes.NewReader(doc.Bytes()), xtm.Options{Base: fuzzBase, Lenient: v == xtm.V10})
		require.NoError(t, err, "XTM %s:\n%s", v, doc.String())
		if losses.Total() > 0 {
			continue
		}
		if v != xtm.V21 {
			dropMadeIDs(tm, again, fuzzBase)
		}
		require.Equal(t, canonical(t, tm, o), canonical(t, again, o), "XTM %s:\n%s", v, doc.String())
	}
}

// textOf returns how many bytes of text a map has.
func textOf(tm *tmdm.TopicMap) (n int) {
	for t := range tm.Topics() {
		for _, l := range slices.Concat(t.ItemIdentifiers(), t.SubjectIdentifiers(), t.SubjectLocators()) {
			n += len(l)
		}
		for _, o := range t.Occurrences() {
			n += len(o.Value())
		}
	}
	return n
}
