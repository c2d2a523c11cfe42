package derive_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

const sp = "http://derived.example.org/"

// source is an edited map, its published state, and the state of a subscriber of this node.
type source struct {
	sp        string
	input     *tmdm.TopicMap
	editor    *testedit.Editor
	published merge.Memory
	here      noting               // the state that is derived from
	waiting   []*fragment.Fragment // not yet applied by the subscriber
	own       bool                 // the state is that of the publisher
}

// noting is a state that records the references affected by its changes, and the former records of these.
type noting struct {
	merge.Memory
	dirty  map[fragment.Ref]bool
	before map[fragment.Ref]*fragment.Topic
}

func (n *noting) note(t *fragment.Topic) error {
	ref := t.TopicSI()
	was, err := n.Memory.Topic(ref)
	if was != nil && was.TopicSI() != ref {
		was = nil
	}
	if _, noted := n.before[ref]; !noted {
		n.before[ref] = was
	}
	return err
}

// take returns the changed references, and the republished ones, for which want returns true.
func (n *noting) take(t *testing.T, want func() bool) (dirty, restated []fragment.Ref) {
	for _, ref := range slices.Sorted(maps.Keys(n.before)) {
		next, err := n.Memory.Topic(ref)
		require.NoError(t, err)
		was := n.before[ref]
		switch {
		case n.dirty[ref]: // anyway
		case !want():
			continue
		case was == nil, next == nil, next.TopicSI() != ref, !slices.Equal(was.SubjectIdentifiers, next.SubjectIdentifiers),
			!slices.Equal(was.SubjectLocators, next.SubjectLocators), was.HasReifiers(), next.HasReifiers():
			dirty = append(dirty, ref)
		default:
			restated = append(restated, ref)
		}
		delete(n.before, ref)
	}
	for _, ref := range slices.Sorted(maps.Keys(n.dirty)) {
		if want() {
			dirty = append(dirty, ref)
			delete(n.dirty, ref)
		}
	}
	return dirty, restated
}

func (n *noting) PutTopic(t *fragment.Topic) error {
	if err := n.note(t); err != nil {
		return err
	}
	return n.Memory.PutTopic(t)
}

func (n *noting) DeleteTopic(t *fragment.Topic) error {
	if err := n.note(t); err != nil {
		return err
	}
	return n.Memory.DeleteTopic(t)
}

func (n *noting) players(a *fragment.Association) {
	for _, p := range a.Players() {
		n.dirty[p] = true
	}
}

func (n *noting) PutAssociation(a *fragment.Association) error {
	n.players(a)
	return n.Memory.PutAssociation(a)
}

func (n *noting) DeleteAssociation(a *fragment.Association) error {
	n.players(a)
	return n.Memory.DeleteAssociation(a)
}

func (s *source) publish(t *testing.T) {
	var doc bytes.Buffer
	_, err := xtm.Write(&doc, s.input, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(s.sp)})
	require.NoError(t, err)
	tm, err := xtm.Read(t.Context(), &doc, xtm.Options{Base: tmdm.Locator(s.sp)})
	require.NoError(t, err)
	next, err := fragment.NameTopics(t.Context(), tm, s.sp, &s.published)
	require.NoError(t, err)
	change, err := fragment.Diff(t.Context(), &s.published, next)
	require.NoError(t, err)
	require.NoError(t, records.ApplyChange(&s.published, change))
	if s.own {
		require.NoError(t, records.ApplyChange(&s.here, change))
		return
	}
	s.waiting = append(s.waiting, fragments(t, &s.published, s.sp, change)...)
}

// receive applies n of the entries that wait, or all.
func (s *source) receive(t *testing.T, n int) {
	n = min(n, len(s.waiting))
	for _, f := range s.waiting[:n] {
		require.NoError(t, merge.Apply(&s.here, f))
	}
	s.waiting = s.waiting[n:]
}

func fragments(t *testing.T, src fragment.Source, sp string, change *fragment.Change) (all []*fragment.Fragment) {
	for _, e := range change.Entries {
		var b bytes.Buffer
		require.NoError(t, e.Write(&b, src, fragment.Form{Version: xtm.V21, SP: sp}))
		f, err := fragment.Read(t.Context(), bytes.NewReader(b.Bytes()), xtm.Options{Base: tmdm.Locator(sp)}, e.TopicSI)
		require.NoError(t, err, "%s", b.Bytes())
		f.Deleted = e.Deleted
		all = append(all, f)
	}
	return all
}

func canonical(t *testing.T, f *store.Filter, parts ...merge.Part) string {
	tm, _, err := merge.Join(t.Context(), parts...)
	require.NoError(t, err)
	keep(t, tm, f, parts)
	for topic := range tm.Topics() {
		for _, n := range topic.Names() {
			for _, v := range slices.Clone(n.Variants()) {
				if v.Scope() == n.Scope() { // such variants are not allowed
					v.Remove()
				}
			}
		}
	}
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: sp, OmitItemIdentifiers: true}))
	return b.String()
}

// dump lists the records of a source.
func dump(t *testing.T, src fragment.Source) string {
	var lines []string
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%q", fragment.MarshalTopic(topic)))
	}
	for a, err := range src.Associations() {
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%q", fragment.MarshalAssociation(a)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// derived is a published state that is kept in step, and a subscriber of it.
type derived struct {
	state    merge.Memory
	replayed merge.Memory
	settled  map[string][]fragment.Ref
	later    []fragment.Ref
	filter   *store.Filter
	meant    [][]fragment.Ref
}

func (d *derived) update(t *testing.T, parts []merge.Part, most int, dirty []fragment.Ref, restated ...fragment.Ref) *fragment.Change {
	view := merge.NewView(t.Context(), parts...)
	settlements, err := view.Settlements()
	require.NoError(t, err)
	now := map[string][]fragment.Ref{}
	for _, s := range settlements {
		now[s.Key] = s.Topics
		if d.settled[s.Key] == nil {
			dirty = append(dirty, s.Topics...)
		}
	}
	for key, topics := range d.settled {
		if now[key] == nil {
			dirty = append(dirty, topics...)
		}
	}
	d.settled = now
	f, err := derive.Resolve(view, d.filter)
	require.NoError(t, err)
	if !reflect.DeepEqual(f.Meant(), d.meant) {
		d.meant = f.Meant()
		for topic, err := range view.Topics() {
			require.NoError(t, err)
			dirty = append(dirty, topic.SubjectIdentifiers...)
		}
	}
	u, err := derive.Between(t.Context(), &d.state, view, f, most, restated, append(dirty, d.later...)...)
	require.NoError(t, err)
	d.later = u.Later
	require.NoError(t, records.ApplyChange(&d.state, u.Change))
	d.requireSound(t)
	for _, f := range fragments(t, &d.state, sp, u.Change) {
		require.NoError(t, merge.Apply(&d.replayed, f))
	}
	return u.Change
}

// requireSound checks that all references are TopicSIs of topics.
func (d *derived) requireSound(t *testing.T) {
	check := func(ref fragment.Ref) {
		topic, err := d.state.Topic(ref)
		require.NoError(t, err)
		require.NotNil(t, topic, ref)
		require.Equal(t, ref, topic.TopicSI())
	}
	for topic := range d.state.Topics() {
		topic.Mentions(check)
	}
	for a := range d.state.Associations() {
		a.Mentions(check)
		for _, p := range a.Players() {
			check(p)
		}
	}
}

// histories runs n random histories, each from its seed, until one fails, and then logs its messages. It returns the
// sums of the counts of the histories.
func histories(t *testing.T, n int, run func(t *testing.T, seed uint64, say func(...string)) (a, b int)) (a, b int) {
	for i := range uint64(n) {
		seed := testenv.Seed() + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var steps []string
			defer func() {
				if t.Failed() {
					t.Log(strings.Join(steps, "\n"))
				}
			}()
			x, y := run(t, seed, func(lines ...string) { steps = append(steps, lines...) })
			a, b = a+x, b+y
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	return a, b
}

// TestUpdatesGiveTheView runs random histories of sources with the same subjects. After each change of one, the update
// of the affected topics equals the view, and so does the replayed feed.
func TestUpdatesGiveTheView(t *testing.T) {
	n := testenv.Rounds(60, 3000)
	restated := 0
	entries, joined := histories(t, n, func(t *testing.T, seed uint64, say func(...string)) (entries, joined int) {
		entries, joined, topics := runUpdates(t, seed, say)
		restated += topics
		return entries, joined
	})
	require.Greater(t, entries, n*5, "too little was published to mean anything")
	require.Positive(t, restated, "no topic had only its statements changed")
	require.Positive(t, joined, "reifiers were joined too rarely to mean anything")
}

func runUpdates(t *testing.T, seed uint64, say func(...string)) (entries, joined, restatements int) {
	rng := rand.New(rand.NewPCG(seed, 31))
	var sources []*source
	for i := range 1 + rng.IntN(4) {
		s := &source{sp: fmt.Sprintf("http://%d.example.org/maps/", i), input: testedit.SmallMap(sp), own: rng.IntN(2) == 0}
		s.here.dirty, s.here.before = map[fragment.Ref]bool{}, map[fragment.Ref]*fragment.Topic{}
		s.editor = testedit.New(s.input, s.sp, seed*8+uint64(i))
		sources = append(sources, s)
	}
	var d derived
	if rng.IntN(2) == 0 {
		d.filter = anyFilter(rng)
		say(fmt.Sprintf("filter: %+v", d.filter))
	}
	for commit := range 6 + rng.IntN(10) {
		i := rng.IntN(len(sources))
		s := sources[i]
		for range 1 + rng.IntN(4) {
			say(fmt.Sprintf("%d, source %d: %s", commit, i, s.editor.Edit()))
			say(share(rng, s.input)...)
		}
		s.publish(t)
		s.receive(t, 1+rng.IntN(10))
		if rng.IntN(4) == 0 {
			for _, s := range sources {
				s.receive(t, len(s.waiting))
			}
		}
		var parts []merge.Part
		var dirty, restated []fragment.Ref
		take := func(want func() bool) {
			dirty, restated = nil, nil
			for _, s := range sources {
				all, statements := s.here.take(t, want)
				dirty, restated = append(dirty, all...), append(restated, statements...)
			}
			slices.Sort(dirty)
		}
		for _, s := range sources {
			parts = append(parts, merge.Part{SP: s.sp, Source: &s.here, Published: s.own})
		}
		take(func() bool { return rng.IntN(4) > 0 }) // the others are checked later
		most := rng.IntN(3)
		entries += len(d.update(t, parts, most, dirty, restated...).Entries)
		restatements += len(restated)
		if len(d.settled) > 0 {
			joined++
		}
		if rng.IntN(2) == 0 {
			continue
		}
		take(func() bool { return true })
		d.update(t, parts, 1000, dirty, restated...)
		require.Empty(t, d.later)
		require.Equal(t, dump(t, &d.state), dump(t, &d.replayed), "the feed gives what is published")
		if d.filter != nil && vocabularyMerged(t, parts) {
			require.Equal(t, atOnce(t, d.filter, parts), canonical(t, nil, merge.Part{SP: sp, Source: &d.state}))
			require.Equal(t, atOnce(t, d.filter, parts), passed(t, d.filter, parts))
			continue
		}
		require.Equal(t, canonical(t, d.filter, parts...), canonical(t, nil, merge.Part{SP: sp, Source: &d.state}), "what is published is what the sources say together")
		require.Empty(t, d.update(t, parts, 1000, nil).Entries)
		var all []fragment.Ref
		for topic := range d.state.Topics() {
			all = append(all, topic.SubjectIdentifiers...)
		}
		change := d.update(t, parts, 1000, all)
		require.True(t, change.Empty(), "what has no effect publishes nothing")
	}
	return entries, joined, restatements
}

// share adds a statement that other sources are likely to have as well.
func share(rng *rand.Rand, tm *tmdm.TopicMap) (shared []string) {
	topics := slices.Collect(tm.Topics())
	any := func() *tmdm.Topic { return topics[rng.IntN(len(topics))] }
	if rng.IntN(2) == 0 {
		si := tmdm.Locator(fmt.Sprintf("http://%c", 'a'+rng.IntN(6)))
		if to := any(); to.AddSubjectIdentifier(si) == nil {
			shared = append(shared, fmt.Sprintf("share %s: %s", si, tmdm.Describe(to)))
		}
	}
	if sub, super := any(), any(); sub != super && rng.IntN(3) == 0 {
		sub.AddSupertype(super)
		shared = append(shared, fmt.Sprintf("share a subtype: %s of %s", tmdm.Describe(sub), tmdm.Describe(super)))
	}
	if rng.IntN(2) == 0 {
		to, r := any(), any()
		n := to.AddName("shared", nil)
		if r.Reified() == nil {
			_ = tmdm.SetReifier(n, r)
		}
		shared = append(shared, "share a name: "+tmdm.Describe(to))
	}
	if rng.IntN(2) == 0 {
		node := tm.CreateTopicBySubjectIdentifier(tmdm.Locator(genid + string(rune('a'+rng.IntN(4)))))
		a := tm.CreateAssociation(any())
		a.AddRole(tm.CreateTopicBySubjectIdentifier(fragment.RDFSubject), any())
		a.AddRole(tm.CreateTopicBySubjectIdentifier(fragment.RDFObject), node)
		node.AddOccurrence("of a node", tmdm.XSDString, any())
		shared = append(shared, "share a node: "+tmdm.Describe(node))
	}
	tm.Normalize(context.Background())
	return shared
}
