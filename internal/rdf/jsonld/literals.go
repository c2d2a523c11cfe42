package jsonld

import (
	"bytes"
	"encoding/json"

	"github.com/tmshare/tmshare/internal/rdf"
)

const (
	jsonLiteral = rdf.NS + "JSON"
	// shielded stands for jsonLiteral while the library is at work, which takes such values for objects.
	shielded = "https://github.com/tmshare/tmshare/ns/1/json-literal"
)

// shield makes texts of the JSON literals in an expanded document, in canonical form (JSON-LD 1.1 §4.2.2, JSON
// Literals).
func shield(value any) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			shield(each)
		}
	case map[string]any:
		switch v["@type"] {
		case "@json":
			v["@value"], v["@type"] = canonical(v["@value"]), shielded
			return
		case jsonLiteral:
			v["@type"] = shielded
		}
		for _, each := range v {
			shield(each)
		}
	}
}

// canonical returns the JSON of a value: keys in order, no white space.
func canonical(value any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // it was JSON
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
