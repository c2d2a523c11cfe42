package tmdm

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Statements are equal by the rules of ISO 13250-2 §5.4 to §5.8. Within one
// parent, those are equal whose keys are; keys hold for the identities as they
// are when they are made.

type statementKey struct {
	value, datatype string
	typ             *Topic
	scope           *Scope
}

func (n *TopicName) key() statementKey {
	return statementKey{value: n.value, typ: n.Type(), scope: n.Scope()}
}

func (v *Variant) key() statementKey {
	return statementKey{value: v.value, datatype: v.datatype, scope: v.Scope()}
}

func (o *Occurrence) key() statementKey {
	return statementKey{o.value, o.datatype, o.Type(), o.Scope()}
}

type roleKey struct{ typ, player *Topic }

func (r *AssociationRole) key() roleKey { return roleKey{r.Type(), r.Player()} }

// appendKey appends what makes associations equal: type, scope and the set of
// (type, player) pairs.
func (a *Association) appendKey(key []byte) []byte {
	pairs := make([]uint64, 0, 8) // most are short enough for the stack
	for _, r := range a.roles {
		pairs = append(pairs, uint64(r.Type().serial)<<32|uint64(r.Player().serial))
	}
	slices.Sort(pairs)
	key = binary.BigEndian.AppendUint32(key, a.Type().serial)
	key = binary.BigEndian.AppendUint32(key, a.Scope().serial)
	for _, p := range slices.Compact(pairs) {
		key = binary.BigEndian.AppendUint64(key, p)
	}
	return key
}

// distinctRoles returns how many unequal roles went into the key of an association.
func distinctRoles(key []byte) int { return len(key)/8 - 1 }

// Equal reports whether a and b are the same item, or statements, variants or
// roles that are equal and will be one after Normalize.
func Equal(a, b Reifiable) bool { return equalStatements(a, b) }

func equalStatements(a, b Reifiable) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *TopicName:
		b, ok := b.(*TopicName)
		return ok && a.key() == b.key() && a.Topic() == b.Topic()
	case *Variant:
		b, ok := b.(*Variant)
		return ok && a.key() == b.key() && equalStatements(a.name, b.name)
	case *Occurrence:
		b, ok := b.(*Occurrence)
		return ok && a.key() == b.key() && a.Topic() == b.Topic()
	case *Association:
		b, ok := b.(*Association)
		return ok && bytes.Equal(a.appendKey(nil), b.appendKey(nil))
	case *AssociationRole:
		b, ok := b.(*AssociationRole)
		return ok && a.key() == b.key() && equalStatements(a.assoc, b.assoc)
	}
	return false
}
