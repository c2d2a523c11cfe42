package jsonld

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// culprit returns where in the document the first node at the top begins for which the library fails, and what names
// it. Without it the error is that of something else, such as the context.
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
			name = fmt.Sprintf(" (in the node %.200q)", id)
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
	decoder := json.NewDecoder(bytes.NewReader(d.data))
	first, err := decoder.Token()
	if err != nil {
		return 0
	}
	var passed json.RawMessage
	if first == json.Delim('{') {
		for {
			key, err := decoder.Token()
			if err != nil || key == json.Delim('}') {
				return 0 // it is the node
			}
			if key == "@graph" {
				break
			}
			if decoder.Decode(&passed) != nil {
				return 0
			}
		}
		if array, err := decoder.Token(); err != nil || array != json.Delim('[') {
			return 0
		}
	}
	for range index {
		if decoder.Decode(&passed) != nil {
			return 0
		}
	}
	behind := int(decoder.InputOffset())
	return behind + bytes.IndexFunc(d.data[behind:], func(r rune) bool { return r != ',' && r != ' ' && r != '\t' && r != '\r' && r != '\n' })
}

// unmapped reports whether a value has something to say besides what is for JSON-LD itself.
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
			switch said := each.(type) {
			case nil:
			case []any:
				if len(said) > 0 {
					return true
				}
			default:
				return true
			}
		}
	}
	return false
}
