package xtm

import (
	"context"
	"errors"

	"github.com/tmshare/tmshare/tmdm"
)

// identity gives c, a statement or the map, its item identifiers, and notes its
// reifier for the end.
func (b *builder) identity(c tmdm.Reifiable, iids []tmdm.Locator, reifier Ref, pos Position) error {
	for _, l := range iids {
		id := identifier{c: c, loc: l, doc: b.doc, pos: pos}
		if tmdm.AddItemIdentifier(c, l) != nil {
			id.holder = b.tm.ConstructByItemIdentifier(l)
			b.clashes = append(b.clashes, id)
		} else if b.doc.version == V10 {
			b.ids10 = append(b.ids10, id)
		}
	}
	if reifier.IsZero() {
		return nil
	}
	t, err := b.ref(reifier, pos)
	if err == nil {
		b.reified = append(b.reified, reification{c, t, b.doc, pos})
	}
	return err
}

// finish does the work that needs all documents: it sets the remaining item identifiers and reifiers and removes
// duplicates.
func (b *builder) finish(ctx context.Context) error {
	b.reifiers10()
	if err := b.identified(); err != nil {
		return err
	}
	waiting := b.reify(b.reified)
	if err := b.unequalReifiers(); err != nil {
		return err
	}
	var conflicts tmdm.Conflicts
	if err := b.tm.Normalize(ctx); err != nil && !errors.As(err, &conflicts) {
		return err
	}
	// The merging of reifiers may have made unequal statements equal.
	for _, r := range b.reify(waiting) {
		err := r.doc.errorAt(r.pos, nil, "%s reifies both %s and %s", tmdm.Describe(r.reifier),
			tmdm.Describe(r.reifier.Reified()), tmdm.Describe(r.c))
		if err := r.doc.o.problem(err); err != nil {
			return err
		}
	}
	for _, conflict := range conflicts {
		if err := b.conflict(conflict); err != nil {
			return err
		}
	}
	return b.settleClashes()
}

// reifiers10 finds the reifiers of XTM 1.0: a topic reifies the statement whose id is its subject identifier. It
// removes both locators.
func (b *builder) reifiers10() {
	used := map[*tmdm.Topic][]tmdm.Locator{} // taken away at once: one topic may have many
	known := map[tmdm.Locator]bool{}
	for _, id := range b.ids10 {
		if t := b.tm.TopicBySubjectIdentifier(id.loc); t != nil && !known[id.loc] {
			known[id.loc] = true
			used[t] = append(used[t], id.loc)
			tmdm.RemoveItemIdentifier(id.c, id.loc)
			b.reified = append(b.reified, reification{id.c, t, id.doc, id.pos})
		}
	}
	for t, locs := range used {
		t.RemoveSubjectIdentifier(locs...)
	}
}

// identified checks that topics declare the item identifiers by which XTM 2.0 names reifiers, unless these are ids of
// elements. A topic without such a declaration was made from the reference alone, because each topic element has an id.
func (b *builder) identified() error {
	for _, r := range b.reified {
		ids := r.reifier.ItemIdentifiers()
		if r.doc.version != V20 || len(ids) != 1 || namesElement(ids[0]) {
			continue
		}
		if err := r.doc.o.problem(r.doc.errorAt(r.pos, nil,
			"the reifier %q refers to no topic element: none has it as <itemIdentity>", ids[0])); err != nil {
			return err
		}
	}
	return nil
}

// unequalReifiers looks for the equal roles of one association with different
// reifiers, which XTM 2.x does not allow. (In XTM 1.0, where reifiers are no
// part of the association element, they are joined.)
func (b *builder) unequalReifiers() error {
	type key struct{ typ, player *tmdm.Topic }
	for _, a := range b.assocs {
		seen := map[key]*tmdm.Topic{}
		for _, r := range a.a.Roles() {
			k, reifier := key{r.Type(), r.Player()}, r.Reifier()
			if first := seen[k]; first != nil && reifier != nil && first != reifier {
				err := a.doc.errorAt(a.pos, nil, "the <association> has two equal roles with different reifiers: %s and %s",
					tmdm.Describe(first), tmdm.Describe(reifier))
				if err := a.doc.o.problem(err); err != nil {
					return err
				}
			}
			if reifier != nil {
				seen[k] = reifier
			}
		}
	}
	return nil
}

// reify sets reifiers and returns those that could not be set.
func (b *builder) reify(list []reification) (waiting []reification) {
	for _, r := range list {
		// Two topics that reify the same item are one (ISO 13250-2 §5.3.5).
		if old := r.c.Reifier(); old != nil && old.Merge(r.reifier) != nil || tmdm.SetReifier(r.c, r.reifier) != nil {
			waiting = append(waiting, r)
		}
	}
	return waiting
}

// conflict returns the syntax error for a conflict of Normalize.
func (b *builder) conflict(err *tmdm.ReifierError) error {
	at := b.reified[0]
	for _, r := range b.reified {
		if r.c == err.Construct || r.c == err.Existing {
			at = r
		}
	}
	return at.doc.o.problem(at.doc.errorAt(at.pos, err, "%s reifies both %s and %s", tmdm.Describe(err.Topic),
		tmdm.Describe(err.Existing), tmdm.Describe(err.Construct)))
}

// settleClashes looks at item identifiers that two constructs claimed. Equal
// statements, which are one by now, may share them.
func (b *builder) settleClashes() error {
	for _, id := range b.clashes {
		if r, ok := id.holder.(tmdm.Reifiable); ok && tmdm.Equal(r, id.c) {
			continue
		}
		err := id.doc.errorAt(id.pos, nil, "the item identifier %s of %s identifies %s already", id.loc, tmdm.Describe(id.c),
			tmdm.Describe(id.holder))
		err.Rule = ItemIdentifiers
		if id.doc.o.Lenient || id.doc.o.DropClashes {
			id.doc.o.tolerated(err)
		} else if err := id.doc.o.problem(err); err != nil {
			return err
		}
	}
	return nil
}
