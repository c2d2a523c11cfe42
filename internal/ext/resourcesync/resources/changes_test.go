package resources_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

var (
	ref   = storetest.Ref
	named = storetest.Named
)

// create publishes topics as the first version of a collection.
func (p *process) create(s store.Settings, topics ...*fragment.Topic) *store.Collection {
	p.t.Helper()
	m := &merge.Memory{}
	for _, topic := range topics {
		require.NoError(p.t, m.PutTopic(topic))
	}
	c, err := p.CreateCollection(p.t.Context(), store.Collection{Name: "m", SP: sp, Settings: s}, m, nil)
	require.NoError(p.t, err)
	return c
}

func (p *process) change(change *fragment.Change) *store.Collection {
	p.t.Helper()
	c, err := p.Publish(p.t.Context(), "m", func(store.Collection, merge.State) (*fragment.Change, error) { return change, nil })
	require.NoError(p.t, err)
	return c
}

func (p *process) set(change func(*store.Settings)) {
	p.t.Helper()
	_, err := p.ChangeSettings(p.t.Context(), "m", func(s *store.Settings) error { change(s); return nil })
	require.NoError(p.t, err)
}

// prune keeps so many entries, and a snapshot that has all.
func (p *process) prune(entries uint64) {
	p.t.Helper()
	_, err := p.TakeSnapshot(p.t.Context(), "m", 1)
	require.NoError(p.t, err)
	n, err := p.Prune(p.t.Context(), "m", store.Retention{Entries: entries})
	require.NoError(p.t, err)
	require.NotZero(p.t, n)
}

func (p *process) cutAt(now time.Time, after uint64, at time.Time, cut resources.Cut) (c *resources.Changes) {
	p.t.Helper()
	p.view(func(v *store.View, site *resources.Site) {
		var err error
		c, err = p.CutChanges(p.t.Context(), site, "m", after, at, cut, now)
		require.NoError(p.t, err)
	})
	return c
}

func (p *process) cut(after uint64, at time.Time, cut resources.Cut) *resources.Changes {
	p.t.Helper()
	return p.cutAt(time.Now(), after, at, cut)
}

func (p *process) lists() (lists []resources.ChangeList, c *resources.Changes) {
	p.t.Helper()
	p.view(func(v *store.View, _ *resources.Site) {
		var err error
		lists, err = resources.ChangeLists(v)
		require.NoError(p.t, err)
		c, err = resources.ChangesOf(v)
		require.NoError(p.t, err)
	})
	return lists, c
}

// Whatever is published and cut when: the lists have every entry after their beginning once, in order, and each
// begins at the end of the one before. Once there are changes, the one that is open is never empty.
func TestChangeListsAreARowWithoutGaps(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	p := newProcessAt(t, memory.New(), func() time.Time { return now })
	closed := 0
	testenv.Check(t, 15, 100, func(t *rapid.T) {
		defer func() { require.NoError(t, p.DeleteCollection(t.Context(), "m", "")) }()
		begun := p.create(store.Settings{}, named(tmdm.PSIDefaultNameType, "name"), named(ref(0), "first"), named(ref(1), "first"), named(ref(2), "first"))
		head, asked := begun, false
		var known []resources.ChangeList
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				var topics []*fragment.Topic
				for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 1, 8, rapid.ID).Draw(t, "topics") {
					topics = append(topics, named(ref(i), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")))
				}
				head = p.say(topics...)
			},
			"time": func(*rapid.T) { now = now.Add(time.Hour) },
			"cut": func(t *rapid.T) {
				if !asked {
					begun, asked = head, true
				}
				cut := resources.Cut{Changes: rapid.Uint64Range(0, 5).Draw(t, "changes"), After: time.Duration(rapid.IntRange(0, 3).Draw(t, "hours")) * time.Hour}
				got := p.cutAt(now, head.Head, head.Updated, cut)
				open := head.Head + 1 - got.Open
				require.True(t, open > 0 || head.Head == begun.Head, "the last change stays open")
				require.True(t, cut.Changes == 0 || open <= max(cut.Changes, 1), "%d changes are open, and no more than %d ought to be", open, cut.Changes)
				if cut.After > 0 && open > 1 {
					p.view(func(v *store.View, _ *resources.Site) {
						first, err := v.Entry(got.Open)
						require.NoError(t, err)
						require.Less(t, now.Sub(first.Updated), cut.After)
					})
				}
			},
			"": func(t *rapid.T) {
				lists, c := p.lists()
				if !asked {
					require.Empty(t, lists)
					require.Nil(t, c)
					return
				}
				require.Equal(t, known, append([]resources.ChangeList(nil), lists[:len(known)]...), "a closed list stays as it is")
				known = append([]resources.ChangeList(nil), lists...)
				next, from := begun.Head+1, begun.Updated
				p.view(func(v *store.View, _ *resources.Site) {
					for i, l := range lists {
						require.EqualValues(t, i+1, l.Number)
						require.Equal(t, next, l.First)
						require.True(t, from.Equal(l.From))
						last, err := v.Entry(l.Last)
						require.NoError(t, err)
						require.Equal(t, last.Updated, l.Until)
						next, from = l.Last+1, l.Until
					}
				})
				require.EqualValues(t, len(lists), c.Closed)
				require.Equal(t, next, c.Open)
				require.True(t, from.Equal(c.OpenFrom))
			},
		})
		closed += len(known)
	})
	require.Greater(t, closed, testenv.Usual(10, 40), "too few lists to mean anything")
}

func TestChangeListsAreDroppedFromTheOldestOn(t *testing.T) {
	p := newProcess(t, memory.New())
	topics := []*fragment.Topic{named(tmdm.PSIDefaultNameType, "name")}
	for i := range 10 {
		topics = append(topics, named(ref(i), "first"))
	}
	c := p.create(store.Settings{}, topics...)
	p.cut(0, c.Created, resources.Cut{Changes: 3})
	lists, _ := p.lists()
	require.Len(t, lists, 3)
	require.NoError(t, p.DropChangeLists(t.Context(), "m", 2))
	left, _ := p.lists()
	require.Equal(t, lists[2:], left)
	p.say(named(ref(0), "second"), named(ref(1), "second"), named(ref(2), "second"))
	p.cut(0, c.Created, resources.Cut{Changes: 3})
	left, _ = p.lists()
	require.Len(t, left, 2)
	require.EqualValues(t, 4, left[1].Number, "numbers are not used again")
	require.ErrorIs(t, p.DropChangeLists(t.Context(), "none", 2), store.ErrNotFound)
	p.view(func(_ *store.View, site *resources.Site) {
		another := *site
		another.Epoch[0]++
		_, err := p.CutChanges(t.Context(), &another, "m", 0, c.Created, resources.Cut{}, time.Now())
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// Entries that are pruned before they are cut into lists are in none of them.
func TestChangeListsBeginBehindWhatIsPruned(t *testing.T) {
	p, c := publishing(t)
	for i := range 20 {
		p.say(named(ref(1), fmt.Sprint(i)))
	}
	p.cut(0, c.Created, resources.Cut{})
	p.prune(1)
	p.say(named(ref(1), "later"), named(ref(2), "later"))
	p.cut(0, c.Created, resources.Cut{Changes: 1})
	lists, _ := p.lists()
	require.NotEmpty(t, lists)
	p.view(func(v *store.View, _ *resources.Site) {
		require.Equal(t, v.Horizon+1, lists[0].First)
		require.Equal(t, v.HorizonTime, lists[0].From)
	})
}
