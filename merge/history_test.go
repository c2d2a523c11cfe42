package merge_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// histories returns the number of random histories; some tests run a part of them, or several times as many.
func histories() int { return testenv.Rounds(60, 200) }

const sp = "http://maps.example.org/topicmaps/test/"

// publisher is a server without a network: a state, and the log of entries with
// their fragments as XTM.
type publisher struct {
	t     testing.TB
	state merge.Memory
	log   []logged
	at    string      // source locator prefix; default sp
	form  xtm.Version // of the served fragments; default 2.1
	omit  bool        // instances are left out of the fragments of classes
	edits []string    // the edits, for the message of a failure
	late  int         // entries that subscribers have applied late
	// Covered entries that subscribers have passed over, and those that they have applied in the end, as something was
	// in quarantine.
	passed, paid int
}

func (p *publisher) prefix() string { return cmp.Or(p.at, sp) }

func (p *publisher) options() xtm.Options { return xtm.Options{Base: tmdm.Locator(p.prefix())} }

func (p *publisher) served() fragment.Form {
	return fragment.Form{Version: cmp.Or(p.form, xtm.V21), SP: p.prefix(), OmitInstances: p.omit}
}

type logged struct {
	commit int
	entry  fragment.Entry
	xtm    []byte
	parsed *fragment.Fragment
}

// publish publishes a version of a map and returns its canonical form, assigned
// identifiers included.
func (p *publisher) publish(input *tmdm.TopicMap, commit int) []byte {
	var doc bytes.Buffer
	_, err := xtm.Write(&doc, input, xtm.WriteOptions{Version: xtm.V21, Base: p.options().Base})
	require.NoError(p.t, err)
	tm, err := xtm.Read(p.t.Context(), bytes.NewReader(doc.Bytes()), p.options())
	require.NoError(p.t, err, "%s", doc.Bytes())
	next, err := fragment.NameTopics(p.t.Context(), tm, p.prefix(), &p.state)
	require.NoError(p.t, err)
	change, err := fragment.Diff(p.t.Context(), &p.state, next)
	require.NoError(p.t, err)
	p.commit(change, commit)
	expected := canonical(p.t, tm)
	require.Equal(p.t, string(expected), string(joined(p.t, &p.state)), "the published state is the edited input with the assigned identifiers")
	return expected
}

// commit applies a change, and logs its entries with their fragments.
func (p *publisher) commit(change *fragment.Change, commit int) {
	require.NoError(p.t, change.Cover(&p.state, p.stored))
	apply(p.t, &p.state, change)
	for _, e := range change.Entries {
		var b bytes.Buffer
		require.NoError(p.t, e.Write(&b, &p.state, p.served()))
		f, err := fragment.Read(p.t.Context(), bytes.NewReader(b.Bytes()), p.options(), e.TopicSI)
		require.NoError(p.t, err, "%s", b.Bytes())
		f.Deleted = e.Deleted
		p.log = append(p.log, logged{commit, e, b.Bytes(), f})
	}
}

// stored returns the association of the state with the key of another.
func (p *publisher) stored(like *fragment.Association) (*fragment.Association, error) {
	for _, part := range fragment.Parts {
		for a, err := range p.state.AssociationsOf(like.Players()[0], part) {
			if err != nil || a.Key() == like.Key() {
				return a, err
			}
		}
	}
	return nil, nil
}

// last returns the last entry of each topic that a subscriber is to have, if any is from a mark on: one that is covered
// supersedes nothing.
func (p *publisher) last(from, until int, covers bool) map[fragment.Ref]int {
	last := map[fragment.Ref]int{}
	for i := from; i < until; i++ {
		if e := p.log[i].entry; !covers || !e.Covered {
			last[e.TopicSI] = i
		}
	}
	return last
}

// apply changes a publisher's state, deletions first.
func apply(t testing.TB, s merge.State, c *fragment.Change) {
	for _, a := range c.DeleteAssociations {
		require.NoError(t, s.DeleteAssociation(a))
	}
	for _, ref := range c.DeleteTopics {
		require.NoError(t, s.DeleteTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref}}}))
	}
	for _, topic := range c.PutTopics {
		require.NoError(t, s.DeleteTopic(topic))
	}
	for _, topic := range c.PutTopics {
		require.NoError(t, s.PutTopic(topic))
	}
	for _, a := range c.PutAssociations {
		require.NoError(t, s.PutAssociation(a))
	}
}

func canonical(t testing.TB, tm *tmdm.TopicMap) []byte {
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: sp, OmitItemIdentifiers: true}))
	return b.Bytes()
}

func joined(t testing.TB, src fragment.Source) []byte {
	tm, _, err := merge.Join(t.Context(), merge.Part{SP: sp, Source: src})
	require.NoError(t, err)
	return canonical(t, tm)
}

// dump lists all records of a source, for record-for-record comparison.
func dump(t testing.TB, src fragment.Source) string {
	var b strings.Builder
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		fmt.Fprintf(&b, "%q\n", fragment.MarshalTopic(topic))
	}
	for a, err := range src.Associations() {
		require.NoError(t, err)
		fmt.Fprintf(&b, "%q\n", fragment.MarshalAssociation(a))
	}
	return b.String()
}

// contents is dump without the item identifiers of statements: they say where
// a statement was read, and change without an entry.
func contents(t testing.TB, src fragment.Source) string {
	var plain merge.Memory
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		copied, err := fragment.UnmarshalTopic(fragment.MarshalTopic(topic))
		require.NoError(t, err)
		for i := range copied.Names {
			copied.Names[i].ItemIdentifiers = nil
			for j := range copied.Names[i].Variants {
				copied.Names[i].Variants[j].ItemIdentifiers = nil
			}
		}
		for i := range copied.Occurrences {
			copied.Occurrences[i].ItemIdentifiers = nil
		}
		require.NoError(t, plain.PutTopic(copied))
	}
	for a, err := range src.Associations() {
		require.NoError(t, err)
		copied := *a
		copied.ItemIdentifiers, copied.Roles = nil, slices.Clone(a.Roles)
		for i := range copied.Roles {
			copied.Roles[i].ItemIdentifiers = nil
		}
		require.NoError(t, plain.PutAssociation(&copied))
	}
	return dump(t, &plain)
}

// snapshot returns the state as a subscriber reads it.
func (p *publisher) snapshot() *fragment.Map {
	var b bytes.Buffer
	require.NoError(p.t, fragment.WriteSnapshot(&b, &p.state, p.served()))
	m, err := fragment.ReadSnapshot(p.t.Context(), &b, p.options())
	require.NoError(p.t, err)
	return m
}

// subscriber follows the log from its mark.
type subscriber struct {
	state  merge.Memory
	mark   int  // entries of the log that are applied
	covers bool // covered entries are passed over
}

// waiting is a subscriber that cannot have each entry at once. The entries that it could not have are in quarantine,
// and are applied late.
type waiting struct {
	subscriber
	quarantine map[fragment.Ref]int // entries of the log by TopicSI
	owed       map[fragment.Ref]int // likewise, covered ones that were passed over
	late       int                  // entries that were applied late
}

// round applies the log up to an entry, but for entries that cannot be had. Then it applies the entries that were in
// quarantine before the round and can be had now, unless the log has a later entry under its TopicSI.
func (w *waiting) round(p *publisher, until int, coalesce bool, had func(int) bool) {
	before, from := maps.Clone(w.quarantine), w.mark
	last := p.last(from, until, w.covers)
	for ; w.mark < until; w.mark++ {
		l := p.log[w.mark]
		topic := l.entry.TopicSI
		_, missing := w.quarantine[topic]
		later, again := last[topic]
		switch {
		case coalesce && again && later > w.mark:
			continue
		case w.covers && l.entry.Covered && !missing:
			w.owed[topic] = w.mark
			continue
		case had(w.mark):
			require.NoError(p.t, merge.Apply(&w.state, l.parsed))
			delete(w.quarantine, topic)
		default:
			w.quarantine[topic] = w.mark
		}
		delete(w.owed, topic)
	}
	later := map[fragment.Ref]bool{}
	for i := from; i < len(p.log); i++ {
		later[p.log[i].entry.TopicSI] = true
	}
	for _, topic := range slices.SortedFunc(maps.Keys(before), func(a, b fragment.Ref) int { return before[a] - before[b] }) {
		at := before[topic]
		if now, ok := w.quarantine[topic]; !ok || now != at || later[topic] || !had(at) {
			continue
		}
		require.NoError(p.t, merge.ApplyLate(&w.state, p.log[at].parsed))
		once := dump(p.t, &w.state)
		require.NoError(p.t, merge.ApplyLate(&w.state, p.log[at].parsed))
		require.Equal(p.t, once, dump(p.t, &w.state), "applying an entry late again changes nothing")
		delete(w.quarantine, topic)
		w.late++
	}
	if until < len(p.log) {
		return
	}
	if len(w.quarantine) > 0 {
		for _, topic := range slices.SortedFunc(maps.Keys(w.owed), func(a, b fragment.Ref) int { return w.owed[a] - w.owed[b] }) {
			require.NoError(p.t, merge.ApplyLate(&w.state, p.log[w.owed[topic]].parsed))
			p.paid++
		}
	}
	clear(w.owed)
}

// round applies the log up to an entry, oldest first; coalesced, only the last
// for each TopicSI.
func (s *subscriber) round(p *publisher, until int, coalesce, twice bool) {
	last := p.last(s.mark, until, s.covers)
	for ; s.mark < until; s.mark++ {
		l := p.log[s.mark]
		later, again := last[l.entry.TopicSI]
		if coalesce && again && later > s.mark {
			continue
		}
		if s.covers && l.entry.Covered {
			p.passed++
			continue
		}
		require.NoError(p.t, merge.Apply(&s.state, l.parsed))
		if twice {
			before := dump(p.t, &s.state)
			require.NoError(p.t, merge.Apply(&s.state, l.parsed))
			require.Equal(p.t, before, dump(p.t, &s.state), "applying an entry again changes nothing")
		}
	}
}

// TestHistories runs random histories of edits. Subscribers that start at
// different times, from snapshots or from the beginning of the log, in partial
// rounds, coalescing or not, with duplicates and replays of everything after
// some entry, or with entries that cannot be had for a while, end with the publisher's
// state, record for record.
func TestHistories(t *testing.T) {
	require.Positive(t, histories())
	entries, late, passed, paid := 0, 0, 0, 0
	for n := range uint64(histories()) {
		seed := testenv.Seed() + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &publisher{t: t}
			entries += runHistory(t, seed, p, nil)
			late, passed, paid = late+p.late, passed+p.passed, paid+p.paid
		})
		if t.Failed() {
			return
		}
	}
	require.Greater(t, entries, histories()*10, "the histories published too little to mean anything")
	require.Greater(t, late, histories()*2, "too little was applied late to mean anything")
	require.Greater(t, passed, histories()*3, "too little was covered to mean anything")
	require.Greater(t, paid, histories()/10, "too little was owed to mean anything")
}

// TestHistoriesInXTM10 is TestHistories for subscribers that can only read
// XTM 1.0. Statements that it cannot carry are lost alike in fragments and snapshots.
func TestHistoriesInXTM10(t *testing.T) {
	for n := range uint64(histories() / 3) {
		seed := testenv.Seed() + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			require.Positive(t, runHistory(t, seed, &publisher{t: t, form: xtm.V10}, nil))
		})
		if t.Failed() {
			return
		}
	}
}

// runHistory runs one history and returns how many entries it published. The
// edit more, if any, is made beside those of testedit.
func runHistory(t *testing.T, seed uint64, p *publisher, more func(*rand.Rand, *tmdm.TopicMap) string) int {
	rng := rand.New(rand.NewPCG(seed, 7))
	p.omit = rng.IntN(2) == 0
	defer func() {
		if t.Failed() {
			t.Logf("edits:\n%s", strings.Join(p.edits, "\n"))
			for i, l := range p.log {
				t.Logf("entry %d (commit %d) TopicSI %s deleted %v\n%s", i, l.commit, l.entry.TopicSI, l.entry.Deleted, l.xtm)
			}
		}
	}()
	tm := testedit.SmallMap(sp)
	editor := testedit.New(tm, sp, seed)
	var subscribers []*subscriber
	var late []*waiting
	var expected []byte
	for commit := range 2 + rng.IntN(13) {
		for range 1 + rng.IntN(4) {
			p.edits = append(p.edits, fmt.Sprintf("%d: %s", commit, editor.Edit()))
			if more != nil {
				p.edits = append(p.edits, fmt.Sprintf("%d: %s", commit, more(rng, tm)))
			}
		}
		expected = p.publish(tm, commit)
		published := len(p.log)
		p.publish(tm, commit)
		require.Len(t, p.log, published, "the same version again publishes nothing")
		if rng.IntN(3) == 0 {
			s := &subscriber{covers: rng.IntN(3) > 0}
			if rng.IntN(4) > 0 {
				require.NoError(t, s.state.Load(p.snapshot()))
				s.mark = len(p.log)
			}
			subscribers = append(subscribers, s)
		}
		if commit == 0 || rng.IntN(4) == 0 {
			w := &waiting{quarantine: map[fragment.Ref]int{}, owed: map[fragment.Ref]int{}}
			w.covers = rng.IntN(3) > 0
			require.NoError(t, w.state.Load(p.snapshot()))
			w.mark = len(p.log)
			late = append(late, w)
		}
		for _, w := range late {
			if rng.IntN(3) > 0 {
				until, fails := len(p.log), []float64{.1, .3, .6}[rng.IntN(3)]
				if rng.IntN(2) == 0 {
					until = w.mark + rng.IntN(len(p.log)-w.mark+1)
				}
				w.round(p, until, rng.IntN(2) == 0, func(int) bool { return rng.Float64() >= fails })
			}
		}
		for _, s := range subscribers {
			if rng.IntN(2) == 0 && s.mark < len(p.log) {
				s.round(p, s.mark+rng.IntN(len(p.log)-s.mark+1), rng.IntN(2) == 0, rng.IntN(4) == 0)
			}
			if rng.IntN(6) == 0 {
				s.mark = rng.IntN(s.mark + 1) // go back; every later entry follows
			}
		}
	}
	subscribers = append(subscribers, &subscriber{}, &subscriber{covers: true})
	var fresh merge.Memory
	require.NoError(t, fresh.Load(p.snapshot()))
	for _, w := range late { // one round brings new entries, and the next those that were in quarantine
		for range 2 {
			w.round(p, len(p.log), rng.IntN(2) == 0, func(int) bool { return true })
		}
		require.Empty(t, w.quarantine)
		subscribers = append(subscribers, &w.subscriber)
		p.late += w.late
	}
	for i, s := range subscribers {
		s.round(p, len(p.log), rng.IntN(2) == 0, false)
		if p.form != xtm.V10 {
			require.Equal(t, string(expected), string(joined(t, &s.state)), "subscriber %d", i)
		}
		require.Equal(t, contents(t, &fresh), contents(t, &s.state), "subscriber %d, record for record", i)
	}
	return len(p.log)
}
