package e2e_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/faults"
	kit "github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/merge"
)

func topicMap(topics string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + topics + `</topicMap>`
}

func named(name string) string {
	return `<topic id="a"><subjectIdentifier href="http://psi.example.org/a"/><name><value>` + name + `</value></name></topic>`
}

// victim is a node that follows a good and a bad source, and derives a collection from both.
type victim struct {
	*kit.Origin
	*client.Client
	mu     sync.Mutex
	report []string
}

func newVictim(t *testing.T, bad, good *kit.Origin, replicate bool, replicas ...string) *victim {
	v := &victim{Origin: kit.New(t)}
	var err error
	v.Client, err = client.New(client.Config{Protocols: ext.Protocols(), Store: v.DB, Logger: quiet, Backoff: time.Millisecond, Report: func(line string) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.report = append(v.report, line)
	}})
	require.NoError(t, err)
	for _, o := range []*kit.Origin{bad, good} {
		name, options := "bad", client.SubscribeOptions{Replicate: replicate, Replicas: replicas}
		if o == good {
			name, options = "good", client.SubscribeOptions{}
		}
		_, err := v.Subscribe(t.Context(), o.FeedURL(name), options)
		require.NoError(t, err)
		_, err = v.Sync(t.Context(), name)
		require.NoError(t, err)
	}
	_, err = v.DB.CreateCollection(t.Context(), store.Collection{Name: "all", SP: "http://all.example.org/", DerivedFrom: []string{"bad", "good"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	v.derive(t)
	return v
}

func (v *victim) derive(t *testing.T) {
	_, err := derive.CatchUp(t.Context(), v.DB, "all")
	require.NoError(t, err)
}

// sync does a round of a source, and returns all its messages: its error, its report, the reason why it is not proven,
// and the quarantine.
func (v *victim) sync(t *testing.T, name string) (all string, r *client.Round) {
	v.mu.Lock()
	v.report = nil
	v.mu.Unlock()
	r, err := v.Sync(context.Background(), name)
	if err != nil {
		all = err.Error() + "\n"
	} else {
		all = r.Unproven + "\n" + r.Reason + "\n"
	}
	s, err := v.DB.Subscription(t.Context(), name)
	require.NoError(t, err)
	quarantined, err := v.DB.Quarantine(t.Context(), s.Name)
	require.NoError(t, err)
	for _, q := range quarantined {
		all += q.Error + "\n"
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return all + strings.Join(v.report, "\n"), r
}

var digestOf = regexp.MustCompile(`(<own:digest>1:)[0-9a-f]{8}`)

// TestBadPeers makes a source violate the protocol for a subscriber, a replica, and derived collections of both. The
// source is reported with the remedy, or its violation has no effect. No other data is affected: the other source
// continues, and its statements are visible.
func TestBadPeers(t *testing.T) {
	for name, c := range map[string]struct {
		evil  func(o *kit.Origin, sync func()) // the behaviour of the source from now on
		says  string                           // with this it is reported
		shows string                           // the name that the source is taken to state
	}{
		"lies about digests": {
			evil: func(o *kit.Origin, _ func()) {
				o.PutAs("bad", topicMap(named("Evil")))
				o.BreakWith(faults.Rewriting(kit.IsRecent, func(body string) string { return digestOf.ReplaceAllString(body, "${1}00000000") }))
			},
			says: `"replace bad" starts afresh`, shows: "Evil",
		},
		"replays an old feed": {
			evil: func(o *kit.Origin, sync func()) {
				old := o.Get("/topicmaps/bad/fragments")
				o.PutAs("bad", topicMap(named("Later")))
				sync()
				o.BreakWith(faults.Rewriting(kit.IsRecent, func(string) string { return old }))
			},
			says: "in doubt since", shows: "Later", // a feed that is older than the copy is no history yet
		},
		"claims foreign item identifiers": {
			evil: func(o *kit.Origin, _ func()) {
				o.PutAs("bad", topicMap(named("Evil")))
				o.BreakWith(faults.Rewriting(kit.IsFragment, func(body string) string {
					foreign := func(id string) string { return `<itemIdentity href="http://good.example.org/` + id + `"/>` }
					return strings.Replace(strings.Replace(body, "<name>", "<name>"+foreign("n"), 1), "<topic>", "<topic>"+foreign("t"), 1)
				}))
			},
			shows: "Evil",
		},
		"says what another says": {
			evil:  func(o *kit.Origin, _ func()) { o.PutAs("bad", topicMap(named("Good"))) },
			shows: "Good",
		},
		"alters its topics": {
			evil: func(o *kit.Origin, _ func()) {
				o.PutAs("bad", topicMap(named("Evil")))
				o.BreakWith(faults.Rewriting(kit.IsFragment, func(body string) string { return strings.ReplaceAll(body, ">Evil<", ">Forged<") }))
			},
			says: "topics that differ from what the source states: 1", shows: "Evil",
		},
		"alters all that it says, but for digests": {
			evil: func(o *kit.Origin, _ func()) {
				o.PutAs("bad", topicMap(named("Evil")))
				o.BreakWith(faults.Rewriting(func(r *http.Request) bool { return !kit.IsRecent(r) }, func(body string) string { return strings.ReplaceAll(body, ">Evil<", ">Forged<") }))
			},
			says: `"replace bad" starts afresh`, shows: "Forged",
		},
	} {
		for _, replicate := range []bool{false, true} {
			kind := map[bool]string{false: "subscription", true: "replica"}[replicate]
			t.Run(name+"/"+kind, func(t *testing.T) {
				bad, good := kit.New(t), kit.New(t)
				bad.Create("bad", topicMap(named("Before")))
				good.CreateWithPrefix("good", "http://good.example.org/", topicMap(named("Good")))
				v := newVictim(t, bad, good, replicate)
				c.evil(bad, func() { v.sync(t, "bad") })
				output := ""
				for range 3 {
					more, _ := v.sync(t, "bad")
					output += more
				}
				require.Contains(t, output, c.says)
				v.shows(t, c.shows, "Good")

				good.PutAs("good", topicMap(named("Better")))
				_, r := v.sync(t, "good")
				require.True(t, r.Proven, "the other source goes on")
				v.shows(t, c.shows, "Better")
				source, _, err := merged.View{Store: v.DB, Report: v.Client.Report}.Map(t.Context(), true, "good")
				require.NoError(t, err)
				require.Equal(t, canonical(t, readXTM(t, []byte(topicMap(named("Better"))), "http://good.example.org/", false), ""), canonical(t, source, ""), "what the other source says is as it was said")

				bad.BreakWith(nil)
				bad.PutAs("bad", topicMap(named("Mended")))
				_, r = v.sync(t, "bad")
				require.True(t, r.Proven, "nothing stays")
				v.shows(t, "Mended", "Better")
			})
		}
	}
}

// shows checks that the topic has exactly these names, in the merged view and in the derived collection, and that each
// claim has its source.
func (v *victim) shows(t *testing.T, bad, good string) {
	t.Helper()
	v.derive(t)
	want := map[string]bool{bad: true, good: true}
	tm, _, err := merged.View{Store: v.DB, Report: v.Client.Report}.Map(t.Context(), true)
	require.NoError(t, err)
	got := map[string]bool{}
	for _, n := range tm.TopicBySubjectIdentifier("http://psi.example.org/a").Names() {
		got[n.Value()] = true
		require.NotEmpty(t, n.ItemIdentifiers())
		for _, id := range n.ItemIdentifiers() {
			if bad != good {
				require.Equal(t, n.Value() == good, strings.HasPrefix(string(id), "http://good.example.org/"), "%q is said to be of the wrong source: %s", n.Value(), id)
			}
		}
	}
	require.Equal(t, want, got)
	v.says(t, slices.Collect(maps.Keys(want))...)
}

// TestReplicaThatAltersHistory reads a replica while the origin is unavailable. Its changes are not proven, and are
// removed when the origin is available again.
func TestReplicaThatAltersHistory(t *testing.T) {
	for _, replicate := range []bool{false, true} {
		origin, good := kit.New(t), kit.New(t)
		origin.Create("bad", topicMap(named("Before")))
		good.CreateWithPrefix("good", "http://good.example.org/", topicMap(named("Good")))
		between := newVictim(t, origin, good, true)
		v := newVictim(t, origin, good, replicate, between.FeedURL("bad"))
		origin.PutAs("bad", topicMap(named("True")))
		between.sync(t, "bad")
		origin.BreakWith(faults.Some(func(*http.Request) bool { return true }, faults.Always, faults.Answering(http.StatusNotFound)))
		between.BreakWith(faults.Rewriting(func(r *http.Request) bool { return !kit.IsRecent(r) }, func(body string) string { return strings.ReplaceAll(body, ">True<", ">Forged<") }))
		output, r := v.sync(t, "bad")
		require.False(t, r.Proven)
		require.Contains(t, output, `"replace bad" starts afresh`)
		v.shows(t, "Forged", "Good")
		_, r = v.sync(t, "good")
		require.True(t, r.Proven, "the other source goes on")
		origin.BreakWith(nil)
		_, r = v.sync(t, "bad")
		require.True(t, r.Proven, "%+v", r)
		v.shows(t, "True", "Good")
	}
}

// derivedFrom matches the inputs of a derived feed.
var derivedFrom = regexp.MustCompile(`<link rel="[^"]*derived-from"[^>]*>`)

// TestDerivedFeedsThatAreSaidToBePrimary makes two nodes derive from each other, because neither feed states that it is
// derived. If entries have their source entries, this is detected and reported with the first of them, and ends.
// Otherwise it is bounded: the nodes end without new entries. A former statement is kept alive between them, until one
// ends its subscription and derives without it.
func TestDerivedFeedsThatAreSaidToBePrimary(t *testing.T) {
	for name, hidden := range map[string]*regexp.Regexp{"entries tell": derivedFrom, "nothing tells": regexp.MustCompile(derivedFrom.String() + `|<link rel="via"[^>]*>`)} {
		t.Run(name, func(t *testing.T) { feedEachOther(t, hidden, name == "nothing tells") })
	}
}

func feedEachOther(t *testing.T, hidden *regexp.Regexp, unnoticed bool) {
	var nodes [2]*victim
	for i := range nodes {
		v := &victim{Origin: kit.New(t)}
		var err error
		v.Client, err = client.New(client.Config{Protocols: ext.Protocols(), Store: v.DB, Logger: quiet, Backoff: time.Millisecond, Report: func(line string) { v.report = append(v.report, line) }})
		require.NoError(t, err)
		v.Create("own", topicMap(named([]string{"North", "South"}[i])))
		_, err = v.DB.CreateCollection(t.Context(), store.Collection{Name: "all", SP: v.SP("all"), DerivedFrom: []string{"own"}}, &merge.Memory{}, nil)
		require.NoError(t, err)
		v.derive(t)
		v.BreakWith(faults.Rewriting(kit.IsRecent, func(body string) string { return hidden.ReplaceAllString(body, "") }))
		nodes[i] = v
	}
	for i, v := range nodes {
		_, err := v.Subscribe(t.Context(), nodes[1-i].FeedURL("all"), client.SubscribeOptions{Name: "other"})
		require.NoError(t, err)
		_, err = v.Sync(t.Context(), "other")
		require.NoError(t, err)
		require.NoError(t, v.DB.DeleteCollection(t.Context(), "all", ""))
		_, err = v.DB.CreateCollection(t.Context(), store.Collection{Name: "all", SP: v.SP("all"), DerivedFrom: []string{"own", "other"}}, &merge.Memory{}, nil)
		require.NoError(t, err, "nothing says that the other is derived")
		v.derive(t)
	}
	silent := func() {
		t.Helper()
		for round := 0; ; round++ {
			require.Less(t, round, 6, "they never fall silent")
			entries := 0
			for _, v := range nodes {
				r, err := v.Sync(t.Context(), "other")
				if errors.As(err, new(*follow.DoubtError)) { // the other collection has a new history
					r, err = v.Confirm(t.Context(), "other")
				}
				require.NoError(t, err)
				entries += r.Entries
				v.derive(t)
			}
			if entries == 0 && round > 0 {
				return
			}
		}
	}
	silent()
	nodes[0].PutAs("own", topicMap(named("Northern")))
	silent()
	if !unnoticed {
		require.Contains(t, strings.Join(nodes[1].report, "\n"), `is derived from `+nodes[0].FeedURL("own")+`; nothing is derived from it here: "expand other" follows these instead`)
		nodes[0].says(t, "Northern")
		nodes[1].says(t, "South")
		return
	}
	for _, v := range nodes {
		require.NotContains(t, strings.Join(v.report, "\n"), "derived")
		v.says(t, "North", "Northern", "South") // "North" is kept alive
	}
	for i, v := range nodes {
		require.NoError(t, v.Unsubscribe(t.Context(), "other"))
		_, err := v.DB.DeriveAgain(t.Context(), "all", []string{"own"}, nil, func(*store.Settings) error { return nil })
		require.NoError(t, err)
		v.derive(t)
		v.says(t, []string{"Northern", "South"}[i])
	}
}

// says checks the names of the topic in the derived collection.
func (v *victim) says(t *testing.T, names ...string) {
	t.Helper()
	require.NoError(t, v.DB.View(t.Context(), "all", func(in *store.View) error {
		topic, err := in.Source().Topic("http://psi.example.org/a")
		require.NoError(t, err)
		var got []string
		for _, n := range topic.Names {
			got = append(got, n.Value)
		}
		require.ElementsMatch(t, names, got)
		return nil
	}))
}
