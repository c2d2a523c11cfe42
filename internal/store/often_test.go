package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// A topic with very many changes is read as of any commit, changed again, and pruned to a few commits; the durations
// are logged. A million commits:
//
//	go test ./internal/store -run TestATopicThatHasChangedVeryOften -v -timeout 1h -args -rounds 1000000
func TestATopicThatHasChangedVeryOften(t *testing.T) {
	t.Parallel()
	commits := max(testenv.Rounds(1000, 300_000), 1000) // more than a document has
	db := openUnsynced(t, t.TempDir())
	first := collection(t, db, "m", 3).Head
	takes := func(what string, f func()) {
		start := time.Now()
		f()
		t.Logf("%s: %s", what, time.Since(start).Round(time.Microsecond))
	}
	version := func(n int) string { return fmt.Sprint("version ", n) }
	takes("all commits", func() {
		for n := range commits {
			publish(t, db, "m", rename(1, 2, version(n)))
		}
	})
	at := func(n int) { // after so many of them
		view(t, db, "m", func(v *View) {
			past, err := v.Past(first + uint64(n))
			require.NoError(t, err)
			topic, err := past.Topic(ref(1))
			require.NoError(t, err)
			require.Equal(t, version(n-1), topic.Names[0].Value)
		})
	}
	for _, n := range []int{1, commits / 2, commits - 1, commits} {
		takes(fmt.Sprint("the topic as of commit ", n), func() { at(n) })
	}
	takes("one more commit", func() { publish(t, db, "m", rename(1, 2, version(commits))) })
	snapshot := takeSnapshot(t, db, "m", 1).Seq
	takes("pruning to ten", func() { require.Positive(t, prune(t, db, "m", Retention{Entries: 10})) })
	view(t, db, "m", func(v *View) {
		begins, _ := v.Document(v.DocumentOf(snapshot - 9))
		require.Equal(t, begins-1, v.Horizon, "whole documents go")
	})
	at(commits - 5)
	takes("one more commit", func() { publish(t, db, "m", rename(1, 2, version(commits+1))) })
	takes("a check", func() { requireWhole(t, db) })
}
