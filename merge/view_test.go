package merge_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// TestTheViewSaysWhatJoinSays writes the views of random states as snapshots, reads them back and compares that with
// the result of Join for the same states, item identifiers included. The states are less regular than those of
// publishers: references by any identifier, to topics that have no record, statements that only the joining of others
// makes equal, reifiers that contradict each other.
func TestTheViewSaysWhatJoinSays(t *testing.T) {
	counts := map[string]int{}
	for n := range uint64(histories() * 2) {
		seed := testenv.Seed() + n
		rng := rand.New(rand.NewPCG(seed, 17))
		w := newWild(rng, 1+rng.IntN(4))
		for step := range 3 {
			w.change(t)
			compareViewWithJoin(t, fmt.Sprintf("seed %d, step %d", seed, step), counts, w.parts(rng.IntN(2) == 0))
			if t.Failed() {
				t.Logf("%s", w.dump(t))
				return
			}
		}
	}
	t.Logf("%v", counts)
	for _, what := range []string{"conflicts", "joined", "reifiers joined"} {
		require.Greater(t, counts[what], histories()/4, what)
	}
}

// canonicalWithIDs is the canonical form with the item identifiers of statements.
func canonicalWithIDs(t testing.TB, tm *tmdm.TopicMap) string {
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: sp}))
	return b.String()
}

// exported is a source written as a snapshot and read back. A snapshot is the same if records are read one by one.
func exported(t testing.TB, src fragment.Source, at string) (*tmdm.TopicMap, []byte) {
	var b bytes.Buffer
	require.NoError(t, fragment.WriteSnapshot(&b, src, fragment.Form{Version: xtm.V21, SP: sp}))
	var kept bytes.Buffer
	require.NoError(t, fragment.WriteSnapshot(&kept, struct{ fragment.Source }{src}, fragment.Form{Version: xtm.V21, SP: sp}))
	require.Equal(t, kept.String(), b.String(), at)
	tm, err := xtm.Read(t.Context(), bytes.NewReader(b.Bytes()), xtm.Options{Base: sp})
	require.NoError(t, err, "%s\n%s", at, b.Bytes())
	return tm, b.Bytes()
}

func compareViewWithJoin(t *testing.T, at string, counts map[string]int, parts []merge.Part) {
	want, conflicts, err := merge.Join(t.Context(), parts...)
	require.NoError(t, err)
	for topic := range want.Topics() {
		for _, n := range topic.Names() {
			for _, v := range slices.Clone(n.Variants()) {
				if v.Scope() == n.Scope() { // XTM has no such variant
					v.Remove()
				}
			}
		}
	}
	view := merge.NewView(t.Context(), parts...)
	got, text := exported(t, view, at)
	require.Equal(t, canonicalWithIDs(t, want), canonicalWithIDs(t, got), "%s\n%s", at, text)
	found, err := view.Conflicts()
	require.NoError(t, err)
	require.Len(t, found, len(conflicts), at)

	records, topics := 0, 0
	for _, p := range parts {
		for range p.Source.Topics() {
			records++
		}
	}
	last := fragment.Ref("")
	single := merge.NewView(t.Context(), parts...)
	for topic, err := range view.Topics() {
		require.NoError(t, err)
		require.Less(t, last, topic.TopicSI(), "%s: Topics is in order", at)
		last, topics = topic.TopicSI(), topics+1
		for _, si := range topic.SubjectIdentifiers {
			alone, err := single.Topic(si)
			require.NoError(t, err)
			require.Equal(t, topic, alone, "%s: Topic(%s)", at, si)
			id, err := single.Identity(si)
			require.NoError(t, err)
			require.Equal(t, topic.Identity, *id, at)
		}
		for _, sl := range topic.SubjectLocators {
			alone, err := single.TopicBySubjectLocator(sl)
			require.NoError(t, err)
			require.Equal(t, topic, alone, "%s: TopicBySubjectLocator(%s)", at, sl)
		}
		canonical, err := fragment.UnmarshalTopic(fragment.MarshalTopic(topic))
		require.NoError(t, err)
		variants := countVariants(canonical)
		canonical.Canonical()
		if countVariants(canonical) == variants { // topics of two sources that are one may leave a scope that adds nothing
			require.Equal(t, fragment.MarshalTopic(canonical), fragment.MarshalTopic(topic), "%s: records are canonical", at)
		}
	}
	requirePlayers(t, at, view)
	if len(conflicts) > 0 {
		counts["conflicts"]++
	}
	if topics < records {
		counts["joined"]++
	}
	if merge.JoinedReifiers(view) > 0 {
		counts["reifiers joined"]++
	}
}

// requirePlayers checks that AssociationsOf gives each association with each of
// its players, in its part, by key, as Associations gives it.
func requirePlayers(t *testing.T, at string, view *merge.View) {
	type place struct {
		player fragment.Ref
		part   fragment.Part
	}
	want := map[place][]*fragment.Association{}
	keys := map[fragment.AssociationKey]bool{}
	for a, err := range view.Associations() {
		require.NoError(t, err)
		require.False(t, keys[a.Key()], "%s: each once", at)
		keys[a.Key()] = true
		for _, p := range a.Players() {
			want[place{p, a.Part(p)}] = append(want[place{p, a.Part(p)}], a)
		}
	}
	for _, list := range want {
		slices.SortFunc(list, func(a, b *fragment.Association) int {
			x, y := a.Key(), b.Key()
			return bytes.Compare(x[:], y[:])
		})
	}
	for player := range want {
		for _, part := range fragment.Parts {
			var got []*fragment.Association
			for a, err := range view.AssociationsOf(player.player, part) {
				require.NoError(t, err)
				got = append(got, a)
			}
			require.Equal(t, want[place{player.player, part}], got, "%s: %v", at, player)
		}
	}
}

// wild are states of sources that no publisher would publish.
type wild struct {
	rng     *rand.Rand
	states  []*merge.Memory
	sps     []string
	ids     int
	pool    []tmdm.Locator
	reified int // of ten statements, how many
}

func newWild(rng *rand.Rand, n int) *wild {
	w := &wild{rng: rng, reified: rng.IntN(4)}
	for i := range n {
		w.states = append(w.states, &merge.Memory{})
		w.sps = append(w.sps, fmt.Sprintf("http://%d.example.org/maps/", rng.IntN(100)*10+i))
	}
	for i := range 6 + rng.IntN(10) {
		w.pool = append(w.pool, tmdm.Locator(fmt.Sprintf("http://psi.example.org/%c", 'a'+i)))
	}
	if rng.IntN(3) == 0 {
		w.pool = append(w.pool, tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance)
	}
	return w
}

func (w *wild) parts(claims bool) (parts []merge.Part) {
	for i, s := range w.states {
		p := merge.Part{SP: w.sps[i], Source: s, Claims: claims}
		if w.rng.IntN(2) == 0 {
			p.Source = struct{ fragment.Source }{s} // that is not Reified
		}
		parts = append(parts, p)
	}
	return parts
}

func (w *wild) dump(t *testing.T) (all string) {
	for i, s := range w.states {
		all += fmt.Sprintf("%s\n%s\n", w.sps[i], dump(t, s))
	}
	return all
}

func (w *wild) ref() fragment.Ref { return w.pool[w.rng.IntN(len(w.pool))] }

func (w *wild) scope() (refs []fragment.Ref) {
	for w.rng.IntN(4) == 0 {
		refs = append(refs, w.ref())
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

func (w *wild) reifier() fragment.Ref {
	switch {
	case w.rng.IntN(10) >= w.reified:
		return ""
	case w.rng.IntN(3) == 0:
		return w.ref()
	}
	return tmdm.Locator(fmt.Sprintf("http://reifiers.example.org/%d", w.rng.IntN(20)))
}

func (w *wild) given(i int) []tmdm.Locator {
	if w.rng.IntN(4) > 0 {
		return nil
	}
	w.ids++
	return []tmdm.Locator{tmdm.Locator(fmt.Sprintf("%s#s%d", w.sps[i], w.ids))}
}

// change replaces or adds a few records of each source.
func (w *wild) change(t *testing.T) {
	for i, s := range w.states {
		for range 1 + w.rng.IntN(4) {
			w.putTopic(t, i, s)
		}
		for range w.rng.IntN(4) {
			a := w.association(i)
			require.NoError(t, s.PutAssociation(a))
		}
		if w.rng.IntN(2) == 0 {
			for a := range s.Associations() {
				require.NoError(t, s.DeleteAssociation(a))
				break
			}
		}
		for a := range s.Associations() { // a snapshot gives types with their instances
			for _, p := range a.Players() {
				if a.Type == tmdm.PSITypeInstance && !has(t, s, p) {
					require.NoError(t, s.PutTopic(&fragment.Topic{Identity: identity(p), Provisional: true}))
				}
			}
		}
	}
}

// putTopic puts a topic in the place of those that have its identifiers.
func (w *wild) putTopic(t *testing.T, i int, s *merge.Memory) {
	topic := &fragment.Topic{}
	for len(topic.SubjectIdentifiers) == 0 || w.rng.IntN(3) == 0 {
		if si := w.ref(); !slices.Contains(topic.SubjectIdentifiers, si) {
			topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, si)
		}
	}
	if w.rng.IntN(5) == 0 {
		topic.SubjectLocators = []tmdm.Locator{tmdm.Locator(fmt.Sprintf("http://documents.example.org/%d", w.rng.IntN(3)))}
	}
	for range w.rng.IntN(4) {
		n := fragment.Name{Value: fmt.Sprint(w.rng.IntN(3)), Type: tmdm.PSIDefaultNameType, Scope: w.scope(), Reifier: w.reifier(), ItemIdentifiers: w.given(i)}
		if w.rng.IntN(3) == 0 {
			n.Type = w.ref()
		}
		if w.rng.IntN(3) == 0 { // in a scope that will never become the name's
			scope := append(slices.Clone(n.Scope), w.ref(), "http://themes.example.org/of-variants")
			slices.Sort(scope)
			n.Variants = append(n.Variants, fragment.Variant{Value: "v", Datatype: tmdm.XSDString, Scope: slices.Compact(scope), Reifier: w.reifier(), ItemIdentifiers: w.given(i)})
		}
		topic.Names = append(topic.Names, n)
	}
	for range w.rng.IntN(3) {
		topic.Occurrences = append(topic.Occurrences, fragment.Occurrence{
			Value: fmt.Sprint(w.rng.IntN(2)), Datatype: tmdm.XSDString, Type: w.ref(), Scope: w.scope(), Reifier: w.reifier(), ItemIdentifiers: w.given(i)})
	}
	topic.Canonical()
	for _, si := range topic.SubjectIdentifiers {
		old, _ := s.Topic(si)
		if old != nil {
			require.NoError(t, s.DeleteTopic(old))
		}
	}
	for _, sl := range topic.SubjectLocators {
		old, _ := s.TopicBySubjectLocator(sl)
		if old != nil {
			require.NoError(t, s.DeleteTopic(old))
		}
	}
	require.NoError(t, s.PutTopic(topic))
}

func (w *wild) association(i int) *fragment.Association {
	a := &fragment.Association{Type: w.ref(), Scope: w.scope(), Reifier: w.reifier(), ItemIdentifiers: w.given(i)}
	for len(a.Roles) == 0 || w.rng.IntN(2) == 0 {
		a.Roles = append(a.Roles, fragment.Role{Type: w.ref(), Player: w.ref(), Reifier: w.reifier(), ItemIdentifiers: w.given(i)})
	}
	if w.rng.IntN(2) == 0 {
		a = &fragment.Association{Type: tmdm.PSITypeInstance, Reifier: w.reifier(), ItemIdentifiers: w.given(i), Roles: []fragment.Role{
			{Type: tmdm.PSIInstance, Player: w.ref()}, {Type: tmdm.PSIType, Player: w.ref()}}}
	}
	a.Canonical()
	return a
}

func countVariants(t *fragment.Topic) (n int) {
	for i := range t.Names {
		n += len(t.Names[i].Variants)
	}
	return n
}
