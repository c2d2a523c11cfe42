package jsonld

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// nodes are the nodes at the top of a document, and how a document with some of them alone is made.
type nodes struct {
	all  []any
	with func(some []any) any
}

// nodesOf returns the nodes at the top of a document: those of its array, or of its @graph. Any other document is one
// node.
func nodesOf(value any) nodes {
	switch v := value.(type) {
	case []any:
		return nodes{v, func(some []any) any { return some }}
	case map[string]any:
		if all, ok := v["@graph"].([]any); ok {
			return nodes{all, func(some []any) any {
				part := maps.Clone(v)
				part["@graph"] = some
				return part
			}}
		}
	}
	return nodes{[]any{value}, func([]any) any { return value }}
}

// culprit returns the offset and a name of the first top-level node for which the library fails. If there is none, the
// error has another cause, such as the context.
func (d *document) culprit(value any, fails func(any) bool) (offset int, name string) {
	n := nodesOf(value)
	if len(n.all) > 1 && fails(n.with([]any{})) {
		return 0, ""
	}
	from, to := 0, len(n.all) // it is between them
	for to-from > 1 {
		if middle := (from + to) / 2; fails(n.with(slices.Clone(n.all[from:middle]))) {
			to = middle
		} else {
			from = middle
		}
	}
	if from == to || len(n.all) > 1 && !fails(n.with(n.all[from:to])) { // nodes that are wrong together
		return 0, ""
	}
	node, _ := n.all[from].(map[string]any)
	for _, key := range []string{"@id", "id"} {
		if id, ok := node[key].(string); ok {
			name = fmt.Sprintf(" (in the node %.200q)", plain(id))
			break
		}
	}
	if name == "" && len(n.all) > 1 {
		name = fmt.Sprintf(" (in the node number %d, which has no @id)", from+1)
	}
	return d.begin(from), name
}

// begin returns where a node at the top of the document begins.
func (d *document) begin(index int) int {
	for _, pointer := range []string{fmt.Sprint("/", index), fmt.Sprint("/@graph/", index)} {
		if offset, ok := d.offsets(pointer)[pointer]; ok {
			return offset
		}
	}
	return 0 // it is the node
}

// places are the JSON pointers (RFC 6901) of the nodes of an expanded document.
type places map[uintptr]place

type place struct {
	node    any // kept, so that its address stays unique
	pointer string
}

func (p places) note(pointer string, node any) {
	p[reflect.ValueOf(node).Pointer()] = place{node, pointer}
}

func (p places) place(node map[string]any) string {
	return original(p[reflect.ValueOf(node).Pointer()].pointer)
}

// original returns a pointer of the library as one into the document.
func original(pointer string) string {
	if !strings.Contains(pointer, "~") {
		return pointer
	}
	keys := strings.Split(pointer, "/")
	for i, key := range keys {
		keys[i] = token.Replace(plain(strings.NewReplacer("~1", "/", "~0", "~").Replace(key)))
	}
	return strings.Join(keys, "/")
}

// offsets returns where values begin to which pointers lead. Those of an empty one, and of one that leads nowhere, are
// those of the document.
func (d *document) offsets(pointers ...string) map[string]int {
	found, wanted := map[string]int{}, map[string]bool{}
	for _, p := range pointers {
		for i, c := range p {
			if c == '/' {
				wanted[p[:i]] = true
			}
		}
		wanted[p] = true
	}
	decoder := json.NewDecoder(bytes.NewReader(d.data))
	var walk func(pointer string) error
	walk = func(pointer string) error {
		behind := int(decoder.InputOffset())
		if !wanted[pointer] {
			var passed json.RawMessage
			return decoder.Decode(&passed)
		}
		between := len(d.data[behind:]) - len(bytes.TrimLeft(d.data[behind:], ",: \t\r\n"))
		found[pointer] = behind + between
		begin, err := decoder.Token()
		for i := 0; err == nil && (begin == json.Delim('{') || begin == json.Delim('[')) && decoder.More(); i++ {
			below := strconv.Itoa(i)
			if begin == json.Delim('{') {
				var key json.Token
				key, err = decoder.Token()
				below, _ = key.(string)
			}
			if err == nil {
				err = walk(pointer + "/" + token.Replace(below))
			}
		}
		if _, isDelim := begin.(json.Delim); err == nil && isDelim {
			_, err = decoder.Token()
		}
		return err
	}
	_ = walk("") // it was JSON
	return found
}

// token makes a key or an index part of a pointer.
var token = strings.NewReplacer("~", "~0", "/", "~1")

// key returns where a key first stands; 0 where it is written with escapes.
func (d *document) key(key string) int {
	if at := regexp.MustCompile(regexp.QuoteMeta(canonical(key)) + `\s*:`).FindIndex(d.data); at != nil {
		return at[0]
	}
	return 0
}

// find returns the distance of a text from an offset, ignoring case; -1 if the text does not occur literally.
func (d *document) find(text string, from int) int {
	if at := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(text)).FindIndex(d.data[from:]); at != nil {
		return at[0]
	}
	return -1
}

// unmapped reports whether a value has content besides keywords of JSON-LD.
func unmapped(value any) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, unmapped)
	case map[string]any:
		for key, each := range v {
			if key[:min(1, len(key))] == "@" {
				if key != "@context" && unmapped(each) {
					return true
				}
				continue
			}
			switch value := each.(type) {
			case nil:
			case []any:
				if len(value) > 0 {
					return true
				}
			default:
				return true
			}
		}
	}
	return false
}
