package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
)

// reifying returns the records of n topics, each with a reified occurrence, and
// of n reified associations of two of them.
func reifying(n int) []fragment.Record {
	var list []fragment.Record
	for i := range n {
		t := named(ref(i), "first")
		t.Occurrences = []fragment.Occurrence{{
			Value: "x", Datatype: tmdm.XSDString, Type: ref(n), Scope: []fragment.Ref{ref(n + 1)}, Reifier: ref(n + 2 + i),
		}}
		a := &fragment.Association{Type: ref(i % 7), Reifier: ref(2*n + 2 + i), Roles: []fragment.Role{
			{Type: ref(n), Player: ref(i)}, {Type: ref(n + 1), Player: ref((i + 1) % n)},
		}}
		a.Canonical()
		list = append(list, fragment.Record{Topic: t}, fragment.Record{Association: a})
	}
	return list
}

// between returns an association of two topics.
func between(i, j int) *fragment.Association {
	a := &fragment.Association{Type: ref(1), Roles: []fragment.Role{{Type: ref(2), Player: ref(i)}, {Type: ref(3), Player: ref(j)}}}
	a.Canonical()
	return a
}

func yielding(list []fragment.Record) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// loadingFiles returns the names of the files of loads.
func loadingFiles(t testing.TB, db *DB) (names []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(db.dir, datafolder.Scratch))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// A load that its context ends, or its records, leaves nothing, neither rows nor
// what reads ahead.
func TestALoadThatEndsEarlyLeavesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	db.sortMemory = 100_000
	subscribe(t, db, "s", mapOf(t, 5))
	before, count := *subscription(t, db, "s"), rows(t, db, keys.SourceTables)
	routines := runtime.NumGoroutine()
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		broken := errors.New("broken")
		want, left := context.Canceled, false
		if i%2 == 0 {
			want = broken
		}
		records := func(yield func(fragment.Record, error) bool) {
			defer func() { left = true }()
			for n := 0; ; n++ { // without end
				if n == 500*i {
					if want == broken {
						yield(fragment.Record{}, broken)
						return
					}
					cancel()
				}
				for _, r := range []fragment.Record{{Topic: named(ref(n), fmt.Sprint(n))}, {Association: between(n, n+1)}} {
					if !yield(r, nil) {
						return
					}
				}
			}
		}
		require.ErrorIs(t, db.StageSource(ctx, "s", records, Mark{}, nil), want)
		cancel()
		require.True(t, left, "nobody reads on")
		require.Equal(t, before, *subscription(t, db, "s"))
		require.Equal(t, count, rows(t, db, keys.SourceTables))
		require.Empty(t, loadingFiles(t, db))
	}
	testenv.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+1 })
}
