package pages

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// claims are the statements of a derived collection's inputs about a topic.
type claims struct {
	*merge.Claims          // nil: no claims
	inputs        []string // as claims name them; "" where the reader must not see one
}

// claims returns the claims of the inputs of a derived collection about a topic. Inputs that the request may not see
// have no names.
func (p *Pages) claims(r *http.Request, c *store.Collection, topic fragment.Ref,
	as ...fragment.Part) (made claims, err error) {
	claims, from, err := derive.ClaimsOf(r.Context(), p.Store, c, topic, as...)
	made.Claims = claims
	for _, in := range from {
		if in.Own && !p.MayRead(r, in.Name) {
			in.Name = ""
		}
		made.inputs = append(made.inputs, in.Name)
	}
	return made, err
}

// sayers maps each statement of a topic, by its content, to the inputs that state it.
type sayers map[string][]string

// sayersOf returns the inputs that state each statement of a topic of a derived collection; nil for other collections.
// It includes associations only if the page has all of them, because a topic may have very many.
func (d *describer) sayersOf(r *http.Request, t *fragment.Topic) (sayers, error) {
	c := &d.v.Collection
	if len(c.DerivedFrom) == 0 || d.past != nil {
		return nil, nil
	}
	var parts []fragment.Part
	for _, part := range []fragment.Part{fragment.AsInstance, fragment.AsPlayer} {
		n := 0
		for _, err := range d.v.State().AssociationsAfter(t.TopicSI(), part, nil) {
			if err != nil {
				return nil, err
			}
			if n++; n > most {
				break
			}
		}
		if n > 0 && n <= most {
			parts = append(parts, part)
		}
	}
	claimed, err := d.claims(r, c, t.TopicSI(), parts...)
	if err != nil || claimed.Claims == nil {
		return nil, err
	}
	by := sayers{}
	for _, l := range claimed.SubjectIdentifiers {
		by.add(keyOf("si", string(l.Value), "", "", nil), claimed.names(l.By))
	}
	for _, l := range claimed.SubjectLocators {
		by.add(keyOf("sl", string(l.Value), "", "", nil), claimed.names(l.By))
	}
	as := published{d: d, known: map[fragment.Ref]fragment.Ref{}}
	for _, n := range claimed.Names {
		key := keyOf("name", n.Value.Value, "", as.ref(n.Value.Type), as.refs(n.Value.Scope))
		by.add(key, claimed.names(n.By))
		for _, v := range n.Variants {
			by.add(key+keyOf("variant", v.Value.Value, v.Value.Datatype, "", as.refs(v.Value.Scope)), claimed.names(v.By))
		}
	}
	for _, o := range claimed.Occurrences {
		by.add(keyOf("occurrence", o.Value.Value, o.Value.Datatype, as.ref(o.Value.Type), as.refs(o.Value.Scope)),
			claimed.names(o.By))
	}
	for _, a := range claimed.Associations {
		made := fragment.Association{Type: as.ref(a.Value.Type), Scope: as.refs(a.Value.Scope)}
		for _, role := range a.Value.Roles {
			made.Roles = append(made.Roles, fragment.Role{Type: as.ref(role.Type), Player: as.ref(role.Player)})
		}
		made.Canonical()
		by.add(associationKey(&made), claimed.names(a.By))
	}
	return by, as.err
}

func (s sayers) add(key string, names []string) { s[key] = append(s[key], names...) }

// names are those of inputs that may be seen.
func (c *claims) names(by []int) (names []string) {
	for _, i := range by {
		if c.inputs[i] != "" {
			names = append(names, c.inputs[i])
		}
	}
	return names
}

// keyOf returns the key of a statement among those of its topic. A scope is sorted.
func keyOf(kind, value, datatype string, typ fragment.Ref, scope []fragment.Ref) string {
	parts := []string{kind, value, datatype, string(typ)}
	for _, theme := range scope {
		parts = append(parts, string(theme))
	}
	return strings.Join(parts, "\x00") + "\x01"
}

func nameKey(n *fragment.Name) string { return keyOf("name", n.Value, "", n.Type, n.Scope) }

func variantKey(n *fragment.Name, v *fragment.Variant) string {
	return nameKey(n) + keyOf("variant", v.Value, v.Datatype, "", v.Scope)
}

func occurrenceKey(o *fragment.Occurrence) string {
	return keyOf("occurrence", o.Value, o.Datatype, o.Type, o.Scope)
}

func associationKey(a *fragment.Association) string {
	key := a.Key()
	return "association" + string(key[:])
}

// published finds the references of a collection for topics of the merged view, because both may have chosen another
// identifier of a topic.
type published struct {
	d     *describer
	known map[fragment.Ref]fragment.Ref
	err   error
}

func (p *published) ref(ref fragment.Ref) fragment.Ref {
	if own, ok := p.known[ref]; ok || ref == "" {
		return own
	}
	own := ref
	t, err := p.d.v.Source().Topic(ref)
	if t != nil {
		own = t.TopicSI()
	}
	if err != nil {
		p.err = err
	}
	p.known[ref] = own
	return own
}

func (p *published) refs(refs []fragment.Ref) (all []fragment.Ref) {
	for _, ref := range refs {
		all = append(all, p.ref(ref))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// writeDerived answers with the page of a topic of a derived collection. The sources of a statement may change while
// the statement does not, and depend on the reader's rights. So the page has no tag of the state.
func (p *Pages) writeDerived(w http.ResponseWriter, r *http.Request, v *store.View,
	build func() (*page, error)) error {
	web.RecorderOf(r).Private = true
	made, err := build()
	if err == nil {
		err = p.framed(r, v, made)
	}
	if err != nil {
		return err
	}
	return p.writeEachTime(w, r, "topic", made)
}
