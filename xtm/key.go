package xtm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// The keys below contain the properties that determine the equality of statements. Statements without an id get a hash
// of them as their id, so that it does not depend on the position of the statement.

func (n *Name) key(t *Topic) string {
	return quoted("name", t.self().key(), n.Value, n.Type.key()) + " " + keys(n.Scope)
}

func (v *Variant) key() string {
	return quoted("variant", v.Value, cmp.Or(v.Datatype, tmdm.XSDString)) + " " + keys(v.Scope)
}

func (o *Occurrence) key(t *Topic) string {
	return quoted("occurrence", t.self().key(), o.Value, cmp.Or(o.Datatype, tmdm.XSDString), o.Type.key()) + " " +
		keys(o.Scope)
}

func (a *Association) key() string {
	roles := make([]string, len(a.Roles))
	for i := range a.Roles {
		roles[i] = a.Roles[i].key()
	}
	slices.Sort(roles)
	return quoted("association", a.Type.key()) + " " + keys(a.Scope) + " [" + strings.Join(roles, " ") + "]"
}

func (r *Role) key() string { return quoted("role", r.Type.key(), r.Player.key()) }

func (r Ref) key() string { return strconv.Itoa(int(r.Kind)) + " " + string(r.Locator) }

func keys(refs []Ref) string {
	k := make([]string, len(refs))
	for i, r := range refs {
		k[i] = r.key()
	}
	slices.Sort(k)
	for i := range k {
		k[i] = strconv.Quote(k[i])
	}
	return "[" + strings.Join(k, " ") + "]"
}

// quoted returns kind and the parts, quoted so that the result is unambiguous.
func quoted(kind string, parts ...string) string {
	b := []byte(kind)
	for _, p := range parts {
		b = strconv.AppendQuote(append(b, ' '), p)
	}
	return string(b)
}
