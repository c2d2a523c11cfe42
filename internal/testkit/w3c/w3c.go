// Package w3c reads the test suites of RDF 1.1 of the W3C, for tests.
package w3c

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
)

// Case is a test case.
type Case struct {
	Name           string
	Kind           string // the last part of its type, such as TestTurtleEval
	Action, Result string // files; Result is "" where a document is only accepted or refused
	Base           string // the IRI of the action
}

// Negative reports whether the document must be refused.
func (c *Case) Negative() bool { return strings.Contains(c.Kind, "Negative") }

// Suite holds the files of one suite, and its cases.
type Suite struct {
	Cases []Case
	files map[string][]byte
}

// Open reads a suite of the archive, such as "rdf-turtle". It skips the test where the archive is
// missing.
func Open(t testing.TB, archive, name string) *Suite {
	t.Helper()
	f, err := os.Open(archive)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("NOT CHECKED: %s is missing. The W3C's test cases of RDF are not run.", archive)
	}
	require.NoError(t, err)
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	require.NoError(t, err)
	s := &Suite{files: map[string][]byte{}}
	for all := tar.NewReader(unpacked); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if in, ok := strings.CutPrefix(path.Clean(h.Name), name+"/"); ok && h.Typeflag == tar.TypeReg {
			s.files[in], err = io.ReadAll(all)
			require.NoError(t, err)
		}
	}
	s.readManifest(t, name)
	return s
}

// File returns the content of a file.
func (s *Suite) File(name string) []byte { return s.files[name] }

const (
	manifest = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
	root     = "https://w3c.github.io/rdf-tests/rdf/rdf11/"
)

func (s *Suite) readManifest(t testing.TB, name string) {
	base := root + name + "/"
	statements := map[rdf.Term]map[string]rdf.Term{}
	var order []rdf.Term
	err := turtle.Read(bytes.NewReader(s.files["manifest.ttl"]), turtle.Turtle,
		turtle.Options{URI: "manifest.ttl", Base: base + "manifest.ttl"}, func(q rdf.Quad) error {
			if statements[q.Subject] == nil {
				statements[q.Subject] = map[string]rdf.Term{}
				order = append(order, q.Subject)
			}
			statements[q.Subject][q.Predicate.Value] = q.Object
			return nil
		})
	require.NoError(t, err)
	for _, subject := range order {
		about := statements[subject]
		action, ok := about[manifest+"action"]
		if !ok {
			continue
		}
		file := func(p string) string { return strings.TrimPrefix(about[manifest+p].Value, base) }
		kind := about[rdf.Type].Value
		c := Case{Name: about[manifest+"name"].Value, Kind: kind[strings.LastIndexByte(kind, '#')+1:], Action: file("action"),
			Result: file("result"), Base: action.Value}
		require.Contains(t, s.files, c.Action)
		if c.Result != "" {
			require.Contains(t, s.files, c.Result)
		}
		s.Cases = append(s.Cases, c)
	}
	require.NotEmpty(t, s.Cases)
}
