package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
)

// Of two changes of one topic in one second, a feed with one entry for each topic shows the second only by its
// fragment. It is read again until the second is over.
func TestTopicThatChangesTwiceInOneSecond(t *testing.T) {
	t.Parallel()
	following := func(t *testing.T, s *sdshareServer, change ...func(*client.Config)) *subscriber {
		s.set("a", "A")
		s.set("b", "B")
		s.take()
		s.wait(10)
		c := newSubscriber(t, change...)
		_, err := c.Subscribe(context.Background(), s.URL+"/", client.SubscribeOptions{Name: "egov"})
		require.NoError(t, err)
		c.sync()
		return c
	}
	eachSDShare(t, func(t *testing.T, s *sdshareServer) {
		c := following(t, s)
		changes := func(entries, applied int) {
			t.Helper()
			r := c.sync()
			assert.Equal(t, []int{entries, applied}, []int{r.Entries, r.Applied})
			assert.False(t, r.CleanStart)
			s.hasAll(c)
		}
		s.set("a", "first")
		changes(1, 1)
		changes(0, 0)
		s.set("a", "second")
		changes(1, 1)
		s.set("b", "in the same second")
		changes(1, 1)
		s.set("a", "")
		changes(1, 1)
		c.restart()
		s.set("b", "the client was started anew")
		changes(1, 1)
		s.tick()
		s.mu.Lock()
		s.changed[len(s.changed)-1].element = topic("b", "had begun in the second before")
		s.mu.Unlock()
		changes(1, 1)

		// A later change ends the matter, and so does time.
		s.set("a", "back")
		changes(1, 1)
		s.wait(3)
		changes(0, 0)
		sent := s.sent
		changes(0, 0)
		assert.Equal(t, sent, s.sent)
		assert.Empty(t, c.known("egov").State.Mark.Unsettled)
	})
	t.Run("servers without a clock", func(t *testing.T) { // RFC 9110 §6.6.1: the recipient's counts
		t.Parallel()
		s := newSDShareServer(t, sdshareDialects[0])
		s.dateless = true
		c := following(t, s, func(c *client.Config) { c.Now = s.now })
		s.set("a", "first")
		c.sync()
		s.set("a", "second")
		assert.Equal(t, 1, c.sync().Applied)
		s.hasAll(c)
		s.wait(3)
		c.sync()
		assert.Empty(t, c.known("egov").State.Mark.Unsettled)
	})
	// A server may write a fragment in another order each time. An earlier entry of the topic must not be applied again
	// after the later one.
	t.Run("fragments of other bytes each time", func(t *testing.T) {
		t.Parallel()
		f := newForeign(t)
		now := time.Date(2008, 7, 18, 0, 0, 0, 0, time.UTC)
		f.date = func() time.Time { return now }
		f.put("e1", "2008-07-18T00:00:00Z", si("a"), xtm1("a", "first"))
		f.put("e2", "2008-07-18T00:00:00Z", si("a"), xtm1("a", "second"))
		s := followingForeign(t, f)
		assert.Equal(t, 2, s.sync().Applied)
		f.add("e0", "2008-07-17T00:00:00Z", si("b"), xtm1("b", "B"))
		f.mu.Lock()
		f.data["/egov/e1"] += "<!-- the same in other bytes -->"
		f.mu.Unlock()
		s.sync()
		s.hasForeign(topic("a", "second"), topic("b", "B")) // published late, with a time before
	})
}

// What was read before a round failed is settled; the rest is read again in the next one.
func TestUnsettledEntriesOfARoundThatFails(t *testing.T) {
	t.Parallel()
	s := newSDShareServer(t, sdshareDialects[0])
	s.set("old", "Old")
	s.take()
	s.wait(10)
	ids := []string{"a", "b", "c", "d"}
	for _, id := range ids {
		s.set(id, "first")
	}
	c := newSubscriber(t, func(c *client.Config) { c.Batch, c.Tries, c.Parallel = 1, 1, 1 })
	_, err := c.Subscribe(context.Background(), s.URL+"/", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	c.sync()
	assert.Len(t, c.known("egov").State.Mark.Unsettled, 4)
	for _, id := range ids {
		s.set(id, "second")
	}
	s.wait(5)
	s.mu.Lock()
	s.broken = 2 + s.sent
	s.mu.Unlock()
	c.syncFails()
	mark := c.known("egov").State.Mark
	assert.Len(t, mark.Handled, 4)
	assert.Len(t, mark.Unsettled, 2)
	s.mu.Lock()
	s.broken = 0
	s.mu.Unlock()
	r := c.sync()
	assert.Equal(t, 2, r.Applied)
	s.hasAll(c)
	mark = c.known("egov").State.Mark
	assert.Len(t, mark.Handled, 4)
	assert.Empty(t, mark.Unsettled)
}
