package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/merge"
)

// histories returns the number of random histories.
func histories() int { return testenv.Rounds(4, 12) }

// subscribed is the source of a subscription as a backend of records.
type subscribed struct {
	t    *testing.T
	db   *DB
	open func(dir string) *DB
}

// onDisk does not wait for the disk: only crashes show the difference.
func onDisk(t *testing.T) storetest.Backend {
	return subscribedIn(t, func(dir string) *DB { return openUnsynced(t, dir) })
}

func inMemory(t *testing.T) storetest.Backend { return over(t, memory.New()) }

func tried(t *testing.T) storetest.Backend { return over(t, &conflicting{Engine: memory.New()}) }

func asked(t *testing.T) storetest.Backend {
	return over(t, &conflicting{Engine: &kvtest.Asked{Engine: memory.New()}})
}

func over(t *testing.T, engine kv.Engine) storetest.Backend {
	return subscribedIn(t, func(dir string) *DB { return openOverEngine(t, dir, engine) })
}

func subscribedIn(t *testing.T, open func(dir string) *DB) storetest.Backend {
	db := open(t.TempDir())
	subscribe(t, db, "s", &merge.Memory{})
	return &subscribed{t, db, open}
}

func (s *subscribed) Update(f func(merge.State) error) error {
	return s.db.ApplyEntries(s.t.Context(), "s", func(state *Applying) error { return f(state) })
}

func (s *subscribed) Reopen() error {
	if err := s.db.Close(); err != nil {
		return err
	}
	s.db = s.open(s.db.Dir())
	return nil
}

// The store keeps the rules over each engine, and also where others commit meanwhile.
var backends = map[string]func(*testing.T) storetest.Backend{"badger": onDisk, "memory": inMemory, "conflicts": tried, "distant": asked}

func TestSourcesKeepTheRules(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	for name, open := range backends {
		t.Run(name, func(t *testing.T) { storetest.Run(t, open) })
	}
}

func TestSourcesAgreeWithMemory(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	for name, open := range backends {
		t.Run(name, func(t *testing.T) { storetest.Histories(t, open, histories(), testenv.Seed()) })
	}
}

// A database that many nodes share keeps them too.
func TestSourcesOnPostgreSQL(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	server := pgserver.Start(t, "fsync=off")
	open := func(t *testing.T) storetest.Backend { return over(t, pgserver.Open(t, server.Store(t))) }
	t.Run("rules", func(t *testing.T) { storetest.Run(t, open) })
	t.Run("histories", func(t *testing.T) { storetest.Histories(t, open, testenv.Rounds(1, 12), testenv.Seed()) })
}

// A publisher's records, changed by differences, equal those in memory, as a subscriber's do, and its log lists the
// differences.
func TestPublishedRecordsAgreeWithMemory(t *testing.T) {
	t.Parallel()
	require.Positive(t, histories())
	published := 0
	for i := range uint64(histories()) {
		seed := testenv.Seed() + i
		editor := storetest.NewEditor(t, seed)
		var want merge.Memory
		first := editor.Version(nil)
		require.NoError(t, want.Load(first))
		db := openDB(t, t.TempDir())
		collectionOf(t, db, "m", first)
		for version := range 6 {
			require.Equal(t, all(t, &want), recordsOf(t, db, "m"), "seed %d, version %d: %q", seed, version, editor.Edits)
			next := editor.Version(&want)
			c := publishMap(t, db, "m", next)
			storetest.Write(t, &want, mustDiff(t, &want, next))
			view(t, db, "m", func(v *View) {
				require.Len(t, topicsOf(t, &want), v.Topics, "the number of topics is kept")
				require.Equal(t, c.Head, uint64(len(entries(t, v))))
			})
			published = int(c.Head)
			if version == 3 {
				db = reopen(t, db)
			}
		}
		require.Equal(t, all(t, &want), recordsOf(t, db, "m"), "seed %d", seed)
		require.NoError(t, db.Close())
	}
	require.Greater(t, published, 6, "the versions changed too little to mean anything")
}
