package client_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
)

// alias returns a topic with a second subject identifier.
func alias(id, other, name string) string {
	return `<topic><subjectIdentifier href="` + si(id) + `"/><subjectIdentifier href="` + si(other) + `"/><name><value>` + name + `</value></name></topic>`
}

// tombstoneOf reports requests for the tombstone of a topic.
func tombstoneOf(o *origin, id string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		_, body := record(o.Server, r)
		return isFragment(r) && contains(body, si(id)) && !contains(body, "<value>")
	}
}

// entryOf reports requests for the fragments of the entries under a TopicSI.
func entryOf(o *origin, id string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		if !isFragment(r) {
			return false
		}
		about := r.Clone(r.Context())
		about.URL.Path = strings.TrimSuffix(about.URL.Path, ".xtm21") + ".atom"
		about.Header.Set("Accept", "application/atom+xml")
		_, body := record(o.Server, about)
		return contains(body, "TopicSI>"+si(id)+"<")
	}
}

func contains(body []byte, part string) bool { return times([]string{string(body)}, part) > 0 }

// An entry that is applied late must not undo later changes, such as a tombstone whose identifiers another topic has
// now.
func TestTombstoneInQuarantineDoesNotDeleteWhatCameLater(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(alias("a", "x", "A"), topic("b", "B")))
	s := inStep(t, o)
	o.Put(doc(topic("b", "B")))
	o.BreakWith(damage(tombstoneOf(o, "a"), always, answering(500)))
	_, bad := s.syncPasses(1)
	assert.Equal(t, si("a"), bad[0].TopicSI)
	assert.Equal(t, "deleted", bad[0].State)
	s.has(o, doc(alias("a", "x", "A"), topic("b", "B")))

	o.Put(doc(topic("b", "B"), alias("c", "x", "C")))
	s.syncPasses(1)
	o.BreakWith(nil)
	s.syncPasses(0)
	s.has(o, doc(topic("b", "B"), alias("c", "x", "C")))
	assert.True(t, s.verify().Equal)
}

// What is forgotten is not tried again, and stays as it was until the next entry.
func TestForget(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(3, "v2")...))
	o.BreakWith(damage(isFragmentOf(o, "t1"), always, answering(404)))
	s.syncPasses(1)
	n, err := s.Forget(context.Background(), "egov", si("other"))
	require.NoError(t, err)
	assert.Zero(t, n)
	n, err = s.Forget(context.Background(), "egov", si("t1"))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	s.mayDiffer = true
	o.BreakWith(nil)
	s.syncPasses(0)
	s.has(o, doc(topics(3, "v2")[0], topics(3, "v1")[1], topics(3, "v2")[2]))
	assert.False(t, s.verify().Equal, "that it is missing shows")
	_, err = s.Forget(context.Background(), "other")
	assert.ErrorAs(t, err, new(*client.UnknownError))

	o.Put(doc(topics(3, "v3")...))
	s.syncPasses(0)
	assert.True(t, s.verify().Equal)
}

// Retry tries the named topics, and reports missing ones.
func TestRetry(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o, singly)
	o.Put(doc(topics(5, "v2")...))
	o.BreakWith(damage(isFragment, always, answering(404)))
	s.syncPasses(5)
	_, err := s.Retry(context.Background(), "egov", si("t1"), si("other"))
	assert.ErrorContains(t, err, si("other")+" is not in quarantine")
	o.Seen()
	r, err := s.Retry(context.Background(), "egov", si("t1"))
	require.NoError(t, err)
	assert.Equal(t, 5, r.Quarantined)
	assert.Equal(t, 1, fragments(o.Seen()))
	o.BreakWith(nil)
	r, err = s.Retry(context.Background(), "egov", si("t3"))
	require.NoError(t, err)
	assert.Equal(t, 4, r.Quarantined, "it, and no other")
	s.has(o, doc(append(topics(3, "v1"), topics(5, "v2")[3], topics(5, "v1")[4])...))
	s.syncPasses(0)
	s.has(o, doc(topics(5, "v2")...))
}

// An invalid entry is applied once the feed has corrected it, even at another place and for another topic.
func TestEntryThatTheFeedCorrectsIsApplied(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(entry string) string{
		"link":  func(e string) string { return strings.Replace(e, "/data/1", "/nothing", 1) },
		"none":  func(e string) string { return strings.Replace(e, "<link", "<x", 1) },
		"topic": func(e string) string { return strings.Replace(e, si("t1"), si("other"), 1) },
		"names": func(e string) string { return strings.ReplaceAll(e, "t:TopicSI", "t:x") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			e := []string{s.entryOf(0, "t0", "T0"), s.entryOf(1, "t1", "T1"), s.entryOf(2, "t2", "T2"), s.entryOf(3, "t3", "T3")}
			s.feed("/feed", declared, wrong(e[1]), e[0])
			f := following(t, s)
			f.syncPasses(1)
			s.feed("/feed", declared, e[2], wrong(e[1]), e[0])
			f.syncPasses(1)
			f.hasForeign(topic("t0", "T0"), topic("t2", "T2"))
			// It has moved to an archive document, and is still invalid.
			s.feed("/feed", declared+`<link rel="prev-archive" href="/archive/2"/>`, e[3])
			s.feed("/archive/2", `<link rel="prev-archive" href="/archive/1"/>`, e[2], wrong(e[1]))
			s.feed("/archive/1", "", e[0])
			f.syncPasses(1)
			s.Seen()
			f.syncPasses(1)
			assert.Zero(t, times(s.Seen(), "/archive/1"), "it is known where it stands")
			s.feed("/archive/2", `<link rel="prev-archive" href="/archive/1"/>`, e[2], e[1])
			f.syncPasses(0)
			f.hasForeign(topic("t0", "T0"), topic("t1", "T1"), topic("t2", "T2"), topic("t3", "T3"))
		})
	}
}

// The documents in which entries have stood are read some at a time, and each has its turn.
func TestDocumentsOfEntriesInQuarantineAreReadInTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		documents, atMost, rounds int
		change                    func(*client.Config)
	}{
		"many":  {130, 100, 2, func(*client.Config) {}},
		"large": {5, 2, 3, func(c *client.Config) { c.MaxFeed = 4000 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			entry := func(i int) string {
				return strings.Replace(s.entryOf(i, fmt.Sprint("t", i), "T"), fmt.Sprintf(":00:%02dZ", i), fmt.Sprintf(":%02d:%02dZ", i/60, i%60), 1)
			}
			filler := "<!--" + strings.Repeat("x", 2000) + "-->" // so that two documents have more than 4,000 bytes
			path := func(i int) string { return fmt.Sprintf("/archive/%d", i) }
			for i := range c.documents {
				s.feed(path(i), filler+fmt.Sprintf(`<link rel="prev-archive" href="%s"/>`, path(i-1)), strings.Replace(entry(i), "<link", "<x", 1))
			}
			s.feed(path(-1), "")
			s.feed("/feed", declared+fmt.Sprintf(`<link rel="prev-archive" href="%s"/>`, path(c.documents-1)), entry(c.documents))
			f := following(t, s)
			f.syncPasses(c.documents)
			f.configure(c.change)
			seen := map[string]bool{}
			for range c.rounds {
				s.Seen()
				f.syncPasses(c.documents)
				all := s.Seen()
				assert.LessOrEqual(t, times(all, "/archive/"), c.atMost)
				for _, path := range all {
					seen[path] = true
				}
			}
			for i := range c.documents {
				assert.True(t, seen[path(i)], path(i))
			}
		})
	}
}

// A clean replacement has the topics in quarantine.
func TestReplaceEndsTheQuarantine(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(3, "v2")...))
	o.TakeSnapshot()
	o.BreakWith(damage(isFragment, always, answering(404)))
	s.syncPasses(3)
	r, err := s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	assert.Zero(t, r.Quarantined)
	s.has(o, doc(topics(3, "v2")...))
}

// Changes later than one that is applied late are kept, after a crash at any time, and are not fetched again.
func TestCrashWhileAChangeIsAppliedLate(t *testing.T) {
	t.Parallel()
	small := func(c *client.Config) { c.Batch = 2 }
	class := func(name string) string { return topic("class", name) }
	instance := func(id string) string {
		return `<topic><subjectIdentifier href="` + si(id) + `"/><instanceOf><subjectIdentifierRef href="` + si("class") + `"/></instanceOf></topic>`
	}
	for name, c := range map[string]struct{ before, then, later, late string }{
		"tombstone":     {doc(alias("a", "x", "A"), topic("b", "B")), doc(topic("b", "B")), doc(topic("b", "B"), alias("c", "x", "C")), "a"},
		"closing entry": {doc(topic("a", "A"), topic("b", "B"), topic("e", "E")), doc(alias("a", "e", "A"), topic("b", "B")), doc(topic("b", "B"), topic("c", "C")), "e"},
		"class":         {doc(class("old"), instance("a"), instance("b")), doc(class("new"), instance("a"), instance("b")), doc(class("new"), instance("a"), topic("b", "B")), "class"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, c.before)
			s := inStep(t, o, singly, small)
			o.Put(c.then)
			o.BreakWith(damage(entryOf(o, c.late), always, answering(http.StatusBadRequest)))
			s.syncPasses(1)
			o.Put(c.later)
			o.Put(strings.Replace(c.later, "</topicMap>", strings.Join(topics(6, "v1"), "")+"</topicMap>", 1))
			s.syncPasses(1)
			waiting := s.here()["egov"]
			o.BreakWith(nil)
			o.Seen()
			for writes := 1; ; writes++ {
				dying := &dyingStore{Store: s.db, left: writes}
				s.configure(singly, small, func(c *client.Config) { c.Store = dying })
				_, err := s.Sync(context.Background(), "egov")
				s.restart(singly, small)
				if err == nil {
					break
				}
				require.ErrorIs(t, err, errDied)
				require.Less(t, writes, 20)
				if left, err := s.db.Quarantine(t.Context(), "egov"); err != nil || len(left) == 1 {
					require.NoError(t, err)
					require.Equal(t, waiting, s.here()["egov"])
				}
			}
			seen := o.Seen()
			assert.LessOrEqual(t, fragments(seen), 6, "only the change that comes late is fetched: %v", seen)
			s.syncPasses(0)
			assert.True(t, s.verify().Equal)
		})
	}
}

// The activity of a source lists all actions, the newest first.
func TestActivityTellsWhatWasDone(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(2, "v2")...))
	o.BreakWith(damage(isFragmentOf(o, "t1"), always, answering(404)))
	s.syncPasses(1)
	o.BreakWith(nil)
	s.syncPasses(0)
	require.NoError(t, s.Unsubscribe(context.Background(), "egov"))
	var kinds []sources.ActivityKind
	require.NoError(t, s.db.Activity(o.T.Context(), func(a store.Activity) bool {
		assert.Equal(t, "egov", a.Source)
		kinds = append(kinds, a.Kind)
		return true
	}))
	assert.Equal(t, []sources.ActivityKind{
		store.ActivityUnsubscribed, store.ActivityReleased, store.ActivityApplied,
		store.ActivityQuarantined, store.ActivityApplied, store.ActivityReplaced, store.ActivitySubscribed,
	}, kinds)
}

// Unsubscribing removes only the statements of one source.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	s, first, second := both(t, doc(topic("a", "A"), topic("b", "B")), doc(topic("b", "B"), topic("c", "C")))
	_, err := s.Sync(context.Background(), "libraries")
	require.NoError(t, err)
	require.NoError(t, s.Unsubscribe(context.Background(), "egov"))
	s.hasAs("libraries", second.SP("libraries"), doc(topic("b", "B"), topic("c", "C")))
	tm, _, err := s.Merged(first.T.Context(), false)
	require.NoError(t, err)
	assert.Nil(t, tm.TopicBySubjectIdentifier("http://psi.example.org/a"))
	assert.ErrorAs(t, s.Unsubscribe(context.Background(), "egov"), new(*client.UnknownError))
	_, err = s.Subscribe(context.Background(), first.FeedURL("egov"), client.SubscribeOptions{})
	require.NoError(t, err)
	s.sync()
	s.has(first, doc(topic("a", "A"), topic("b", "B")))
}
