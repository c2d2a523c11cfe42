package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/store"
)

// Times of whole seconds do not show whether a change was before a snapshot or after it.
func TestChangeInTheSecondOfTheSnapshot(t *testing.T) {
	t.Parallel()
	eachSDShare(t, func(t *testing.T, s *sdshareServer) {
		s.set("old", "Old")
		s.tick()
		s.set("a", "A")
		s.take()
		s.set("b", "between snapshot and clean start")
		c := followingSDShare(t, s)
		s.hasAll(c)
		s.set("c", "after the clean start")
		assert.Equal(t, 1, c.sync().Applied)
		s.hasAll(c)
		s.tick()
		s.set("c", "later")
		assert.Equal(t, 1, c.sync().Applied)
		s.hasAll(c)
		assert.Zero(t, c.sync().Applied)

		c = followingSDShare(t, s)
		s.hasAll(c)
	})
	t.Run("the snapshot only", func(t *testing.T) { // nothing stands at its time as yet
		t.Parallel()
		s := newSDShareServer(t, sdshareDialects[0])
		s.set("a", "A")
		s.tick()
		s.take()
		c := followingSDShare(t, s)
		s.set("a", "in its second")
		assert.False(t, c.sync().CleanStart)
		s.hasAll(c)
	})
}

// A change moves the entry of a topic from where it stood. That is no other history.
func TestFeedThatListsEachTopicOnce(t *testing.T) {
	t.Parallel()
	eachSDShare(t, func(t *testing.T, s *sdshareServer) {
		for i := range 3 {
			s.set(fmt.Sprint("t", i), "first")
			s.tick()
		}
		s.set("t3", "first") // two at the mark
		s.set("t4", "first")
		s.take()
		c := followingSDShare(t, s)
		for _, id := range []string{"t3", "t4", "t0"} {
			s.tick()
			s.set(id, "second")
			r := c.sync()
			assert.False(t, r.CleanStart, r.Reason)
			assert.Equal(t, 1, r.Applied)
			s.hasAll(c)
		}

		// A server restored from a backup lists no change.
		s.set("t1", "lost with the backup")
		c.sync()
		s.mu.Lock()
		s.changed = s.changed[:3]
		s.mu.Unlock()
		s.take()
		assert.True(t, c.sync().CleanStart)
		s.hasAll(c)
	})
}

// A map without topics deletes the topic of its entry, on servers of SDShare.
func TestDeletionByAMapWithoutTopics(t *testing.T) {
	t.Parallel()
	eachSDShare(t, func(t *testing.T, s *sdshareServer) {
		located := s.named("TopicSL", "http://example.org/page")
		s.set("a", "A")
		s.set("b", "B")
		if s.topic == "TopicSI" {
			s.put(located, `<topic id="t1"><subjectLocator href="http://example.org/page"/><name><value>Page</value></name></topic>`)
		}
		s.take()
		c := followingSDShare(t, s)
		s.tick()
		s.set("a", "")
		if s.topic == "TopicSI" {
			s.put(located, "")
		}
		c.syncPasses(0)
		c.hasAs("egov", c.known("egov").SP, doc(topic("b", "B")))
		assert.Zero(t, c.sync().Applied)
	})
	// Elsewhere it is a mistake, and it is one where topics stand in it.
	for name, entry := range map[string]string{
		"TMShare": `<t:TopicSI xmlns:t="http://www.egovpt.org/tmshare">` + si("t0") + `</t:TopicSI>`,
		"both":    `<t:TopicSI xmlns:t="http://www.egovpt.org/tmshare">` + si("t0") + `</t:TopicSI><s:resource xmlns:s="http://www.sdshare.org/2012/core/">` + si("t0") + `</s:resource>`,
		"another": `<s:resource xmlns:s="http://www.sdshare.org/2012/core/">` + si("t0") + `</s:resource>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			first := s.entryOf(0, "t0", "Topic 0 v1")
			s.feed("/feed", declared, first)
			c := following(t, s)
			c.sync()
			e := s.entry(1, entry, "other", "Other")
			if name != "another" {
				s.documents["/data/1"] = doc()
			}
			s.feed("/feed", declared, e, first)
			_, bad := c.syncPasses(1)
			assert.Contains(t, bad[0].Error, "no topic of the fragment")
			c.hasForeign(topics(1, "v1")...)
		})
	}
}

// Topics with neither a subject identifier nor a subject locator are identified by their names for the source.
func TestTopicsWithoutSubjectIdentifiers(t *testing.T) {
	t.Parallel()
	for _, d := range sdshareDialects[:2] {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := newSDShareServer(t, d)
			called := func(id string) string { return s.named("TopicII", "file:/maps/old.xtm#"+id) }
			unnamed := func(id, name string) string {
				return fmt.Sprintf(`<topic id="%s"><name><value>%s</value></name></topic>`, id, name)
			}
			// By a locator besides an id that is only valid in its document.
			itemed := func(id, name string) string {
				return fmt.Sprintf(`<topic id="t1"><itemIdentity href="file:/maps/old.xtm#%s"/><name><value>%s</value></name></topic>`, id, name)
			}
			s.set("a", "A")
			s.put(called("x"), unnamed("x", "X"))
			s.put(called("y"), unnamed("y", "Y"))
			s.take()
			c := followingSDShare(t, s)
			assert.Contains(t, c.reported(), "the source gives 2 topics neither a subject identifier nor a subject locator")
			names := func() (all []string) {
				tm, _, err := c.Merged(c.t.Context(), false, "egov")
				require.NoError(t, err)
				for topic := range tm.Topics() {
					for _, n := range topic.Names() {
						all = append(all, n.Value())
					}
					if si := topic.SubjectIdentifiers(); len(topic.Names()) > 0 && topic.Names()[0].Value() != "A" {
						require.Len(t, si, 1)
						require.False(t, strings.HasPrefix(string(si[0]), foreignSP), "%s", si)
					}
				}
				slices.Sort(all)
				return all
			}
			assert.Equal(t, []string{"A", "X", "Y"}, names())
			list, err := status.Named(c.t.Context(), c.db, c.Now())
			require.NoError(t, err)
			assert.Equal(t, 2, list[0].Unidentified)

			s.tick()
			s.put(called("x"), unnamed("x", "X2"))
			s.put(called("v"), itemed("v", "V"))
			s.put(called("w"), itemed("w", "W"))
			c.syncPasses(0)
			assert.Equal(t, []string{"A", "V", "W", "X2", "Y"}, names())
			s.tick()
			s.put(called("y"), "")
			s.put(called("v"), "")
			s.put(called("w"), itemed("w", "W2"))
			c.syncPasses(0)
			assert.Equal(t, []string{"A", "W2", "X2"}, names())

			// One that gains a subject identifier is the same topic.
			s.tick()
			s.put(called("x")+s.named("TopicSI", si("x")), topic("x", "A"))
			c.syncPasses(0)
			assert.Equal(t, []string{"A", "A", "W2"}, names())
		})
	}
}

// The options of subscribe apply to each round, also of programs without options.
func TestWhatSubscribeWasToldIsKept(t *testing.T) {
	t.Parallel()
	elsewhere, s := newSite(t), newSite(t)
	odd := strings.Replace(doc(topics(1, "v1")...), "<topic>", "text<topic>", 1) // nothing that XTM allows
	elsewhere.documents["/odd"] = odd
	s.feed("/feed", declared, strings.Replace(s.entryOf(0, "t0", "x"), `href="/data/0`, `href="`+elsewhere.URL+`/odd`, 1))
	yes, no := true, false
	for name, o := range map[string]struct {
		hosts       []string
		strict      *bool
		quarantined int
	}{
		"all":     {[]string{elsewhere.Listener.Addr().String()}, &no, 0},
		"strict":  {[]string{elsewhere.Listener.Addr().String()}, &yes, 1},
		"no host": {nil, &no, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSubscriber(t)
			_, err := c.Subscribe(context.Background(), s.URL+"/feed", client.SubscribeOptions{Name: "egov", Asked: store.Asked{Hosts: o.hosts, Strict: o.strict}})
			require.NoError(t, err)
			for range 2 {
				c.restart(func(c *client.Config) { c.Lenient = name == "strict" })
				c.syncPasses(o.quarantined)
			}
		})
	}
}
