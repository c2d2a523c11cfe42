package jsonld_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Many contexts among many terms are refused before each of them copies all terms, whatever kind of context they are.
func TestContextsAmongManyTermsAreRefused(t *testing.T) {
	listed := func(n int, item string) string {
		return strings.TrimSuffix(strings.Repeat(item+",", n), ",")
	}
	document := func(kind string, n int) string {
		var terms strings.Builder
		for i := range n {
			fmt.Fprintf(&terms, `"t%d": "http://e/%d", `, i, i)
		}
		top := `{"@context": {` + terms.String()
		switch kind {
		case "inline":
			return top + `"p": "http://e/p"},` + "\n" + `"p": [` + listed(n, `{"@context": {"x": "http://e/x"}, "x": "1"}`) + `]}`
		case "property":
			return top + `"p": {"@id": "http://e/p", "@context": {"x": "http://e/x"}}}, "@graph": [` + listed(n, `{"p": {"x": "1"}}`) + `]}`
		case "type":
			return top + `"T": {"@id": "http://e/T", "@context": {"x": "http://e/x"}}}, "@graph": [` + listed(n, `{"@type": "T", "x": "1"}`) + `]}`
		}
		terms.Reset()
		for i := range n {
			fmt.Fprintf(&terms, `"t%d": {"@id": "http://e/%d", "@context": {"x": "http://e/x"}}, `, i, i)
		}
		return `{"@context": {` + terms.String() + `"p": "http://e/p"}, "p": "1"}`
	}
	for _, kind := range []string{"inline", "property", "type", "definitions"} {
		_, err := read(document(kind, 5000))
		require.Error(t, err, kind)
		assert.Contains(t, err.Error(), "doc:1:2: the contexts of the document take over more than 16000000 terms from those around them", kind)
		_, err = read(document(kind, 100))
		assert.NoError(t, err, kind)
	}
}
