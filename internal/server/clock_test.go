package server_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// Whatever the clock does, the times of entries strictly increase in the order of
// commits, and are those of the clock where it is ahead.
func TestUpdatedIncreasesInTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	now := newClock()
	dir := t.TempDir()
	open := func() *node {
		return startOn(t, store.Options{Dir: dir, Now: now.Now}, documentSize(5), func(c *server.Config) {
			c.Now, c.BaseURL = now.Now, "http://localhost"
		})
	}
	n := open()
	n.dialAll()
	total := n.publish("small", small()).Topics
	last := ""
	rename := func(to string) string {
		p := n.mustPut("small", small("Oslo", to, "Bergen", to))
		total += p.Updated
		return p.LastChange
	}
	for i, jump := range []time.Duration{time.Hour, -time.Hour, -100 * time.Hour, 0, 0, time.Microsecond, 300 * time.Hour, -time.Second} {
		now.advance(jump)
		changed := rename(fmt.Sprint(i))
		assert.Greater(t, changed, last)
		if jump > 200*time.Hour {
			assert.Equal(t, now.Now().Add(time.Microsecond).UTC().Format("2006-01-02T15:04:05.000000Z"), changed, "the second of two entries")
		}
		last = changed
	}

	// Another process, whose clock is behind.
	n.stop()
	now.advance(-1000 * time.Hour)
	n = open()
	n.dialAll()
	changed := rename("after the restart")
	assert.Greater(t, changed, last)
	last = changed

	// Two writers at once, while the clock jumps.
	var mu sync.Mutex
	var times []string
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() {
			before := last
			for j := range 10 {
				p := published(t, n.put("small", small("Oslo", fmt.Sprint(i, " ", j))))
				assert.Greater(t, p.LastChange, before, "of one writer, in the order in which it writes")
				before = p.LastChange
				now.advance(time.Duration(i*2-1) * time.Minute)
				mu.Lock()
				total += p.Updated + p.Added
				times = append(times, p.LastChange)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	entries, _ := n.history("/topicmaps/small/fragments")
	require.Len(t, entries, total)
	for i := 1; i < len(entries); i++ {
		assert.Greater(t, entries[i-1].updated(), entries[i].updated())
	}
	seen := map[string]bool{}
	for _, e := range entries {
		seen[e.updated()] = true
	}
	for _, at := range times {
		assert.True(t, seen[at], "%s is the time of an entry", at)
	}
}
