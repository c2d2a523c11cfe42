package jsonld

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/piprate/json-gold/ld"

	"github.com/tmshare/tmshare/internal/rdf"
)

// The library skips keys that no context maps. To find them, it gets the document with a vocabulary that marks them. No
// text that it gets otherwise has these characters.
const (
	mark     = "\x01:" // the vocabulary
	reserved = "\x02"  // in place of the "@" of keys that look like keywords
	relative = "\x03"  // ends a vocabulary that would be appended to another
)

// unmapped notes the keys that no context maps.
func (m *maker) unmapped(value any, o *ld.JsonLdOptions) {
	type found struct{ name, pointer, key string }
	var all []found
	lost := map[string]bool{} // pointers of the keys
	own := o.Copy()
	own.ExpandContext = map[string]any{"@vocab": mark}
	own.ExpandedElementHandler = func(pointer string, expanded any) {
		node := expanded.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(node)) {
			name, ok := dropped(key)
			switch {
			case !ok:
			case len(all) == mostNamed:
				m.more[rdf.UnmappedKeys]++
			default:
				all = append(all, found{m.d.nameOf(node), pointer, name})
				lost[pointer+"/"+token.Replace(name)] = true
			}
		}
	}
	// The values below a key that is passed over may be no JSON-LD.
	value, _ = marked(value, false)
	if _, err := expand(value, own); err != nil {
		delete(m.more, rdf.UnmappedKeys)
		m.lost = append(m.lost, loss{rule: rdf.UnmappedKeys, reason: "a key is left out", named: "the document"})
		return
	}
	for _, f := range all {
		if within(f.pointer, lost) {
			continue
		}
		key := fmt.Sprintf("%.100q", plain(f.key))
		reason := "no context maps " + key + " to an IRI; it is left out"
		m.lost = append(m.lost, loss{rdf.UnmappedKeys, key, reason, f.name, original(f.pointer)})
	}
}

// dropped returns the key of a property, if no context maps the key.
func dropped(property string) (key string, ok bool) {
	if _, name, ok := strings.Cut(property, reserved); ok {
		return "@" + name, true
	}
	at := strings.LastIndex(property, mark)
	key = property[at+1:]
	return strings.TrimPrefix(key, mark[1:]), at >= 0 && !strings.Contains(key, relative)
}

// within reports whether a pointer leads below one of others.
func within(pointer string, others map[string]bool) bool {
	for i, c := range pointer {
		if c == '/' && others[pointer[:i]] {
			return true
		}
	}
	return others[pointer]
}

// marked returns a value with the vocabulary added to its contexts that have none. It copies only what changes.
func marked(value any, inContext bool) (now any, other bool) {
	switch v := value.(type) {
	case []any:
		all := make([]any, 0, len(v))
		for _, each := range v {
			each, changes := marked(each, inContext)
			if all = append(all, each); each == nil && inContext {
				all, changes = append(all, map[string]any{"@vocab": mark}), true
			}
			other = other || changes
		}
		if other {
			return all, true
		}
	case map[string]any:
		all := v
		for key, each := range v {
			vocab, isText := each.(string)
			name, changes := key, true
			switch {
			case key == "@context" && each == nil:
				each = []any{nil, map[string]any{"@vocab": mark}}
			case inContext && key == "@vocab" && each == nil:
				each = mark
			case inContext && key == "@vocab" && isText && !strings.Contains(vocab, ":"):
				each = vocab + relative
			default:
				if each, changes = marked(each, inContext || key == "@context"); !inContext && isReserved(key) {
					name, changes = reserved+key[1:], true
				}
			}
			if changes {
				if !other {
					all, other = maps.Clone(v), true
				}
				delete(all, key)
				all[name] = each
			}
		}
		return all, other
	}
	return value, false
}

// isReserved reports whether a key has the form of a keyword (JSON-LD 1.1 §1.7, Syntax Tokens and Keywords).
func isReserved(key string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return len(key) > 1 && key[0] == '@' && !ld.IsKeyword(key) && strings.Trim(strings.ToLower(key[1:]), letters) == ""
}

// free notes the values at the top of a document: they belong to no node.
func (m *maker) free(value any) {
	prefix, top := "/", value
	if v, ok := value.(map[string]any); ok {
		prefix, top = "/@graph/", v["@graph"]
	}
	members, _ := top.([]any)
	for i, each := range members {
		v, isObject := each.(map[string]any)
		_, isValue := v["@value"]
		_, isList := v["@list"]
		if _, isArray := each.([]any); each != nil && !isArray && (!isObject || isValue || isList) {
			const reason = "the value is none of a property of a node; it is left out"
			m.lost = append(m.lost, loss{rdf.FreeValues, "", reason, "the top of the document", fmt.Sprint(prefix, i)})
		}
	}
}
