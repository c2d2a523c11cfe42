package cxtm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/tmshare/tmshare/tmdm"
)

// Without item identifiers, the standard's order cannot distinguish topics without subject identifiers and subject
// locators; they come first. The code here distinguishes them by the statements about them, with the other topics as
// numbers: this distinguishes some of them, then their neighbours, and so on until nothing changes (the refinement of
// colours known from graph isomorphism). If topics are still equal, it distinguishes the first of them, and continues.

// maxMarks bounds the work on maps in which very many topics are alike.
const maxMarks = 1_000_000

func (x *index) orderAnonymous() {
	n := 0
	for n < len(x.topics) && len(x.topics[n].subjectIdentifiers)+len(x.topics[n].subjectLocators) == 0 {
		n++
	}
	if n < 2 {
		return
	}
	r := refiner{index: x, group: make([]anonymous, n)}
	r.places = map[*tmdm.Topic]int{}
	for i := range x.topics {
		x.numbers[x.topics[i].Topic] = i + 1
		if i < n {
			r.group[i].topic = x.topics[i]
		}
	}
	r.number()
	r.refine()
	for i := range r.group {
		x.topics[i] = r.group[i].topic
	}
}

type refiner struct {
	*index // its numbers are the ranks within the group
	group  []anonymous
	places map[*tmdm.Topic]int // in group
	key    []byte
	marks  int // made so far
}

type anonymous struct {
	topic topic
	rank  int      // equal for topics not distinguished so far
	marks [][]byte // of the statements that mention the topic
	key   []byte   // all marks in order
}

func (r *refiner) refine() {
	classes := 1
	for r.marks < maxMarks {
		r.mark()
		before := classes
		classes = r.sort()
		if classes == before && classes < len(r.group) {
			r.individualize()
			classes++
		}
		if classes == len(r.group) {
			return
		}
	}
}

// sort sorts the group by rank and marks, assigns new ranks, and returns their number.
func (r *refiner) sort() int {
	for i := range r.group {
		a := &r.group[i]
		slices.SortFunc(a.marks, bytes.Compare)
		a.key = bytes.Join(a.marks, nil)
		a.marks = a.marks[:0]
	}
	slices.SortStableFunc(r.group, func(a, b anonymous) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return bytes.Compare(a.key, b.key)
	})
	classes, last := 0, -1
	for i := range r.group {
		a := &r.group[i]
		old := a.rank
		if i > 0 && old == last && bytes.Equal(a.key, r.group[i-1].key) {
			a.rank = r.group[i-1].rank
		} else {
			a.rank = i
			classes++
		}
		last = old
	}
	r.number()
	return classes
}

func (r *refiner) number() {
	for i := range r.group {
		t := r.group[i].topic.Topic
		r.places[t], r.numbers[t] = i, r.group[i].rank+1
	}
}

// individualize sets the first of the first topics that are alike apart.
func (r *refiner) individualize() {
	for i := range r.group[:len(r.group)-1] {
		if r.group[i].rank == r.group[i+1].rank {
			for j := i + 1; j < len(r.group) && r.group[j].rank == i; j++ {
				r.group[j].rank = i + 1
			}
			break
		}
	}
	r.number()
}

// mark marks the topics of the group that statements mention with the content of the statement and the part of the
// topic in it.
func (r *refiner) mark() {
	for i := range r.topics {
		t := r.topics[i].Topic
		for _, n := range t.Names() {
			r.begin('n', n.Value(), "")
			r.put(t, n.Type(), n.Reifier())
			r.putScope(n.Scope())
			var variants [][]byte
			for _, v := range n.Variants() {
				variants = append(variants, r.variant(v))
			}
			slices.SortFunc(variants, bytes.Compare)
			for _, v := range variants {
				r.key = append(r.key, v...)
			}
			sum := r.sum()
			r.mention(sum, 'o', t)
			r.mention(sum, 't', n.Type())
			r.mention(sum, 'r', n.Reifier())
			r.mention(sum, 's', n.Scope().Themes()...)
			for _, v := range n.Variants() {
				sum := append(sum[:len(sum):len(sum)], r.variant(v)...)
				r.mention(sum, 'r', v.Reifier())
				r.mention(sum, 's', v.Scope().Themes()...)
			}
		}
		for _, o := range t.Occurrences() {
			r.begin('o', o.Value(), o.Datatype())
			r.put(t, o.Type(), o.Reifier())
			r.putScope(o.Scope())
			sum := r.sum()
			r.mention(sum, 'o', t)
			r.mention(sum, 't', o.Type())
			r.mention(sum, 'r', o.Reifier())
			r.mention(sum, 's', o.Scope().Themes()...)
		}
	}
	for a := range r.tm.Associations() {
		r.association(a)
	}
}

func (r *refiner) association(a *tmdm.Association) {
	roles := make([][]byte, len(a.Roles()))
	for i, role := range a.Roles() {
		r.begin('r', "", "")
		r.put(role.Player(), role.Type(), role.Reifier())
		roles[i] = r.sum()
	}
	r.begin('a', "", "")
	r.put(a.Type(), a.Reifier())
	r.putScope(a.Scope())
	ordered := slices.Clone(roles)
	slices.SortFunc(ordered, bytes.Compare)
	for _, s := range ordered {
		r.key = append(r.key, s...)
	}
	sum := r.sum()
	r.mention(sum, 't', a.Type())
	r.mention(sum, 'r', a.Reifier())
	r.mention(sum, 's', a.Scope().Themes()...)
	for i, role := range a.Roles() {
		sum := append(sum[:len(sum):len(sum)], roles[i]...)
		r.mention(sum, 'p', role.Player())
		r.mention(sum, 'y', role.Type())
		r.mention(sum, 'q', role.Reifier())
	}
}

// variant returns the content of v. It does not change the key under construction.
func (r *refiner) variant(v *tmdm.Variant) []byte {
	outer := r.key
	r.key = nil
	r.begin('v', v.Value(), v.Datatype())
	r.put(v.Reifier())
	r.putScope(v.Scope())
	sum := r.sum()
	r.key = outer
	return sum
}

func (r *refiner) begin(kind byte, value, datatype string) {
	r.key = append(r.key[:0], kind)
	r.key = binary.BigEndian.AppendUint32(r.key, uint32(len(value)))
	r.key = append(append(r.key, value...), datatype...)
	r.key = append(r.key, 0)
}

// put appends the numbers of topics. Some topics may be nil.
func (r *refiner) put(topics ...*tmdm.Topic) {
	for _, t := range topics {
		n := int64(1) << 40
		if t != nil {
			n = int64(r.numbers[t])
		}
		r.key = binary.BigEndian.AppendUint64(r.key, uint64(n))
	}
}

func (r *refiner) putScope(s *tmdm.Scope) {
	themes := slices.Clone(s.Themes())
	slices.SortFunc(themes, func(a, b *tmdm.Topic) int { return r.numbers[a] - r.numbers[b] })
	r.key = binary.BigEndian.AppendUint32(r.key, uint32(len(themes)))
	r.put(themes...)
}

func (r *refiner) sum() []byte {
	s := sha256.Sum256(r.key)
	return s[:16]
}

func (r *refiner) mention(sum []byte, part byte, topics ...*tmdm.Topic) {
	for _, t := range topics {
		if i, ok := r.places[t]; ok {
			r.marks++
			r.group[i].marks = append(r.group[i].marks, append([]byte{part}, sum...))
		}
	}
}
