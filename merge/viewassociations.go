package merge

import (
	"bytes"
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// manyAssociations is the number of associations of one topic that are held at a time; twice that while they are
// collected. Tests reduce it.
var manyAssociations = 1 << 15

// AssociationsOf implements [fragment.Source].
func (v *View) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	if v.only != nil {
		return v.only.AssociationsOf(player, part)
	}
	return v.played(player, []fragment.Part{part})
}

// PlayedBy implements [fragment.Players].
func (v *View) PlayedBy(player fragment.Ref) iter.Seq2[*fragment.Association, error] {
	if v.only != nil {
		return fragment.PlayedBy(v.only, player)
	}
	return v.played(player, []fragment.Part{fragment.AsInstance, fragment.AsPlayer})
}

// played iterates over the associations in which a TopicSI of the view takes part in one of the given ways.
func (v *View) played(player fragment.Ref, parts []fragment.Part) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		if err := v.settle(); err != nil {
			yield(nil, err)
			return
		}
		if v.plain {
			v.asStated(func(src fragment.Source) iter.Seq2[*fragment.Association, error] {
				return playedIn(src, player, parts)
			})(yield)
			return
		}
		s, err := v.subject(false, player)
		if err != nil {
			yield(nil, err)
			return
		}
		if s.ref != player {
			return // no reference of the view is this
		}
		for a, err := range v.associationsOf(s, v.streams(parts...), nil) {
			if err == nil && !slices.Contains(parts, a.Value.Part(player)) {
				continue
			}
			if !yield(a.Value, err) || err != nil {
				return
			}
		}
	}
}

// streams returns the parts of the sources that may have associations of the given parts of the view.
func (v *View) streams(parts ...fragment.Part) []fragment.Part {
	if v.vocabulary {
		return fragment.Parts[:]
	}
	return parts
}

// Associations implements [fragment.Source]. It yields each association with its owner, a player, so equal ones of all
// sources come together.
func (v *View) Associations() iter.Seq2[*fragment.Association, error] {
	if v.only != nil {
		return v.only.Associations()
	}
	return func(yield func(*fragment.Association, error) bool) {
		if err := v.settle(); err != nil {
			yield(nil, err)
			return
		}
		if v.plain {
			v.asStated(fragment.Source.Associations)(yield)
			return
		}
		streams := v.streams(fragment.AsInstance, fragment.AsPlayer) // no owner is only a class
		at := func(s *subject) bool {
			for a, err := range v.associationsOf(s, streams, func(a *fragment.Association) bool { return owner(a) == s.ref }) {
				if !yield(a.Value, err) || err != nil {
					return false
				}
			}
			return true
		}
		for s, err := range v.subjects() {
			if err != nil {
				yield(nil, err)
				return
			}
			if !at(s) {
				return
			}
		}
		v.withoutRecord(at, func(err error) { yield(nil, err) })
	}
}

// asStated iterates over associations of the one source of a plain view, in its order.
func (v *View) asStated(
	readAll func(fragment.Source) iter.Seq2[*fragment.Association, error]) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		r := rewriter{v: v}
		for a, err := range readAll(v.parts[0].Source) {
			if err == nil {
				a = r.association(0, a)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// withoutRecord calls at for every topic with which associations are given but that has no
// record. There are few: the sources speak of topics that they have.
func (v *View) withoutRecord(at func(*subject) bool, fail func(error)) {
	done := map[fragment.Ref]bool{}
	for i, p := range v.parts {
		if p.Published {
			continue
		}
		for a, err := range p.Source.Associations() {
			if err != nil {
				fail(err)
				return
			}
			unknown := false
			for j := range a.Roles {
				r, err := v.resolve(a.Roles[j].Player)
				if err != nil {
					fail(err)
					return
				}
				unknown = unknown || !r.known
			}
			if !unknown {
				continue
			}
			r := rewriter{v: v}
			player := owner(r.association(i, a))
			s, err := v.subject(false, player)
			if err = firstError(r.err, err); err != nil {
				fail(err)
				return
			}
			if len(s.members) > 0 || done[player] {
				continue
			}
			done[player] = true
			if !at(s) {
				return
			}
		}
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// owner returns the player with which an association is yielded: the instance of a type-instance association, reified
// or not; else the least player.
func owner(a *fragment.Association) fragment.Ref {
	if a.Type == tmdm.PSITypeInstance && len(a.Scope) == 0 && len(a.Roles) == 2 {
		for i := range a.Roles {
			if a.Roles[i].Type == tmdm.PSIInstance && a.Roles[1-i].Type == tmdm.PSIType {
				return a.Roles[i].Player
			}
		}
	}
	least := fragment.Ref("")
	for i := range a.Roles {
		if p := a.Roles[i].Player; i == 0 || p < least {
			least = p
		}
	}
	return least
}

// keyed is an association of the view under its key.
type keyed struct {
	Claimed[*fragment.Association]
	key fragment.AssociationKey
}

func compareKeyed(a, b keyed) int { return bytes.Compare(a.key[:], b.key[:]) }

// associationsOf iterates over the associations of s that accept accepts (nil: all), by key. It collects those with the
// least keys up to the limit; if there are more, it reads them again for the following ones.
func (v *View) associationsOf(s *subject, streams []fragment.Part,
	accept func(*fragment.Association) bool) iter.Seq2[Claimed[*fragment.Association], error] {
	return func(yield func(Claimed[*fragment.Association], error) bool) {
		var after, until *fragment.AssociationKey // those with keys in this range
		r := rewriter{v: v}
		for {
			var held []keyed
			for a, part := range v.stated(s, streams, &r.err) {
				rewritten := r.association(part, a)
				if r.err != nil {
					break
				}
				if accept != nil && !accept(rewritten) {
					continue
				}
				k := keyed{Claimed[*fragment.Association]{rewritten, []int{part}}, rewritten.Key()}
				if after != nil && bytes.Compare(k.key[:], after[:]) <= 0 || until != nil && bytes.Compare(k.key[:], until[:]) > 0 {
					continue
				}
				if held = append(held, k); len(held) >= 2*manyAssociations {
					if held = unite(held, compareKeyed, joinAssociations); len(held) > manyAssociations {
						clear(held[manyAssociations:])
						held = held[:manyAssociations]
						until = new(held[len(held)-1].key)
					}
				}
			}
			if r.err != nil {
				yield(Claimed[*fragment.Association]{}, r.err)
				return
			}
			for _, k := range unite(held, compareKeyed, joinAssociations) {
				if !yield(Claimed[*fragment.Association]{r.settled(k.Value), k.By}, nil) {
					return
				}
			}
			if until == nil {
				return
			}
			after, until = until, nil
		}
	}
}

// stated iterates over the associations that the sources state of s, with the
// indexes of their parts.
func (v *View) stated(s *subject, streams []fragment.Part, failed *error) iter.Seq2[*fragment.Association, int] {
	return func(yield func(*fragment.Association, int) bool) {
		for i, p := range v.parts {
			for _, si := range s.sis.list {
				for a, err := range playedIn(p.Source, si, streams) {
					if err != nil {
						*failed = err
						return
					}
					if !yield(a, i) {
						return
					}
				}
			}
		}
	}
}

// playedIn iterates over the associations in which a subject identifier plays in one of the ways given, in their order.
func playedIn(src fragment.Source, si fragment.Ref, streams []fragment.Part) iter.Seq2[*fragment.Association, error] {
	if len(streams) == 1 {
		return src.AssociationsOf(si, streams[0])
	}
	return func(yield func(*fragment.Association, error) bool) {
		for a, err := range fragment.PlayedBy(src, si) {
			if !yield(a, err) || err != nil {
				return
			}
		}
		if len(streams) < len(fragment.Parts) {
			return
		}
		for a, err := range src.AssociationsOf(si, fragment.AsType) {
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// joinAssociations adds the identifiers and the reifier of an association to an equal one. It copies the record if it
// changes, because records are shared.
func joinAssociations(into, from *keyed) {
	a, b := *into.Value, from.Value
	if into.Value != from.Value {
		join(&a.Reifier, b.Reifier, &a.ItemIdentifiers, b.ItemIdentifiers, &into.By, from.By)
		a.Roles = uniteRoles(slices.Concat(a.Roles, b.Roles))
		into.Value = &a
	}
}

// settled returns an association with the reifiers that the view has chosen.
func (r *rewriter) settled(a *fragment.Association) *fragment.Association {
	if len(r.v.chosen) == 0 {
		return a
	}
	out := *a
	out.Roles = slices.Clone(a.Roles)
	r.choose(&out.Reifier, func() string { return associationKey(a) })
	for i := range out.Roles {
		role := &out.Roles[i]
		r.choose(&role.Reifier, func() string { return roleKey(a, role) })
	}
	return &out
}
