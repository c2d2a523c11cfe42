package sim

import (
	"bytes"
	"fmt"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// own requires that a node publishes the map of its editor.
func (n *node) own() {
	tm, err := xtm.Read(background, bytes.NewReader(n.document()), xtm.Options{Base: tmdm.Locator(n.sp())})
	n.w.must(err, "%s: reading the map of the editor", n.name)
	n.parts(func(p *store.Part) {
		if !p.Own || p.Name != n.name {
			return
		}
		m, err := fragment.NameTopics(background, tm, n.sp(), p.Source)
		n.w.must(err, "%s: naming the topics of the editor", n.name)
		n.w.same(union([]assertions{n.w.read(p.SP, m)}), union([]assertions{n.w.read(p.SP, p.Source)}), "%s: what it publishes", n.name)
	})
}

// merged requires that the merged view of a node is the merge of its own collection and of the followed ones, without
// the claims that it rejects.
func (n *node) merged() {
	want := union(n.brought())
	if want.disputed { // which statement the topic reifies then depends on the order
		n.w.counts.disputed++
		return
	}
	n.w.counts.compared++
	tm, conflicts, err := merged.View{Store: n.db, Report: func(string) {}}.Map(background, false)
	n.w.must(err, "%s: its merged view", n.name)
	if conflicts > 0 {
		n.w.fail("%s: its merged view has %d conflicts", n.name, conflicts)
	}
	n.w.sameSets(want.all(), seen(tm), "the merged view of %s", n.name)
}

// brought returns the collections that a node merges, without the claims that it rejects.
func (n *node) brought() []assertions {
	all := []assertions{n.published(n.name)}
	for _, f := range n.follows {
		s := n.assertions(f)
		left := s.less(n.rejected[f.name])
		n.w.counts.hidden += s.size() - left.size()
		all = append(all, left)
	}
	return all
}

// assertions returns the origin's content of f, or the node's if no path leads to the origin.
func (n *node) assertions(f *followed) assertions {
	if f.origin.dead || f.unreachable() {
		return n.held(f)
	}
	return f.origin.published(f.name)
}

// seen returns the statements of a topic map in the form of the oracle.
func seen(tm *tmdm.TopicMap) map[string]bool {
	all := map[string]bool{}
	for t := range tm.Topics() {
		identifiers := []string{}
		for _, l := range t.SubjectIdentifiers() {
			identifiers = append(identifiers, si(l))
		}
		for _, l := range t.SubjectLocators() {
			identifiers = append(identifiers, sl(l))
		}
		text := inOrder(identifiers)
		all["topic "+least(t)+" "+text] = true
		subject := "<" + least(t) + ">"
		for _, n := range t.Names() {
			name := fmt.Sprintf("name of %s type %s scope %s: %q", subject, called(n.Type()), themes(n.Scope()), n.Value())
			all[name+reifier(n)] = true
			for _, v := range n.Variants() {
				kind := variantKind(themes(v.Scope()), themes(n.Scope()))
				all[fmt.Sprintf("%s scope %s: %q^^%s of %s%s", kind, themes(v.Scope()), v.Value(), v.Datatype(), name, reifier(v))] = true
			}
		}
		for _, o := range t.Occurrences() {
			all[fmt.Sprintf("occurrence of %s type %s scope %s: %q^^%s%s", subject, called(o.Type()), themes(o.Scope()), o.Value(), o.Datatype(), reifier(o))] = true
		}
	}
	for a := range tm.Associations() {
		var roles []string
		for _, r := range a.Roles() {
			roles = append(roles, called(r.Type())+":"+called(r.Player()))
		}
		association := fmt.Sprintf("association type %s scope %s %s", called(a.Type()), themes(a.Scope()), inOrder(roles))
		all[association+reifier(a)] = true
		for _, r := range a.Roles() {
			all[fmt.Sprintf("role %s:%s of %s%s", called(r.Type()), called(r.Player()), association, reifier(r))] = true
		}
	}
	return all
}

// least is the least subject identifier of a topic, by which the oracle calls its class.
func least(t *tmdm.Topic) string {
	name := ""
	for _, l := range t.SubjectIdentifiers() {
		if name == "" || si(l) < name {
			name = si(l)
		}
	}
	return name
}

func called(t *tmdm.Topic) string { return "<" + least(t) + ">" }

func themes(s *tmdm.Scope) string {
	var all []string
	for _, t := range s.Themes() {
		all = append(all, called(t))
	}
	return inOrder(all)
}

func reifier(c tmdm.Reifiable) string {
	if r := c.Reifier(); r != nil {
		return " reified by " + inOrder([]string{called(r)})
	}
	return ""
}
