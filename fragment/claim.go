package fragment

import (
	"crypto/sha256"

	"github.com/tmshare/tmshare/tmdm"
)

// A claim is an item identifier that begins with a source's prefix: it says that
// the source asserts the statement. Where a document gives a statement none, it
// is sp and a hash of what makes the statement equal to another, topics
// represented by their references. It is made when a map is exported, never
// stored, compared or digested.

// NameClaim returns the claim for a name of topic.
func NameClaim(sp string, topic Ref, n *Name) tmdm.Locator {
	var buffer claimBuffer
	return claim(sp, "name", appendName(buffer[:0], topic, n))
}

// VariantClaim returns the claim for a variant of a name of topic.
func VariantClaim(sp string, topic Ref, n *Name, v *Variant) tmdm.Locator {
	var buffer claimBuffer
	e := appendName(buffer[:0], topic, n)
	e.text(v.Value)
	e.text(datatype(v.Datatype))
	e.locators(v.Scope)
	return claim(sp, "variant", e)
}

// OccurrenceClaim returns the claim for an occurrence of topic.
func OccurrenceClaim(sp string, topic Ref, o *Occurrence) tmdm.Locator {
	var buffer claimBuffer
	e := encoder(buffer[:0])
	e.text(string(topic))
	e.text(o.Value)
	e.text(datatype(o.Datatype))
	e.text(string(o.Type))
	e.locators(o.Scope)
	return claim(sp, "occurrence", e)
}

// AssociationClaim returns the claim for an association.
func AssociationClaim(sp string, a *Association) tmdm.Locator {
	key := a.Key()
	return claim(sp, "association", key[:])
}

func appendName(e encoder, topic Ref, n *Name) encoder {
	e.text(string(topic))
	e.text(n.Value)
	e.text(string(n.Type))
	e.locators(n.Scope)
	return e
}

// claimBuffer has space for most keys of claims, on the stack: there is a claim for each statement of a map.
type claimBuffer [512]byte

func claim(sp, kind string, key encoder) tmdm.Locator {
	sum := sha256.Sum256(key)
	var name [26]byte
	base32lower.Encode(name[:], sum[:16])
	return tmdm.Locator(sp + kind + "-" + string(name[:]))
}
