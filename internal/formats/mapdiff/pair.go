package mapdiff

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// side is one of the two maps while topics are paired.
type side struct {
	tm    *tmdm.TopicMap
	pair  map[*tmdm.Topic]int    // numbers of pairs, from 1
	free  []*tmdm.Topic          // that have no pair, in the order of the map
	marks map[*tmdm.Topic]uint64 // of free topics: their statements in the last round
}

func newSide(tm *tmdm.TopicMap) *side {
	return &side{tm: tm, pair: map[*tmdm.Topic]int{}, free: slices.Collect(tm.Topics()), marks: map[*tmdm.Topic]uint64{}}
}

// settle removes paired topics from the free ones.
func (s *side) settle() {
	s.free = slices.DeleteFunc(s.free, func(t *tmdm.Topic) bool { return s.pair[t] > 0 })
}

// pairing pairs the topics of two maps, each with one at most.
type pairing struct {
	a, b  *side
	pairs [][2]*tmdm.Topic
	seed  maphash.Seed
	sure  bool // all pairs share a subject identifier or a subject locator
}

func pairTopics(a, b *tmdm.TopicMap) *pairing {
	p := &pairing{a: newSide(a), b: newSide(b), seed: maphash.MakeSeed()}
	p.by((*tmdm.Topic).SubjectIdentifiers, (*tmdm.TopicMap).TopicBySubjectIdentifier)
	p.by((*tmdm.Topic).SubjectLocators, (*tmdm.TopicMap).TopicBySubjectLocator)
	p.sure = len(p.a.free) == 0 && len(p.b.free) == 0
	// Item identifiers come after statements, because programs may renumber them with each document.
	p.alike(false)
	p.by((*tmdm.Topic).ItemIdentifiers, byItem)
	p.by((*tmdm.Topic).ItemIdentifiers, (*tmdm.TopicMap).TopicBySubjectIdentifier)
	p.by((*tmdm.Topic).SubjectIdentifiers, byItem)
	p.alike(true)
	p.alone(func(t *tmdm.Topic) string { return Title(t) })
	p.alone(untitled)
	return p
}

func byItem(tm *tmdm.TopicMap, l tmdm.Locator) *tmdm.Topic {
	t, _ := tm.ConstructByItemIdentifier(l).(*tmdm.Topic)
	return t
}

// by pairs the free topics that have a locator in common.
func (p *pairing) by(locators func(*tmdm.Topic) []tmdm.Locator, find func(*tmdm.TopicMap, tmdm.Locator) *tmdm.Topic) {
	for _, t := range p.a.free {
		for _, l := range locators(t) {
			if other := find(p.b.tm, l); other != nil && p.b.pair[other] == 0 {
				p.join(t, other)
				break
			}
		}
	}
	p.a.settle()
	p.b.settle()
}

func (p *pairing) join(a, b *tmdm.Topic) {
	p.pairs = append(p.pairs, [2]*tmdm.Topic{a, b})
	p.a.pair[a], p.b.pair[b] = len(p.pairs), len(p.pairs)
}

// maxRounds bounds the work on maps in which pairs follow from pairs in long
// chains.
const maxRounds = 30

// alike pairs free topics with equal statements, if no others have the same. Each pair can make its neighbours equal,
// and each round distinguishes topics with different neighbours (the refinement of colours known from graph
// isomorphism), so it repeats until nothing changes. With all set, it finally pairs topics that are still equal in
// their order.
func (p *pairing) alike(all bool) {
	classes := 0
	for range maxRounds {
		if len(p.a.free) == 0 || len(p.b.free) == 0 {
			return
		}
		inA, inB := p.round(p.a), p.round(p.b)
		before := len(p.pairs)
		for _, t := range p.a.free { // not the map: the order of pairs is that of topics
			if m := p.a.marks[t]; len(inA[m]) == 1 && len(inB[m]) == 1 {
				p.join(t, inB[m][0])
			}
		}
		p.a.settle()
		p.b.settle()
		if len(p.pairs) == before && len(inA)+len(inB) <= classes {
			break
		}
		classes = len(inA) + len(inB)
	}
	if !all {
		return
	}
	inB := map[uint64][]*tmdm.Topic{}
	for _, t := range p.b.free {
		inB[p.b.marks[t]] = append(inB[p.b.marks[t]], t)
	}
	for _, t := range p.a.free {
		if same := inB[p.a.marks[t]]; len(same) > 0 {
			p.join(t, same[0])
			inB[p.a.marks[t]] = same[1:]
		}
	}
	p.a.settle()
	p.b.settle()
}

// alone pairs the free topics that are called the same, if no others are.
// Two topics with subject identifiers that they do not share are different.
func (p *pairing) alone(call func(*tmdm.Topic) string) {
	inA, inB := calledBy(call, p.a.free), calledBy(call, p.b.free)
	for _, t := range p.a.free {
		same := inB[call(t)]
		if len(inA[call(t)]) == 1 && len(same) == 1 &&
			(len(t.SubjectIdentifiers()) == 0 || len(same[0].SubjectIdentifiers()) == 0) {
			p.join(t, same[0])
		}
	}
	p.a.settle()
	p.b.settle()
}

func calledBy(call func(*tmdm.Topic) string, topics []*tmdm.Topic) map[string][]*tmdm.Topic {
	called := map[string][]*tmdm.Topic{}
	for _, t := range topics {
		if name := call(t); name != "" {
			called[name] = append(called[name], t)
		}
	}
	return called
}

// untitled returns the id of a topic without a title: the end of its identifier. Servers
// that give a topic a subject identifier put its id there.
func untitled(t *tmdm.Topic) string {
	if Title(t) != "" {
		return ""
	}
	for _, l := range slices.Concat(t.SubjectIdentifiers(), t.ItemIdentifiers()) {
		return string(l[strings.LastIndexAny(string(l), "#/")+1:])
	}
	return ""
}

// round marks the free topics of s with their statements and returns them by their marks.
func (p *pairing) round(s *side) map[uint64][]*tmdm.Topic {
	w := writer{large: map[*tmdm.Association]string{}, call: func(t *tmdm.Topic) string {
		if n := s.pair[t]; n > 0 {
			return strconv.Itoa(n)
		}
		return "?" + strconv.FormatUint(s.marks[t], 36)
	}}
	marks := make(map[*tmdm.Topic]uint64, len(s.free))
	classes := map[uint64][]*tmdm.Topic{}
	for _, t := range s.free {
		var statements []string
		for _, st := range w.topic(t) {
			statements = append(statements, st.text)
		}
		slices.Sort(statements)
		var h maphash.Hash
		h.SetSeed(p.seed)
		for _, text := range append(statements, w.reifies(t)) {
			h.WriteString(text)
			h.WriteByte(0)
		}
		m := h.Sum64()
		marks[t] = m
		classes[m] = append(classes[m], t)
	}
	s.marks = marks
	return classes
}
