package fragment

import (
	"iter"
	"slices"

	"github.com/tmshare/tmshare/tmdm"
)

// InPassing returns src for one goroutine that reads records one by one: records from Topics, Associations and
// AssociationsOf are valid until the next one. This allocates less if src is a [Map], which makes all records on
// request, or a [Passable].
func InPassing(src Source) Source {
	switch src := src.(type) {
	case *Map:
		return &passing{Map: src}
	case Passable:
		return src.InPassing()
	}
	return src
}

// Passable is a [Source] with cheaper records for reading one by one. The result may assume that callers request the
// classes of a topic while it yields the topic.
type Passable interface {
	InPassing() Source
}

// Identified may be implemented by a Source in passing that knows whether all its associations have item identifiers.
// None of these can be written as the type of a topic.
type Identified interface {
	AreIdentified() bool
}

type passing struct {
	*Map
	ofTopic, ofAssociations recorder

	topic        Topic         // the last records, in memory that is reused
	associations []Association // likewise
	found        []keyedAssociation
	met          met
	touched      int // keeps the compiler from removing touch
}

// named returns the topic with the TopicSI ref, or nil.
func (p *passing) named(ref Ref) *tmdm.Topic {
	if ref == "" {
		return p.Map.named(ref)
	}
	known := p.met.at(ref)
	if known.ref != ref {
		*known = namedTopic{ref, p.Map.named(ref)}
	}
	return known.t
}

// touch reads the data of the records of t's associations, which is spread over the memory of a map, in a loop without
// other work, so that the processor loads many places at a time.
func (p *passing) touch(t *tmdm.Topic) {
	const few = 16 // limit of roles, and of roles per association
	roles := t.RolesPlayed()
	for _, r := range roles[:min(len(roles), few)] {
		others := r.Association().Roles()
		for _, other := range others[:min(len(others), few)] {
			if ref := p.ref(other.Player()); ref != "" {
				p.touched += int(ref[0])
			}
		}
	}
}

// release gives up the map, but for the memory that was made for its records.
func (p *passing) release() {
	p.Map, p.met = nil, met{}
	p.ofTopic, p.ofAssociations = recorder{refs: p.ofTopic.refs}, recorder{refs: p.ofAssociations.refs}
}

func (p *passing) identityOf(ref Ref) (Identity, bool) {
	if t := p.named(ref); t != nil {
		return p.identity(t), true
	}
	return p.Map.identityOf(ref)
}

// Topic implements [Source]. The topic is valid until the next call.
func (p *passing) Topic(si Ref) (*Topic, error) {
	t := p.tm.TopicBySubjectIdentifier(si)
	if t == nil {
		return nil, nil
	}
	p.ofTopic = recorder{m: p.Map, refs: p.ofTopic.refs, capacity: passingRefs, met: &p.met}
	p.ofTopic.ref(t)
	p.touch(t)
	return p.ofTopic.topic(t, &p.topic), nil
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

// passingRefs is the number of references in scopes that are allocated at a time.
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

// AssociationsOf implements [Source]. The associations are valid until the next call.
func (p *passing) AssociationsOf(player Ref, part Part) iter.Seq2[*Association, error] {
	return func(yield func(*Association, error) bool) {
		p.ofAssociations = recorder{m: p.Map, refs: p.ofAssociations.refs[:0], capacity: passingRefs, met: &p.met}
		made := p.associations[:0]
		p.partsOf(p.named(player), part, func(a *tmdm.Association) {
			made = slices.Grow(made, 1)[:len(made)+1] // with the memory of earlier roles
			p.ofAssociations.addAssociation(a, &made[len(made)-1])
		})
		p.associations, p.found = made, p.found[:0]
		for i := range made {
			p.found = append(p.found, keyedAssociation{a: &made[i]})
		}
		for _, f := range sortByKeys(p.found) {
			if !yield(f.a, nil) {
				return
			}
		}
	}
}
