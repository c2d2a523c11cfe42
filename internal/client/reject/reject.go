// Package reject finds claims of sources by name, to reject them or to withdraw their rejections.
package reject

import (
	"context"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Named is a claim as a person names it: topics by any of their subject identifiers in the merged view.
type Named struct {
	Kind     rejections.Kind
	Topic    string // its topic; none of an association
	Value    string
	Of       string      // the value of the name that a variant is of
	Type     string      // "": any, but of an association
	Datatype string      // "": any
	Scope    []string    // all themes
	Roles    [][2]string // of an association: types and players
}

// Found is a claim of a source.
type Found struct {
	Source string           `json:"source"`
	Own    bool             `json:"-"` // of a collection of this node
	Claim  rejections.Claim `json:"claim"`
}

// Stated returns the claims of all sources that n names, including rejected ones. near are claims with the same value
// about the same topic whose types, datatypes or scopes differ.
func Stated(ctx context.Context, from *store.DB, n Named) (found, near []Found, err error) {
	var calls error
	err = read(ctx, from, n, func(p store.Part, m *matcher) error {
		return m.candidates(p.All, func(c rejections.Claim) {
			switch f := (Found{p.Name, p.Own, c}); {
			case m.matches(&c):
				found = append(found, f)
			case m.about(&c):
				near = append(near, f)
			}
		}, func(t *fragment.Topic) {
			calls = fmt.Errorf(
				"%s calls the topic %s, so that this identifier cannot be rejected. Reject those of its other identifiers that "+
					"are wrong: %s",
				p.Name, t.TopicSI(), joined(t.SubjectIdentifiers[1:]))
		})
	})
	if err == nil && len(found) == 0 {
		err = calls
	}
	return found, near, err
}

// Rejected returns the claims that n names and that are rejected, whether they are still stated or not.
func Rejected(ctx context.Context, from *store.DB, n Named) (found []Found, err error) {
	err = read(ctx, from, n, func(p store.Part, m *matcher) error {
		r, ok := p.Source.(*rejections.Source)
		if !ok {
			return nil
		}
		for _, one := range r.Rejections() {
			if m.matches(&one.Claim) {
				found = append(found, Found{p.Name, p.Own, one.Claim})
			}
		}
		return nil
	})
	return found, err
}

// read calls f with each part of the merged view.
func read(ctx context.Context, from *store.DB, n Named, f func(store.Part, *matcher) error) error {
	return from.ReadParts(ctx, func(all []store.Part) error {
		var parts []merge.Part
		for _, p := range all {
			parts = append(parts, merge.Part{Name: p.Name, SP: p.SP, Source: p.Source, Published: p.Own})
		}
		m := &matcher{view: merge.NewView(ctx, parts...)}
		if err := m.take(n, all); err != nil {
			return err
		}
		for _, p := range all {
			if err := f(p, m); err != nil {
				return err
			}
			if m.err != nil {
				return m.err
			}
		}
		return nil
	})
}

// matcher compares claims with the one that is named. All its references are TopicSIs of the merged view.
type matcher struct {
	view *merge.View
	err  error // of the view

	kind         rejections.Kind
	topic, given fragment.Ref // given: the identifier by which the topic was named
	value, owner string
	datatypes    []tmdm.Locator // possible ones; none: any
	typ          fragment.Ref
	scope        []fragment.Ref
	roles        []rejections.Role
	identifiers  []tmdm.Locator // of the topic, or of the player whose associations are read
}

func (m *matcher) take(n Named, sources []store.Part) (err error) {
	m.kind, m.value, m.owner = n.Kind, n.Value, n.Of
	meant := func(s string) []tmdm.Locator {
		all, bad := tmdm.Named(s)
		if bad != nil && err == nil {
			err = cli.UsageError(
				fmt.Errorf("%q is no subject identifier: %w. Give an absolute IRI, as \"topic\" shows it", s, bad))
		}
		return all
	}
	named := func(s string) (ref fragment.Ref) {
		for _, ref = range meant(s) {
			for _, p := range sources { // including rejected claims
				t, bad := p.All.Topic(ref)
				if err = first(err, bad); t != nil {
					return ref
				}
			}
		}
		return ref
	}
	if n.Kind == rejections.Identifier || n.Kind == rejections.Locator || n.Datatype == tmdm.XSDAnyURI {
		m.value = string(named(n.Value))
	}
	if n.Datatype != "" {
		m.datatypes = meant(n.Datatype)
	}
	if n.Type != "" {
		m.typ = m.resolve(named(n.Type))
	}
	for _, theme := range n.Scope {
		m.scope = append(m.scope, named(theme))
	}
	m.scope = m.resolved(m.scope)
	for _, r := range n.Roles {
		m.roles = append(m.roles, rejections.Role{Type: named(r[0]), Player: named(r[1])})
	}
	about := fragment.Ref("")
	if n.Kind == rejections.Association {
		m.roles = m.resolvedRoles(m.roles)
		about = m.reader()
	} else {
		m.given = named(n.Topic)
		m.topic = m.resolve(m.given)
		about = m.topic
	}
	if err != nil || m.err != nil {
		return first(err, m.err)
	}
	id, err := m.view.Identity(about)
	m.identifiers = []tmdm.Locator{about}
	if id != nil {
		m.identifiers = id.SubjectIdentifiers
	}
	return err
}

func joined(all []tmdm.Locator) string {
	if len(all) == 0 {
		return "it has none"
	}
	list := all[0].String()
	for _, l := range all[1:] {
		list += ", " + l.String()
	}
	return list
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// reader returns the player of the association whose associations are read: the instance, if any, because a class may
// have many.
func (m *matcher) reader() fragment.Ref {
	for _, r := range m.roles {
		if r.Type == tmdm.PSIInstance {
			return r.Player
		}
	}
	return m.roles[0].Player
}

// resolve returns the TopicSI in the merged view of the topic that a reference denotes.
func (m *matcher) resolve(ref fragment.Ref) fragment.Ref {
	if m.err != nil || ref == "" {
		return ref
	}
	id, err := m.view.Identity(ref)
	if id == nil || err != nil {
		m.err = err
		return ref
	}
	return id.TopicSI()
}

func (m *matcher) resolved(refs []fragment.Ref) []fragment.Ref {
	var out []fragment.Ref
	for _, ref := range refs {
		out = append(out, m.resolve(ref))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (m *matcher) resolvedRoles(roles []rejections.Role) []rejections.Role {
	var out []rejections.Role
	for _, r := range roles {
		out = append(out, rejections.Role{Type: m.resolve(r.Type), Player: m.resolve(r.Player)})
	}
	slices.SortFunc(out, func(a, b rejections.Role) int {
		return slices.Compare([]fragment.Ref{a.Type, a.Player}, []fragment.Ref{b.Type, b.Player})
	})
	return out
}

// candidates calls f with the claims of a source that may be the named one, and calls with a record whose TopicSI is
// the named identifier.
func (m *matcher) candidates(src fragment.Source, f func(rejections.Claim), calls func(*fragment.Topic)) error {
	if m.kind == rejections.Association {
		return m.associations(src, f)
	}
	seen := map[fragment.Ref]bool{}
	for _, si := range append(slices.Clone(m.identifiers), m.given) {
		t, err := src.Topic(si)
		if err != nil {
			return err
		}
		if t == nil || seen[t.TopicSI()] {
			continue
		}
		seen[t.TopicSI()] = true
		if m.kind == rejections.Identifier && string(t.TopicSI()) == m.value {
			if c, ok := m.renamed(t); ok {
				f(c)
			} else {
				calls(t)
			}
			continue
		}
		for c := range rejections.OfTopic(t) {
			if c.Kind == m.kind {
				f(c)
			}
		}
	}
	return nil
}

// renamed returns the claim that the TopicSI of a record is an identifier of the topic as it was named: the same
// as that the name is one of the TopicSI's topic.
func (m *matcher) renamed(t *fragment.Topic) (rejections.Claim, bool) {
	ok := m.given != t.TopicSI() && slices.Contains(t.SubjectIdentifiers, m.given)
	return rejections.OfIdentifier(t.TopicSI(), m.given), ok
}

func (m *matcher) associations(src fragment.Source, f func(rejections.Claim)) error {
	seen := map[fragment.AssociationKey]bool{}
	for _, si := range m.identifiers {
		for _, part := range fragment.Parts {
			for a, err := range src.AssociationsOf(si, part) {
				if err != nil {
					return err
				}
				if c := rejections.OfAssociation(a); len(a.Roles) == len(m.roles) && m.resolve(a.Type) == m.typ && !seen[a.Key()] {
					seen[a.Key()] = true
					f(c)
				}
			}
		}
	}
	return nil
}

// about reports whether a claim has the topic and the value that are named.
func (m *matcher) about(c *rejections.Claim) bool {
	switch {
	case c.Kind != m.kind:
		return false
	case c.Kind == rejections.Association:
		return slices.Equal(m.resolvedRoles(c.Roles), m.roles) && m.resolve(c.Type) == m.typ
	case c.Kind == rejections.Identifier:
		return m.resolve(c.Topic) == m.topic && c.Value == m.value || m.resolve(fragment.Ref(c.Value)) == m.topic &&
			string(c.Topic) == m.value
	case c.Kind == rejections.Variant && !rejections.IsValue(c.Of.Value, m.owner):
		return false
	}
	return m.resolve(c.Topic) == m.topic && rejections.IsValue(c.Value, m.value)
}

// matches reports whether a claim is the one that is named.
func (m *matcher) matches(c *rejections.Claim) bool {
	if !m.about(c) {
		return false
	}
	if c.Kind == rejections.Identifier || c.Kind == rejections.Locator {
		return true
	}
	return (m.typ == "" || m.resolve(c.Type) == m.typ) &&
		(m.datatypes == nil || slices.Contains(m.datatypes, tmdm.Locator(c.Datatype))) &&
		slices.Equal(m.resolved(c.Scope), m.scope)
}
