package derive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/inputs"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

func TestMain(m *testing.M) { kill.Main(m, kill.Tasks{"fill": fill}) }

// deriveAgain binds a collection to those of its inputs that are named.
func deriveAgain(t *testing.T, db *store.DB, name string, from ...string) {
	_, err := db.DeriveAgain(t.Context(), name, from, nil, func(*store.Settings) error { return nil })
	require.NoError(t, err)
}

func openSmall(t *testing.T, dir string) *store.DB {
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Badger: badger.Small})
	require.NoError(t, err)
	return db
}

// fromTwo makes a collection and a subscription, each with topics of its own, and a collection "all" derived from both.
func fromTwo(t *testing.T, db *store.DB) {
	src := testedit.SmallMap("http://one.example.org/")
	create(t, db, store.Collection{Name: "one", Settings: store.Settings{DocumentSize: 1}}, src)
	follow(t, db, "two", "urn:uuid:00000000-0000-0000-0000-000000000002", "Two")
	create(t, db, store.Collection{Name: "all", DerivedFrom: []string{"one", "two"}}, tmdm.New())
}

func create(t *testing.T, db *store.DB, c store.Collection, tm *tmdm.TopicMap) {
	c.SP = "http://" + c.Name + ".example.org/"
	src, err := fragment.NameTopics(t.Context(), tm, c.SP, &merge.Memory{})
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), c, src, nil)
	require.NoError(t, err)
}

// follow makes a subscription whose source has one topic, with a name.
func follow(t *testing.T, db *store.DB, name, feedID, topic string) {
	require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{
		Name: name, FragmentsFeed: "http://" + name + ".example.org/fragments", SP: "http://" + name + ".example.org/", FeedID: feedID,
	}))
	load(t, db, name, topic)
}

func load(t *testing.T, db *store.DB, name, topic string) {
	var says merge.Memory
	require.NoError(t, says.PutTopic(&fragment.Topic{
		Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{"http://psi.example.org/two"}},
		Names:    []fragment.Name{{Value: topic, Type: tmdm.PSIDefaultNameType}},
	}))
	require.NoError(t, db.StageSource(t.Context(), name, fragment.Records(&says), store.Mark{}, nil))
	s, err := db.Subscription(t.Context(), name)
	require.NoError(t, err)
	require.NoError(t, db.SwitchSource(t.Context(), name, s.Staging.Generation, ""))
}

func catchUp(t *testing.T, db *store.DB, name string) *store.Collection {
	c, err := derive.CatchUp(t.Context(), db, name)
	require.NoError(t, err)
	return c
}

// derivedNames returns the names of the subscription's topic in the derived collection.
func derivedNames(t *testing.T, db *store.DB) (names []string) {
	require.NoError(t, db.View(t.Context(), "all", func(v *store.View) error {
		topic, err := v.Source().Topic("http://psi.example.org/two")
		if topic != nil {
			for _, n := range topic.Names {
				names = append(names, n.Value)
			}
		}
		return err
	}))
	return names
}

func missing(t *testing.T, db *store.DB) (reasons []inputs.State) {
	own, err := db.Collections(t.Context())
	require.NoError(t, err)
	followed, err := db.Subscriptions(t.Context())
	require.NoError(t, err)
	for i := range own {
		for _, in := range inputs.Among(own, followed).States(&own[i]) {
			if in.Missing != "" {
				reasons = append(reasons, in)
			}
		}
	}
	return reasons
}

// TestAnInputThatGoes removes an input, and replaces it by another. The derived collection is unchanged until it is
// bound again, and then gets all changes made meanwhile.
func TestAnInputThatGoes(t *testing.T) {
	db := openSmall(t, t.TempDir())
	defer db.Close()
	fromTwo(t, db)
	head := catchUp(t, db, "all").Head
	require.Equal(t, []string{"Two"}, derivedNames(t, db))
	unchanged := func(why string) {
		require.Equal(t, head, catchUp(t, db, "all").Head)
		require.Equal(t, []string{"Two"}, derivedNames(t, db))
		gone := missing(t, db)
		require.Len(t, gone, 1)
		require.Equal(t, "two", gone[0].Name)
		require.EqualValues(t, why, gone[0].Missing)
	}

	require.NoError(t, db.RemoveSubscription(t.Context(), "two"))
	unchanged("gone")
	more := testedit.SmallMap("http://one.example.org/")
	testedit.New(more, "http://one.example.org/", 1).Edit()
	publishMap(t, db, "one", more)
	unchanged("gone")

	follow(t, db, "two", "urn:uuid:00000000-0000-0000-0000-00000000beef", "Someone else")
	unchanged("another has its name")
	_, err := db.DeriveAgain(t.Context(), "all", []string{"two"}, nil, func(*store.Settings) error { return nil })
	const decided = "is decided for ever"
	require.ErrorContains(t, err, decided, "one is there, and cannot be left out")
	_, err = db.DeriveAgain(t.Context(), "all", []string{"one", "two", "three"}, nil, func(*store.Settings) error { return nil })
	require.ErrorContains(t, err, decided)
	unchanged("another has its name")

	deriveAgain(t, db, "all", "one", "two")
	require.Empty(t, missing(t, db))
	catchUp(t, db, "all")
	require.Equal(t, []string{"Someone else"}, derivedNames(t, db))
	requireDerived(t, db, []string{"one", "two"})

	require.NoError(t, db.RemoveSubscription(t.Context(), "two"))
	deriveAgain(t, db, "all", "one")
	catchUp(t, db, "all")
	require.Empty(t, derivedNames(t, db))
	requireDerived(t, db, []string{"one"})
	follow(t, db, "two", "urn:uuid:00000000-0000-0000-0000-00000000beef", "Someone else")
	catchUp(t, db, "all")
	require.Empty(t, derivedNames(t, db), "it is no input any more")
}

// TestAnInputThatComesBack removes an input and subscribes to the same feed again. No topic is removed in between.
func TestAnInputThatComesBack(t *testing.T) {
	db := openSmall(t, t.TempDir())
	defer db.Close()
	fromTwo(t, db)
	head := catchUp(t, db, "all").Head
	s, err := db.Subscription(t.Context(), "two")
	require.NoError(t, err)
	require.NoError(t, db.RemoveSubscription(t.Context(), "two"))
	require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: "two", FragmentsFeed: s.FragmentsFeed, SP: s.SP, FeedID: s.FeedID}))
	require.Equal(t, head, catchUp(t, db, "all").Head, "the source has not said anything yet")
	require.EqualValues(t, "not loaded yet", missing(t, db)[0].Missing)
	load(t, db, "two", "Two")
	require.Equal(t, head, catchUp(t, db, "all").Head, "it says what it has said")
	load(t, db, "two", "Too")
	catchUp(t, db, "all")
	require.Equal(t, []string{"Too"}, derivedNames(t, db))
	require.Empty(t, missing(t, db))

	// An owner may begin a new history: the subscription stays the same.
	require.NoError(t, db.UpdateSubscription(t.Context(), "two", func(s *store.Subscription) { s.FeedID = "urn:uuid:00000000-0000-0000-0000-00000000cafe" }))
	load(t, db, "two", "Three")
	catchUp(t, db, "all")
	require.Equal(t, []string{"Three"}, derivedNames(t, db))
	_, err = db.BeginEpochs(t.Context()) // as a restore does
	require.NoError(t, err)
	require.Empty(t, missing(t, db))
}

// TestCollectionsFromBeforeInputsWereBound binds them by their names.
func TestCollectionsFromBeforeInputsWereBound(t *testing.T) {
	db := openSmall(t, t.TempDir())
	defer db.Close()
	fromTwo(t, db)
	all, err := db.Collections(t.Context())
	require.NoError(t, err)
	old := all[0]
	require.Equal(t, "all", old.Name)
	old.Inputs = nil
	require.True(t, old.IsInput("two", 12345))
	followed, err := db.Subscriptions(t.Context())
	require.NoError(t, err)
	for _, in := range inputs.Among(all, followed).States(&old) {
		require.Empty(t, in.Missing)
	}
	require.EqualValues(t, "gone", inputs.Among(all, nil).States(&old)[1].Missing)
}

// slow derives one topic in a commit, and prints a line after each.
type slow struct{ *store.DB }

func (s slow) Derive(ctx context.Context, name string, _ int, decide func(*store.Deriving, merge.State) (*fragment.Change, error)) (*store.Collection, bool, error) {
	c, more, err := s.DB.Derive(ctx, name, 1, decide)
	if err == nil && more {
		fmt.Fprintln(os.Stdout, c.Topics)
		time.Sleep(20 * time.Millisecond)
	}
	return c, more, err
}

// fill is the task that fills the collection "all" of a folder.
func fill(args []string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{Dir: args[0], Badger: badger.Small})
	if err != nil {
		return err
	}
	_, err = derive.CatchUp(ctx, slow{db}, "all")
	return errors.Join(err, db.Close())
}

// TestFillingSurvivesAKill kills the process that derives a collection for the first time. The collection is being
// filled until it is whole.
func TestFillingSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	db := openSmall(t, dir)
	fromTwo(t, db)
	filling := func() (filling bool, topics int) {
		require.NoError(t, db.View(t.Context(), "all", func(v *store.View) error { filling, topics = v.Hidden, v.Topics; return nil }))
		return filling, topics
	}
	was, _ := filling()
	require.True(t, was)
	seen := 0
	for range 3 {
		require.NoError(t, db.Close())
		p := kill.Start(t, "fill", dir)
		for range 2 {
			line, ok := p.Line()
			require.True(t, ok, "it ended before it could be killed")
			topics, err := strconv.Atoi(line)
			require.NoError(t, err)
			seen = topics
		}
		require.True(t, p.Kill(0))
		db = openSmall(t, dir)
		is, topics := filling()
		require.True(t, is)
		require.GreaterOrEqual(t, topics, seen)
	}
	require.Positive(t, seen)
	require.False(t, catchUp(t, db, "all").Hidden)
	is, topics := filling()
	require.False(t, is)
	require.GreaterOrEqual(t, topics, seen) // it may have all, and not be visible yet
	requireDerived(t, db, []string{"one", "two"})
	require.NoError(t, db.Close())
}
