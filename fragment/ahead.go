package fragment

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/tmshare/tmshare/internal/ahead"
	"github.com/tmshare/tmshare/tmdm"
)

// madeAhead encodes a map's topics and associations in a separate goroutine before they are needed, so that one state
// is read from disk while the other is encoded in memory. It works in batches, and reuses their memory.
type madeAhead struct {
	batches *ahead.Queue[*batch] // in the order of topics
	used    []*batch             // to be reused
	left    []nextTopic          // of a batch
	large   map[*tmdm.Association]largeAssociation
}

// manyRoles is the largest number of roles with which an association's stored form is made for each of its players.
const manyRoles = 8

// largeAssociation describes an association with more roles, once its least player was met.
type largeAssociation struct {
	key   AssociationKey
	least *tmdm.Topic
}

// batchSize is the number of topics in a batch.
const batchSize = 128

// batch holds the stored forms of some topics.
type batch struct {
	topics  []nextTopic
	playing []playing
	forms   encoder

	records     recorder
	topic       Topic
	association Association
	content     encoder
}

// nextTopic is a topic of the next state. It is valid until step is called.
type nextTopic struct {
	namedTopic
	batch       *batch
	form        span // of its record
	first, last int  // of its associations
}

func (t *nextTopic) record() []byte { return t.formOf(t.form) }

func (t *nextTopic) formOf(s span) []byte { return t.batch.forms[s.start:s.end] }

// playing returns the associations that belong to t, in the order of stored ones.
func (t *nextTopic) playing() []playing { return t.batch.playing[t.first:t.last] }

// playing is an association that a topic takes part in.
type playing struct {
	part      Part
	key       AssociationKey
	a         *tmdm.Association
	form      span
	elsewhere bool // it is large: only its least player has its form
}

func (p *playing) compare(part Part, key *AssociationKey) int {
	return cmp.Or(cmp.Compare(p.part, part), bytes.Compare(p.key[:], key[:]))
}

// span is a range of bytes of a batch's forms.
type span struct{ start, end int }

// newAhead begins to make the stored forms of m. The caller stops its queue.
func newAhead(m *Map) *madeAhead {
	a := &madeAhead{large: map[*tmdm.Association]largeAssociation{}}
	a.batches = ahead.New(func(b *batch) { a.used = append(a.used, b) })
	go a.batches.Run(func() error {
		for some := range slices.Chunk(m.sorted, batchSize) {
			b := &batch{records: recorder{m: m, capacity: 64}}
			if last := len(a.used) - 1; last >= 0 {
				b, a.used = a.used[last], a.used[:last]
			}
			b.fill(some, a.large)
			if !a.batches.Add(b, ahead.Heavy) {
				break
			}
		}
		return ahead.ErrStopped
	})
	return a
}

// peek returns the next topic; nil after the last.
func (a *madeAhead) peek() *nextTopic {
	if len(a.left) == 0 {
		b, err := a.batches.Next()
		if err != nil {
			return nil
		}
		a.left = b.topics
	}
	return &a.left[0]
}

// step advances to the next topic.
func (a *madeAhead) step() { a.left = a.left[1:] }

func (b *batch) fill(some []namedTopic, large map[*tmdm.Association]largeAssociation) {
	b.topics, b.playing, b.forms = b.topics[:0], b.playing[:0], b.forms[:0]
	for _, n := range some {
		t := nextTopic{namedTopic: n, batch: b, first: len(b.playing)}
		record := b.records.topic(n.t, &b.topic)
		b.content = appendTopicContent(b.content[:0], record)
		start := len(b.forms)
		b.forms = appendTopic(b.forms, record, b.content)
		t.form = span{start, len(b.forms)}
		b.associations(n.t, large)
		t.last = len(b.playing)
		b.topics = append(b.topics, t)
	}
}

// associations adds the associations that belong to t. Topics come in the order of their TopicSIs, so the first player
// with an association is the least.
func (b *batch) associations(t *tmdm.Topic, large map[*tmdm.Association]largeAssociation) {
	first := len(b.playing)
	for _, r := range t.RolesPlayed() {
		a := r.Association()
		part := b.records.m.part(a, t)
		isLarge := len(a.Roles()) > manyRoles
		if part == AsType || !isLarge && !isFirst(r) {
			continue
		}
		if known, ok := large[a]; ok {
			if known.least != t {
				b.playing = append(b.playing, playing{part: part, key: known.key, a: a, elsewhere: true})
			}
			continue
		}
		record := b.records.association(a, &b.association)
		b.content = appendAssociationContent(b.content[:0], record)
		start := len(b.forms)
		b.forms = appendAssociation(b.forms, record, b.content)
		key := record.Key()
		b.playing = append(b.playing, playing{part: part, key: key, a: a, form: span{start, len(b.forms)}})
		if isLarge {
			large[a] = largeAssociation{key, t}
		}
	}
	if mine := b.playing[first:]; len(mine) > 1 {
		slices.SortFunc(mine, func(a, b playing) int { return a.compare(b.part, &b.key) })
		mine = slices.CompactFunc(mine, func(a, b playing) bool { return a.a == b.a }) // several roles in a large one
		b.playing = b.playing[:first+len(mine)]
	}
}
