package jsonld_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allocated returns how many bytes reading a document takes in all.
func allocated(document string) (bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, err = read(document)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// chain makes terms. Each is made of the one before.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"t%d": "t%d:12345678901234567890", `, i+1, i)
	}
	return b.String()
}

// Short documents do not take much memory: the lengths of expanded terms and namespaces are counted first.
func TestGrowth(t *testing.T) {
	long := strings.Repeat("x", 8000)
	for name, document := range map[string]string{
		"many keys":          `{"@context": {"@vocab": "x:` + long + `"}, ` + repeated(100_000, `"%d":1,`) + `"a": 1}`,
		"many types":         `{"@context": {"t": "x:` + long + `"}, "@type": [` + repeated(100_000, `"t:%d",`) + `"t"]}`,
		"many references":    `{"@context": {"@base": "x:/` + long + `/", "p": {"@id": "http://e/p", "@type": "@id"}}, "p": [` + repeated(100_000, `"%d",`) + `"a"]}`,
		"a chain of terms":   `{"@context": {"t0": "http://e/", ` + chain(5000) + `"a": "b"}, "a": 1}`,
		"nested namespaces":  `{"@context": {"@version": 1.1, "p": {"@id": "http://e/p", "@context": {"@vocab": "` + long[:5000] + `"}}}, ` + strings.Repeat(`"p": {`, 150) + repeated(500, `"%d":1,`) + `"a": 1` + strings.Repeat("}", 151),
		"namespaces in line": `{"@context": [{"@vocab": "http://e/"}, ` + repeated(300, `{"@vocab": "`+long[:100]+`%d"},`) + `{}], "a": 1}`,
	} {
		bytes, err := allocated(document)
		assert.Less(t, bytes, uint64(100<<20), "%s: %d bytes", name, len(document))
		assert.Error(t, err, name)
	}
	// Usual documents are read: many nodes with a short namespace, a context in each node, relative IRIs on a
	// base.
	for name, document := range map[string]string{
		"nodes":    `{"@context": {"@vocab": "https://schema.org/", "id": "@id"}, "@graph": [` + repeated(20_000, `{"id": "http://e/%[1]d", "name": "n", "n": %[1]d},`) + `{}]}`,
		"contexts": `[` + repeated(5_000, `{"@context": {"@vocab": "https://schema.org/", "s": "https://schema.org/", "t": "s:t"}, "@id": "%d", "t": 1},`) + `{}]`,
		"base":     `{"@context": {"@base": "http://example.org/a/rather/long/base/of/everything/", "p": {"@id": "http://e/p", "@type": "@id"}}, "p": [` + repeated(5_000, `"%d",`) + `"a"]}`,
	} {
		all, err := read(document)
		require.NoError(t, err, name)
		assert.Greater(t, len(all), 4000, name)
	}
}

// If a document with several nodes has a fault, the error names the first node and its place.
func TestMeaningHasAPlace(t *testing.T) {
	for document, want := range map[string]string{
		"{\"@graph\": [\n {\"@id\": \"http://e/a\", \"http://e/p\": 1},\n {\"@id\": \"http://e/b\", \"http://e/p\": {\"@value\": {}}},\n {}]}": `doc:3:2: the document is no JSON-LD: invalid value object value: `,
		"[{\"@id\": \"http://e/a\"},\n\n\n {\"@type\": 5, \"@id\": \"http://e/b\"}]":                                                           `doc:4:2: the document is no JSON-LD: invalid type value: @type value must be a string or array of strings (in the node "http://e/b")`,
		"{\"@context\": {\"id\": \"@id\"}, \"@graph\": [{\"id\": \"http://e/c\", \"@language\": 1, \"http://e/p\": {\"@reverse\": 1}}]}":       `(in the node "http://e/c")`,
		"[{\"http://e/p\": {\"@id\": 1}}, {}]": "doc:1:2: the document is no JSON-LD: invalid @id value: value of @id must be a string (in the node number 1, which has no @id)",
	} {
		_, err := read(document)
		assert.ErrorContains(t, err, want, document)
	}
}

// A document is refused if no context maps its keys. It is not read as an empty map.
func TestNothingIsMapped(t *testing.T) {
	for _, document := range []string{`{"name": "Oslo"}`, `[{"name": "Oslo", "of": {"name": "x"}}, {"a": 1}]`, `{"@context": {"n": "http://e/n"}, "name": "Oslo"}`, `{"@graph": [{"@id": "http://e/a", "name": "Oslo"}]}`} {
		_, err := read(document)
		assert.ErrorContains(t, err, "doc:1:1: no context maps a key of the document to an IRI, so it says nothing; write what they mean into its @context", document)
	}
	for _, document := range []string{`{}`, `[]`, `[{}]`, `{"@context": {"n": "http://e/n"}}`, `{"@id": "http://e/a"}`, `{"@context": {"n": "http://e/n"}, "@id": "http://e/a", "n": []}`, `{"@context": {"n": "http://e/n"}, "n": null}`} {
		all, err := read(document)
		assert.NoError(t, err, document)
		assert.Empty(t, all)
	}
}
