package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client/reject"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rejections"
)

// rejected are the claims that a node rejects, by the name of the source and by their text.
type rejected map[string]map[string]rejections.Claim

func (r rejected) clone() rejected {
	out := rejected{}
	for name, all := range r {
		out[name] = maps.Clone(all)
	}
	return out
}

// rejectsSome makes a node reject a claim, preferably of an input of its derived collection.
func (n *node) rejectsSome() {
	switch {
	case n.derived != nil && len(n.derived.inputs) > 0 && n.w.chance(2):
		n.rejects(pick(n.w, n.derived.inputs))
	case len(n.follows) > 0:
		n.rejects(pick(n.w, n.follows))
	}
}

// rejects makes a node reject a claim of f, or revoke that, as a person names it.
func (n *node) rejects(f *followed) {
	all, find, change := n.claims(f), func(named reject.Named) ([]reject.Found, error) {
		found, _, err := reject.Stated(background, n.db, named)
		return found, err
	}, func(claims ...rejections.Claim) error {
		return n.db.Reject(background, f.name, "it is wrong", claims...)
	}
	back := n.w.chance(3)
	if back {
		all = slices.Collect(maps.Values(n.rejected[f.name]))
		find = func(named reject.Named) ([]reject.Found, error) { return reject.Rejected(background, n.db, named) }
		change = func(claims ...rejections.Claim) error { return n.db.Unreject(background, f.name, claims...) }
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b rejections.Claim) int { return cmp.Compare(text(&a), text(&b)) })
	c := pick(n.w, all)
	found, err := find(named(&c))
	n.w.must(err, "%s: finding the claim of %s: %s", n.name, f.name, text(&c))
	found = slices.DeleteFunc(found, func(o reject.Found) bool { return o.Own || o.Source != f.name })
	before, after := n.rejected, n.rejected.clone()
	if after[f.name] == nil {
		after[f.name] = map[string]rejections.Claim{}
	}
	var claims []rejections.Claim
	for i := range found {
		claims = append(claims, found[i].Claim)
		if what := text(&found[i].Claim); back {
			delete(after[f.name], what)
		} else {
			after[f.name][what] = found[i].Claim
		}
	}
	if _, ok := after[f.name][text(&c)]; ok == back {
		n.w.fail("%s: a claim of %s is not found by its name: %s", n.name, f.name, text(&c))
	}
	if n.w.chance(25) {
		n.disk.dieAfter(0, n.w.chance(2))
	}
	err = change(claims...)
	n.rejected = after
	if n.disk.stopped() {
		n.w.counts.crashes++
		n.restart("has crashed while it rejected something")
		if !n.rejectsAll(f.name, after) {
			n.rejected = before
		}
		return
	}
	n.disk.dieAfter(-1, false)
	n.w.must(err, "%s: rejecting", n.name)
	n.w.counts.rejections++
	n.w.say("%s rejects of %s, taken back: %t: %s", n.name, f.name, back, text(&c))
}

// claims returns the claims of f that the node holds.
func (n *node) claims(f *followed) (claims []rejections.Claim) {
	n.parts(func(p *store.Part) {
		if p.Own || p.Name != f.name {
			return
		}
		s := n.w.read(p.SP, all(p.Source))
		for _, t := range s.topics {
			claims = slices.AppendSeq(claims, rejections.OfTopic(t))
		}
		for _, a := range s.associations {
			claims = append(claims, rejections.OfAssociation(a))
		}
	})
	return claims
}

// named is how a person names a claim.
func named(c *rejections.Claim) reject.Named {
	n := reject.Named{Kind: c.Kind, Topic: string(c.Topic), Value: c.Value, Type: string(c.Type), Datatype: c.Datatype}
	if c.Of != nil {
		n.Of = c.Of.Value
	}
	for _, theme := range c.Scope {
		n.Scope = append(n.Scope, string(theme))
	}
	for _, r := range c.Roles {
		n.Roles = append(n.Roles, [2]string{string(r.Type), string(r.Player)})
	}
	return n
}

// rejectsAll reports whether a node rejects exactly the expected claims of a source.
func (n *node) rejectsAll(name string, want rejected) bool {
	all, err := n.db.Rejections(background, name)
	n.w.must(err, "%s: reading what is rejected of %s", n.name, name)
	for i := range all {
		if _, ok := want[name][text(&all[i].Claim)]; !ok {
			return false
		}
	}
	return len(all) == len(want[name])
}

// The oracle's model of rejections: a rejected claim of a source is removed. Claims are identified by their text, with
// the references of the source.

func text(c *rejections.Claim) string {
	owner := ""
	if c.Of != nil {
		owner = text(c.Of)
	}
	if c.Kind == rejections.Identifier {
		return inOrder([]string{string(c.Topic), c.Value})
	}
	var roles []string
	for _, r := range c.Roles {
		roles = append(roles, string(r.Type)+":"+string(r.Player))
	}
	return fmt.Sprintf("%s of %s type %s scope %s: %q^^%s %s %s", c.Kind, c.Topic, c.Type, refs(c.Scope), c.Value, c.Datatype, inOrder(roles), owner)
}

func refs(all []fragment.Ref) string {
	var out []string
	for _, ref := range all {
		out = append(out, string(ref))
	}
	return inOrder(out)
}

// size returns the number of statements and identifiers.
func (s assertions) size() int {
	n := len(s.associations)
	for _, t := range s.topics {
		n += len(t.SubjectIdentifiers) + len(t.SubjectLocators) + len(t.Names) + len(t.Occurrences)
		for i := range t.Names {
			n += len(t.Names[i].Variants)
		}
	}
	return n
}

// less returns the content without the rejected claims.
func (s assertions) less(all map[string]rejections.Claim) assertions {
	if len(all) == 0 {
		return s
	}
	stays := func(c rejections.Claim) bool { _, ok := all[text(&c)]; return !ok }
	left := assertions{sp: s.sp}
	for _, t := range s.topics {
		topic, ref := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: t.SubjectIdentifiers[:1:1]}}, t.TopicSI()
		for _, si := range t.SubjectIdentifiers[1:] {
			if stays(rejections.Claim{Kind: rejections.Identifier, Topic: ref, Value: string(si)}) {
				topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, si)
			}
		}
		for _, sl := range t.SubjectLocators {
			if stays(rejections.Claim{Kind: rejections.Locator, Topic: ref, Value: string(sl)}) {
				topic.SubjectLocators = append(topic.SubjectLocators, sl)
			}
		}
		for _, name := range t.Names {
			claim := rejections.Claim{Kind: rejections.Name, Topic: ref, Value: name.Value, Type: name.Type, Scope: name.Scope}
			if !stays(claim) {
				continue
			}
			var variants []fragment.Variant
			for _, v := range name.Variants {
				if stays(rejections.Claim{Kind: rejections.Variant, Topic: ref, Value: v.Value, Datatype: v.Datatype, Scope: v.Scope, Of: &claim}) {
					variants = append(variants, v)
				}
			}
			name.Variants = variants
			topic.Names = append(topic.Names, name)
		}
		for _, o := range t.Occurrences {
			if stays(rejections.Claim{Kind: rejections.Occurrence, Topic: ref, Value: o.Value, Datatype: o.Datatype, Type: o.Type, Scope: o.Scope}) {
				topic.Occurrences = append(topic.Occurrences, o)
			}
		}
		left.topics = append(left.topics, topic)
	}
	for _, a := range s.associations {
		claim := rejections.Claim{Kind: rejections.Association, Type: a.Type, Scope: a.Scope}
		for i := range a.Roles {
			claim.Roles = append(claim.Roles, rejections.Role{Type: a.Roles[i].Type, Player: a.Roles[i].Player})
		}
		if stays(claim) {
			left.associations = append(left.associations, a)
		}
	}
	return left
}
