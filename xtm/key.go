package xtm

import (
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// The keys below say what makes a statement equal to another. Ids of statements
// that have none are hashes of them, so that they do not depend on where the
// statement stands.

func (n *Name) key(t *Topic) string {
	return fmt.Sprintf("name %q %q %q %q", t.self().key(), n.Value, n.Type.key(), keys(n.Scope))
}

func (v *Variant) key() string {
	return fmt.Sprintf("variant %q %q %q", v.Value, v.Datatype, keys(v.Scope))
}

func (o *Occurrence) key(t *Topic) string {
	return fmt.Sprintf("occurrence %q %q %q %q %q", t.self().key(), o.Value, o.Datatype, o.Type.key(), keys(o.Scope))
}

func (a *Association) key() string {
	roles := make([]string, len(a.Roles))
	for i := range a.Roles {
		roles[i] = a.Roles[i].key()
	}
	slices.Sort(roles)
	return fmt.Sprintf("association %q %q %s", a.Type.key(), keys(a.Scope), roles)
}

func (r *Role) key() string { return fmt.Sprintf("role %q %q", r.Type.key(), r.Player.key()) }

func (r Ref) key() string { return fmt.Sprintf("%d %s", r.Kind, r.Locator) }

func keys(refs []Ref) []string {
	k := make([]string, len(refs))
	for i, r := range refs {
		k[i] = r.key()
	}
	slices.Sort(k)
	return k
}

// isLocator reports whether a value is an IRI that survives being written as a
// reference: one in the normal form of locators.
func isLocator(value, datatype string) bool {
	if datatype != tmdm.XSDAnyURI {
		return false
	}
	normal, err := iri.Normalize(value)
	return err == nil && normal == value
}
