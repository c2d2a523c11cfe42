package tmdm

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Statements are equal by the rules of ISO 13250-2 §5.4 to §5.8. Within one parent, those with equal keys are equal;
// keys are valid for the identities at the time when they are made.

type statementKey struct {
	value string
	kind  kind
}

func (n *TopicName) key() statementKey  { return statementKey{n.value, n.kind.settled()} }
func (v *Variant) key() statementKey    { return statementKey{v.value, v.kind.settled()} }
func (o *Occurrence) key() statementKey { return statementKey{o.value, o.kind.settled()} }

type roleKey struct{ typ, player *Topic }

func (r *AssociationRole) key() roleKey { return roleKey{r.Type(), r.Player()} }

// appendKey appends the properties that determine the equality of associations: type, scope and the set of (type,
// player) pairs.
func (a *Association) appendKey(key []byte) []byte {
	var few [8]uint64 // most associations have fewer roles
	pairs := few[:0]
	for _, r := range a.roles {
		pairs = append(pairs, uint64(r.Type().serial)<<32|uint64(r.Player().serial))
	}
	if len(pairs) == 2 {
		if pairs[0] > pairs[1] {
			pairs[0], pairs[1] = pairs[1], pairs[0]
		}
	} else {
		slices.Sort(pairs)
	}
	key = binary.BigEndian.AppendUint32(key, a.Type().serial)
	key = binary.BigEndian.AppendUint32(key, a.Scope().serial)
	for i, p := range pairs {
		if i == 0 || p != pairs[i-1] {
			key = binary.BigEndian.AppendUint64(key, p)
		}
	}
	return key
}

// distinctRoles returns the number of unequal roles in the key of an association.
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
