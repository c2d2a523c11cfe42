package jsonld

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The library resolves IRIs with package net/url, which escapes some of their characters, and rejects others. So it
// gets texts in which the number of each, between tildes, replaces it. An empty fragment is two tildes.

const emptyFragment = "~~"

func isPlain(r rune) bool { return r > ' ' && r < 0x7F && !strings.ContainsRune("~%<>\"{}|^`\\", r) }

// escape returns a text as the library gets it.
func escape(s string) string {
	if s == "#" {
		return s + emptyFragment
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return !isPlain(r) }) {
		return withoutDots(s)
	}
	var b strings.Builder
	for _, r := range s {
		if isPlain(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "~%x~", r)
		}
	}
	return withoutDots(b.String())
}

var escapes = regexp.MustCompile("~[0-9a-fA-F]*~")

// plain returns the text that escape has changed into this one, or into one that contains parts of this one.
func plain(s string) string {
	if !strings.Contains(s, "~") {
		return s
	}
	return escapes.ReplaceAllStringFunc(s, func(e string) string {
		n, err := strconv.ParseUint(e[1:len(e)-1], 16, 32)
		if err != nil {
			return "" // an empty fragment
		}
		return string(rune(n))
	})
}

// changed returns a value with all texts, including keys, replaced by the results of a function. It copies only what
// changes.
func changed(value any, text func(string) string) any {
	now, _ := rewritten(value, text)
	return now
}

func rewritten(value any, text func(string) string) (now any, other bool) {
	switch v := value.(type) {
	case string:
		s := text(v)
		return s, s != v
	case []any:
		for i, each := range v {
			if each, changes := rewritten(each, text); changes {
				if !other {
					v, other = slices.Clone(v), true
				}
				v[i] = each
			}
		}
		return v, other
	case map[string]any:
		all := v
		for key, each := range v {
			each, changes := rewritten(each, text)
			if name := text(key); changes || name != key {
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

// canonical returns the JSON of a value: keys in order, no white space (RFC 8785, JSON Canonicalization Scheme).
func canonical(value any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // it was JSON
	return strings.TrimSuffix(b.String(), "\n")
}
