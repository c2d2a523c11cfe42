package tmdm

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Scope is a set of topics, the themes, within which a statement is valid
// (ISO 13250-2 §5.3.3, Scope). Scopes are immutable and shared: a map has one
// Scope for each set of themes, so that equal scopes are equal pointers.
type Scope struct {
	tm     *TopicMap
	themes []*Topic // in order of creation, without repetition
	serial uint32
}

// Themes returns the topics of s in order of their creation; none is the unconstrained scope. Callers must not change
// the slice.
func (s *Scope) Themes() []*Topic { return s.live().themes }

// Contains reports whether every theme of other is one of s.
func (s *Scope) Contains(other *Scope) bool { return s.containsAll(other.Themes()) }

func (s *Scope) containsAll(topics []*Topic) bool {
	themes := s.Themes()
	for _, t := range topics {
		if !slices.Contains(themes, t.live()) {
			return false
		}
	}
	return true
}

// Scope returns the scope of the given themes.
func (tm *TopicMap) Scope(themes ...*Topic) *Scope {
	if len(themes) == 0 {
		return tm.unconstrained
	}
	if len(themes) == 1 {
		t := tm.mustUse(themes[0])
		last := &tm.lastScopes[t.serial%uint32(len(tm.lastScopes))]
		if *last == nil || (*last).themes[0] != t {
			*last = tm.scopeOf([]*Topic{t})
		}
		return *last
	}
	set := make([]*Topic, len(themes))
	for i, t := range themes {
		set[i] = tm.mustUse(t)
	}
	return tm.scopeOf(set)
}

// scopeOf is Scope for topics that are not merged. It changes and keeps set.
func (tm *TopicMap) scopeOf(set []*Topic) *Scope {
	slices.SortFunc(set, func(a, b *Topic) int { return cmp.Compare(a.serial, b.serial) })
	set = slices.Compact(set)
	key := make([]byte, 0, 4*len(set))
	for _, t := range set {
		key = binary.BigEndian.AppendUint32(key, t.serial)
	}
	if s, ok := tm.scopes[string(key)]; ok {
		return s
	}
	s := &Scope{tm: tm, themes: set, serial: uint32(len(tm.scopes)) + 1}
	tm.scopes[string(key)] = s
	return s
}

// live returns the scope that s has become since themes of it were merged.
func (s *Scope) live() *Scope {
	for _, t := range s.themes {
		if t.mergedInto.Load() != nil {
			return s.tm.Scope(s.themes...)
		}
	}
	return s
}
