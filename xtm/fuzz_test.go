package xtm_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

const fuzzBase = "http://example.org/map.xtm"

// FuzzRead checks that no document makes the reader panic, that every error
// says where it is, and that an accepted document means the same after it has
// been written and read again. Where problems are collected, the first is the
// error that there is otherwise, and what is left of the document is a map like
// any.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{
		filepath.Join("..", "testdata", "xtm", "*", "*", "*.xtm"),
		filepath.Join("..", "..", "shared", "conformance", "cxtm", "*", "*", "*.xtm"),
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range files {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data, false)
			f.Add(data, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, lenient bool) {
		o := xtm.Options{
			Base: fuzzBase, Lenient: lenient, Limits: xtm.Limits{Token: 1 << 20, Depth: 100},
			Loader: func(tmdm.Locator) (io.ReadCloser, error) { return nil, errors.New("none") },
		}
		tm, err := xtm.Read(bytes.NewReader(data), o)
		var problems []*xtm.SyntaxError
		o.Problem = func(e *xtm.SyntaxError) { problems = append(problems, e) }
		rest, broken := xtm.Read(bytes.NewReader(data), o)
		if err == nil {
			require.NoError(t, broken)
			require.Empty(t, problems)
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
	})
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
		again, err := xtm.Read(bytes.NewReader(doc.Bytes()), xtm.Options{Base: fuzzBase, Lenient: v == xtm.V10})
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
