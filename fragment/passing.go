package fragment

import (
	"iter"

	"github.com/tmshare/tmshare/tmdm"
)

// InPassing returns src for one goroutine that looks at its records one by one: what Topics yields is
// valid until its next one, and so is what Associations and AssociationsOf yield. That makes less garbage where src is a
// [Map], of which all records are made when they are asked for, or a [Passable].
func InPassing(src Source) Source {
	switch src := src.(type) {
	case *Map:
		return &passing{Map: src}
	case Passable:
		return src.InPassing()
	}
	return src
}

// Passable is what a Source can be as well: one whose records cost less if they are looked at one by one. What it returns may
// count on being asked, while it yields a topic, for the classes of this one.
type Passable interface {
	InPassing() Source
}

// Identified is what a Source in passing can be as well: one that knows whether all its associations have item identifiers. None of
// these can be written as the type of a topic.
type Identified interface {
	AreIdentified() bool
}

type passing struct {
	*Map
	one    recorder
	typing Association
}

// Topics implements [Source].
func (p *passing) Topics() iter.Seq2[*Topic, error] {
	return func(yield func(*Topic, error) bool) {
		r := recorder{m: p.Map, capacity: passingRefs}
		var record Topic
		for _, n := range p.sorted {
			if !yield(r.topic(n.t, &record), nil) {
				return
			}
		}
	}
}

// passingRefs is for how many references in scopes there is room at a time.
const passingRefs = 64

// Associations implements [Source].
func (p *passing) Associations() iter.Seq2[*Association, error] {
	return func(yield func(*Association, error) bool) {
		r := recorder{m: p.Map, capacity: passingRefs}
		var record Association
		for a := range p.tm.Associations() {
			if len(a.Roles()) > 0 && !yield(r.association(a, &record), nil) {
				return
			}
		}
	}
}

// AssociationsOf implements [Source]. Where there is one association, as nearly all instances have one class, it is
// made in the memory of the last.
func (p *passing) AssociationsOf(player Ref, part Part) iter.Seq2[*Association, error] {
	var only *tmdm.Association
	if t := p.named(player); t != nil {
		for _, r := range t.RolesPlayed() {
			a := r.Association()
			switch {
			case p.part(a, t) != part || a == only:
			case only != nil:
				return p.Map.AssociationsOf(player, part)
			default:
				only = a
			}
		}
	}
	return func(yield func(*Association, error) bool) {
		if only != nil {
			p.one.m = p.Map
			yield(p.one.association(only, &p.typing), nil)
		}
	}
}
