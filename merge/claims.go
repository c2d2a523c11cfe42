package merge

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// Claims are the statements of the parts of a view about one topic, with the parts that make them. References are
// TopicSIs of the view.
type Claims struct {
	SubjectIdentifiers []Claimed[tmdm.Locator] // the first is the topic's TopicSI
	SubjectLocators    []Claimed[tmdm.Locator]
	Names              []ClaimedName // their Variants are listed separately
	Occurrences        []Claimed[fragment.Occurrence]
	Associations       []Claimed[*fragment.Association] // those in which it plays a role
}

// Claimed is something that parts of a view assert.
type Claimed[T any] struct {
	Value T
	By    []int // indexes of [View.Parts], ascending; none if it is only referred to
}

// ClaimedName is a name with its variants.
type ClaimedName struct {
	Claimed[fragment.Name]
	Variants []Claimed[fragment.Variant]
}

// Claims returns the statements of the parts about the topic with the subject identifier; nil if there are none.
// Associations in which the topic is only the class are included only if instances is set.
func (v *View) Claims(si fragment.Ref, instances bool) (*Claims, error) {
	if instances {
		return v.ClaimsAs(si, fragment.Parts[:]...)
	}
	return v.ClaimsAs(si, fragment.AsInstance, fragment.AsPlayer)
}

// ClaimsAs is [View.Claims] with the associations in which the topic takes one of the given parts. Without parts it
// reads no associations.
func (v *View) ClaimsAs(si fragment.Ref, parts ...fragment.Part) (*Claims, error) {
	if err := v.settle(); err != nil {
		return nil, err
	}
	s, err := v.subject(true, si)
	if err != nil {
		return nil, err
	}
	r := rewriter{v: v}
	c := r.saidOf(s)
	if r.err != nil {
		return nil, r.err
	}
	for _, part := range parts {
		for a, err := range v.associationsOf(s, v.streams(part), nil) {
			if err != nil {
				return nil, err
			}
			if a.Value.Part(s.ref) == part {
				c.Associations = append(c.Associations, a)
			}
		}
	}
	if len(s.members)+len(c.Associations) == 0 {
		return nil, nil
	}
	return c, nil
}

func (r *rewriter) saidOf(s *subject) *Claims {
	c := &Claims{Names: r.names(s), Occurrences: r.occurrences(s)}
	id := fragment.Identity{SubjectIdentifiers: []tmdm.Locator{s.ref}}
	if len(s.members) > 0 {
		id = s.identity()
	}
	for _, si := range id.SubjectIdentifiers {
		c.SubjectIdentifiers = append(c.SubjectIdentifiers,
			Claimed[tmdm.Locator]{si, r.givers(s, func(id *fragment.Identity) []tmdm.Locator {
				return id.SubjectIdentifiers
			}, si)})
	}
	for _, sl := range id.SubjectLocators {
		c.SubjectLocators = append(c.SubjectLocators,
			Claimed[tmdm.Locator]{sl, r.givers(s, func(id *fragment.Identity) []tmdm.Locator {
				return id.SubjectLocators
			}, sl)})
	}
	return c
}

// givers returns the parts that give an identifier of s.
func (r *rewriter) givers(s *subject, list func(*fragment.Identity) []tmdm.Locator, l tmdm.Locator) (by []int) {
	for _, m := range s.members {
		if m.part < len(r.v.parts) && slices.Contains(list(m.id), l) {
			by = append(by, m.part)
		}
	}
	return by
}

// topic returns the record of a merged topic.
func (v *View) topic(s *subject) (*fragment.Topic, error) {
	r := rewriter{v: v}
	if len(s.members) == 1 {
		m := s.members[0]
		if (m.part == len(v.parts) || !v.parts[m.part].Claims) && r.fits(m.topic) {
			return m.topic, r.err
		}
	}
	t := &fragment.Topic{Identity: s.identity(), Provisional: true}
	for _, m := range s.members {
		t.Provisional = t.Provisional && (m.topic.Provisional || m.part == len(v.parts))
	}
	for _, n := range r.names(s) {
		name := n.Value
		for i := range n.Variants {
			name.Variants = append(name.Variants, n.Variants[i].Value)
		}
		t.Names = append(t.Names, name)
	}
	for _, o := range r.occurrences(s) {
		t.Occurrences = append(t.Occurrences, o.Value)
	}
	return t, r.err
}
