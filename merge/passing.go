package merge

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// InPassing implements [fragment.Passable].
func (v *View) InPassing() fragment.Source {
	if v.only != nil {
		return fragment.InPassing(v.only)
	}
	if err := v.settle(); err != nil || !v.plain {
		return v // which returns the error again
	}
	return &plainView{View: v, source: fragment.InPassing(v.parts[0].Source)}
}

// plainView is a plain view whose records are read one by one.
type plainView struct {
	*View
	source fragment.Source // its records are those of the view, except claims

	// The last records, with claims.
	record      fragment.Topic
	variants    []fragment.Variant
	association fragment.Association
	claims      []tmdm.Locator
}

// Topics implements [fragment.Source].
func (p *plainView) Topics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		for t, err := range p.source.Topics() {
			switch {
			case err != nil:
			case hasEqualStatements(t):
				t, err = p.topic(&subject{ref: t.TopicSI(), members: []member{{id: &t.Identity, topic: t}}})
			case p.parts[0].Claims:
				t = p.claimed(t)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// claimed returns a topic with the item identifiers of the sources of its statements.
func (p *plainView) claimed(t *fragment.Topic) *fragment.Topic {
	sp, ref, to := p.parts[0].SP, t.TopicSI(), &p.record
	p.claims, p.variants = p.claims[:0], p.variants[:0]
	to.Identity, to.Provisional = t.Identity, t.Provisional
	to.Names = append(to.Names[:0], t.Names...)
	for i := range to.Names {
		n, from := &to.Names[i], &t.Names[i]
		if len(n.ItemIdentifiers) == 0 {
			n.ItemIdentifiers = p.claim(fragment.NameClaim(sp, ref, from))
		}
		first := len(p.variants)
		p.variants = append(p.variants, from.Variants...)
		n.Variants = p.variants[first:len(p.variants):len(p.variants)]
		for j := range n.Variants {
			if v := &n.Variants[j]; len(v.ItemIdentifiers) == 0 {
				v.ItemIdentifiers = p.claim(fragment.VariantClaim(sp, ref, from, v))
			}
		}
	}
	to.Occurrences = append(to.Occurrences[:0], t.Occurrences...)
	for i := range to.Occurrences {
		if o := &to.Occurrences[i]; len(o.ItemIdentifiers) == 0 {
			o.ItemIdentifiers = p.claim(fragment.OccurrenceClaim(sp, ref, o))
		}
	}
	return to
}

// AreIdentified implements [fragment.Identified].
func (p *plainView) AreIdentified() bool { return p.parts[0].Claims }

// claim returns a list of one claim.
func (p *plainView) claim(l tmdm.Locator) []tmdm.Locator {
	p.claims = append(p.claims, l)
	return p.claims[len(p.claims)-1 : len(p.claims) : len(p.claims)]
}

// AssociationsOf implements [fragment.Source].
func (p *plainView) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return p.withClaims(p.source.AssociationsOf(player, part))
}

// Associations implements [fragment.Source].
func (p *plainView) Associations() iter.Seq2[*fragment.Association, error] {
	return p.withClaims(p.source.Associations())
}

func (p *plainView) withClaims(all iter.Seq2[*fragment.Association, error]) iter.Seq2[*fragment.Association, error] {
	if !p.parts[0].Claims {
		return all
	}
	return func(yield func(*fragment.Association, error) bool) {
		for a, err := range all {
			if err == nil && len(a.ItemIdentifiers) == 0 {
				p.association = *a
				p.association.ItemIdentifiers = []tmdm.Locator{fragment.AssociationClaim(p.parts[0].SP, a)}
				a = &p.association
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}
