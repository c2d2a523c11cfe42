package fragment

import (
	"crypto/sha256"

	"github.com/tmshare/tmshare/tmdm"
)

// A claim is an item identifier that begins with a source's prefix: the source asserts the statement with it. If a
// document gives a statement none, its claim is sp and a hash of the properties that determine the statement's
// equality, with topics as their references. It is made when a map is exported, and never stored, compared or digested.

// NameClaim returns the claim for a name of topic.
func NameClaim(sp string, topic Ref, n *Name) tmdm.Locator {
	return claim(sp, "name", func(e *encoder) { e.name(topic, n) })
}

// VariantClaim returns the claim for a variant of a name of topic.
func VariantClaim(sp string, topic Ref, n *Name, v *Variant) tmdm.Locator {
	return claim(sp, "variant", func(e *encoder) {
		e.name(topic, n)
		e.text(v.Value)
		e.text(datatype(v.Datatype))
		e.locators(v.Scope)
	})
}

// OccurrenceClaim returns the claim for an occurrence of topic.
func OccurrenceClaim(sp string, topic Ref, o *Occurrence) tmdm.Locator {
	return claim(sp, "occurrence", func(e *encoder) {
		e.text(string(topic))
		e.text(o.Value)
		e.text(datatype(o.Datatype))
		e.text(string(o.Type))
		e.locators(o.Scope)
	})
}

// AssociationClaim returns the claim for an association.
func AssociationClaim(sp string, a *Association) tmdm.Locator {
	return claim(sp, "association", func(e *encoder) {
		key := a.Key()
		*e = append(*e, key[:]...)
	})
}

func (e *encoder) name(topic Ref, n *Name) {
	e.text(string(topic))
	e.text(n.Value)
	e.text(string(n.Type))
	e.locators(n.Scope)
}

// claim returns the claim whose key appendKey appends.
func claim(sp, kind string, appendKey func(*encoder)) tmdm.Locator {
	scratch := scratches.Get().(*encoder)
	defer scratch.release()
	appendKey(scratch)
	sum := sha256.Sum256(*scratch)
	var name [26]byte
	base32lower.Encode(name[:], sum[:16])
	return tmdm.Locator(sp + kind + "-" + string(name[:]))
}
