package jsonld

import (
	"bytes"
	"encoding/json"
	"regexp"

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

// languages brings the language tags of an expanded document into form. A text with an empty one is in no language.
func (d *document) languages(value any) error {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			if err := d.languages(each); err != nil {
				return err
			}
		}
	case map[string]any:
		if _, isValue := v["@value"]; isValue {
			return d.language(v)
		}
		for _, each := range v {
			if err := d.languages(each); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *document) language(value map[string]any) error {
	tag, _ := value["@language"].(string)
	if tag == "" {
		delete(value, "@language")
		return nil
	}
	normal, err := rdf.Language(tag)
	if err != nil {
		return d.fail(d.find(canonical(tag)), "%v", err)
	}
	value["@language"] = normal
	return nil
}

// find returns where a string first stands in the document, in whatever case; -1 where it is written with escapes.
func (d *document) find(quoted string) int {
	if found := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(quoted)).FindIndex(d.data); found != nil {
		return found[0]
	}
	return -1
}
