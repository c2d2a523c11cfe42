package jsonld

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tmshare/tmshare/internal/jsontext"
	"github.com/tmshare/tmshare/internal/rdf"
)

// document is the JSON of a document.
type document struct {
	uri     string
	data    []byte
	members int // of all objects
	bases   []string
	restore []func()        // undo the changes of contexts
	terms   map[string]bool // that contexts define
}

// fail returns an error at an offset.
func (d *document) fail(offset int, format string, args ...any) error {
	before := d.data[:min(max(offset, 0), len(d.data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return &rdf.SyntaxError{URI: d.uri, Line: line, Column: column, Reason: fmt.Sprintf(format, args...)}
}

// readDocument reads a document that has not more bytes than size.
func readDocument(r io.Reader, uri string, size int) (*document, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(size)+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", uri, err)
	}
	d := &document{uri: uri, data: bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))}
	if len(data) > size {
		return nil, d.fail(size,
			"the document has more than %d bytes, and JSON-LD is read as a whole; convert it to N-Triples", size)
	}
	return d, nil
}

// decode returns the value that the document is, if its arrays and objects are not deeper than that.
func (d *document) decode(depth int) (any, error) {
	if offset, reason := jsontext.Changed(d.data); reason != "" {
		return nil, d.fail(offset, "%s", reason)
	}
	if offset, tooMany := d.excess(depth); tooMany {
		return nil, d.fail(offset,
			"the document has more than %d values, and one more for each %d bytes of it; divide it, or convert it to "+
				"N-Triples with whole IRIs", freeValues, bytesOfValue)
	} else if offset >= 0 {
		return nil, d.fail(offset, "arrays and objects are more than %d deep", depth)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(d.data))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, d.fail(int(syntax.Offset)-1, "this is no JSON: %v", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, d.fail(len(d.data), "the document ends early")
	case err != nil:
		return nil, d.fail(int(decoder.InputOffset()), "%v", err)
	}
	rest := decoder.InputOffset()
	if at := bytes.IndexFunc(d.data[rest:], func(r rune) bool {
		return r != ' ' && r != '\t' && r != '\n' && r != '\r'
	}); at >= 0 {
		return nil, d.fail(int(rest)+at, "there is something behind the end of the document")
	}
	if members(value) < d.members {
		offset, key := d.repeated()
		return nil, d.fail(offset, "an object has the key %.100q twice, and JSON-LD takes one; "+
			"write the values as an array", key)
	}
	return value, nil
}

// checkContexts refuses long strings in contexts: they are namespaces, bases, or terms.
func (d *document) checkContexts(value any, inContext bool) error {
	switch v := value.(type) {
	case string:
		if inContext {
			return d.checkLength(v)
		}
	case []any:
		for _, each := range v {
			if err := d.checkContexts(each, inContext); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, each := range v {
			if inContext {
				if err := d.checkLength(key); err != nil {
					return err
				}
			}
			if version, ok := each.(json.Number); ok && inContext && key == "@version" {
				v[key], _ = version.Float64() // the library compares it
			}
			if err := d.checkContexts(each, inContext || key == "@context"); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkLength refuses an IRI that is too long. Its place is known where it stands in the document as it is.
func (d *document) checkLength(iri string) error {
	if err := rdf.CheckLength(iri); err != nil {
		return d.fail(bytes.Index(d.data, []byte(iri)), "%v", err)
	}
	return nil
}

// A value takes some hundred bytes in memory: a document may have one of so many bytes of it, and so many beyond that.
const (
	bytesOfValue = 8
	freeValues   = 100_000
)

// excess counts the members of objects. It returns the offset of the bracket that is too deep, or of the value that is
// one too many, or -1.
func (d *document) excess(limit int) (offset int, tooMany bool) {
	data := d.data
	depth, values, inText := 0, 0, false
	most := freeValues + len(data)/bytesOfValue
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == ':':
			d.members++
		case c == ',':
			values++
		case c == '{', c == '[':
			values++
			if depth++; depth > limit {
				return i, false
			}
		case c == '}', c == ']':
			depth--
		}
		if values > most {
			return i, true
		}
	}
	return -1, false
}

// members returns the number of members of the objects in a value.
func members(value any) (n int) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			n += members(each)
		}
	case map[string]any:
		n = len(v)
		for _, each := range v {
			n += members(each)
		}
	}
	return n
}

// repeated returns the first key that an object has again, and where it stands.
func (d *document) repeated() (offset int, key string) {
	decoder := json.NewDecoder(bytes.NewReader(d.data))
	var keys []map[string]bool // of the objects that are open; nil: an array
	isKey := false
	for {
		token, err := decoder.Token()
		top := len(keys) - 1
		text, isText := token.(string)
		switch {
		case err != nil:
			return 0, ""
		case token == json.Delim('{'):
			keys = append(keys, map[string]bool{})
		case token == json.Delim('['):
			keys = append(keys, nil)
		case token == json.Delim('}'), token == json.Delim(']'):
			keys = keys[:top]
		case isKey && isText && keys[top][text]:
			return int(decoder.InputOffset()) - len(canonical(text)), text
		case isKey && isText:
			keys[top][text], isKey = true, false
			continue
		}
		isKey = len(keys) > 0 && keys[len(keys)-1] != nil
	}
}
