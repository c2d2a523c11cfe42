package tmdm

import "cmp"

// kind holds the properties that many statements share: their type, their scope and the datatype of their value. A map
// has one kind for each combination, so a statement needs one pointer for all three. A statement with rare properties
// has its own kind, which contains them.
type kind struct {
	typ      *Topic // nil for variants
	scope    *Scope
	datatype string   // "" for names and associations
	own      *details // of the only statement with this kind; nil where many share it
	removed  bool     // the mark of associations that were removed
}

// valueKind is kind for statements with a value that has a datatype. An empty
// one is that of strings (ISO 13250-2 §5.5, §5.6: every value has a datatype).
func (tm *TopicMap) valueKind(typ *Topic, scope *Scope, datatype string) *kind {
	return tm.kind(typ, scope, cmp.Or(datatype, XSDString))
}

func (tm *TopicMap) kind(typ *Topic, scope *Scope, datatype string) *kind {
	k := kind{typ: typ, scope: scope, datatype: datatype}
	// The kind made last is likely to be needed again.
	last := &tm.lastKinds[tm.kindSlot(typ, scope)]
	if *last != nil && **last == k {
		return *last
	}
	known, ok := tm.kinds[k]
	if !ok {
		known = &k
		tm.kinds[k] = known
	}
	*last = known
	return known
}

// kindSlot picks one of lastKinds.
func (tm *TopicMap) kindSlot(typ *Topic, scope *Scope) uint32 {
	slot := scope.serial
	if typ != nil {
		slot += typ.serial * 7
	}
	return slot % uint32(len(tm.lastKinds))
}

// settled returns k with merged topics replaced, and without rare properties.
func (k *kind) settled() kind {
	return kind{typ: k.typ.live(), scope: k.scope.live(), datatype: k.datatype}
}
