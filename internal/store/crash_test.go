package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// kills returns the number of kills in a crash test.
func kills() int { return testenv.Rounds(6, 15) }

// openSmall opens a database with such small transactions that many commits are written in parts.
func openSmall(dir string, log *slog.Logger) (*DB, error) {
	return openTuned(dir, log, badger.Settings{MemTableSize: 256 << 10, ValueThreshold: 16 << 10})
}

// work continues after a killed process: it publishes version after version, follows them as a subscriber, takes
// snapshots, and prints the head of each published version.
func work(dir string) error {
	ctx := context.Background()
	h, err := readVersions(filepath.Join(dir, "versions"))
	if err != nil {
		return err
	}
	db, err := openSmall(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println("open")
	err = db.View(ctx, "m", func(*View) error { return nil })
	if errors.Is(err, ErrNotFound) {
		_, err = db.CreateCollection(ctx, Collection{Name: "m", SP: sp, Settings: Settings{DocumentSize: 10}}, h.maps[0], nil)
	}
	if err != nil {
		return err
	}
	if err := db.AddSubscription(ctx, Subscription{Name: "s", SP: sp}); err != nil && !errors.Is(err, ErrExists) {
		return err
	}
	for turn := 0; ; turn++ {
		c, err := db.Publish(ctx, "m", func(c Collection, prior merge.State) (*fragment.Change, error) {
			published, _, err := h.after(c.Head)
			if err != nil {
				return nil, err
			}
			return fragment.Diff(ctx, prior, h.version(published+1))
		})
		if err != nil {
			return err
		}
		fmt.Println(c.Head)
		if turn%4 == 1 {
			if _, err := db.TakeSnapshot(ctx, "m", 2); err != nil {
				return err
			}
		}
		if err := follow(ctx, db, turn%5 == 3); err != nil {
			return err
		}
	}
}

// follow brings the subscription up to date, by a clean replacement or by the
// fragments since its mark.
func follow(ctx context.Context, db *DB, replace bool) error {
	list, err := db.Subscriptions(ctx)
	if err != nil {
		return err
	}
	if replace || list[0].State == nil {
		err := db.View(ctx, "m", func(v *View) error {
			return db.StageSource(ctx, "s", fragment.Records(v.Source()), Mark{Handled: []string{fmt.Sprint(v.Head)}}, nil)
		})
		if err != nil {
			return err
		}
		return db.UpdateSubscription(ctx, "s", switchOver)
	}
	return db.View(ctx, "m", func(v *View) error {
		var mark uint64
		if _, err := fmt.Sscan(list[0].State.Mark.Handled[0], &mark); err != nil {
			return err
		}
		some, err := fragments(v, mark+1)
		if err != nil {
			return err
		}
		return db.ApplyEntries(ctx, "s", func(s *Applying) error {
			s.Mark.Handled = []string{fmt.Sprint(v.Head)}
			for _, f := range some {
				if err := merge.Apply(s, f); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// A process killed at any instant leaves its commits: all those that it has printed, and at most the version that it
// would print next.
func TestKilledAtAnyInstant(t *testing.T) {
	t.Parallel()
	require.Positive(t, kills())
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "versions"), 0o700))
	writeVersions(t, filepath.Join(dir, "versions"), 12, testenv.Seed())
	h, err := readVersions(filepath.Join(dir, "versions"))
	require.NoError(t, err)
	rng := testenv.Rand(3)
	finished := &messages{count: "finishing a commit"}
	printed, published := 0, 0
	for n := 0; n < kills() || published <= kills(); n++ {
		require.Less(t, n, 20*kills(), "too little is published to mean anything")
		lines := rng.IntN(8) // the last is followed by a moment
		moment := time.Duration(rng.Int64N(int64(15 * time.Millisecond)))
		if lines == 0 {
			moment *= 8 // while it opens
		}
		at := runAndKill(t, "work", dir, lines, moment)
		if at > 0 {
			printed, _, err = h.after(at)
			require.NoError(t, err)
		}
		db, err := openSmall(dir, slog.New(finished))
		require.NoError(t, err, "after kill %d", n)
		before := published
		published = checkCrashed(t, db, h)
		require.GreaterOrEqual(t, published, max(printed, before), "what was printed is kept")
		if printed > before {
			require.LessOrEqual(t, published, printed+1, "and at most one more")
		}
		require.NoError(t, db.Close())
	}
	db, err := openSmall(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer db.Close()
	paths := map[bool]int{}
	for range 6 { // publishing continues, in one part and in several
		published++
		paths[inParts(t, db, func() { publishMap(t, db, "m", h.version(published)) })]++
		require.Equal(t, published, checkCrashed(t, db, h))
	}
	require.Len(t, paths, 2, "both ways of committing are taken")
	t.Logf("%d versions, %d kills, %d interrupted commits finished", published, kills(), finished.n.Load())
}

// runAndKill runs a process with a task in the folder, and kills it a moment
// after it has written some lines. It returns the last head that it has printed.
func runAndKill(t *testing.T, task, dir string, lines int, moment time.Duration) (head uint64) {
	t.Helper()
	p := kill.Start(t, task, dir)
	scan := func(line string) { _, _ = fmt.Sscan(line, &head) }
	for line, ok := "", true; ok && lines > 0; lines-- {
		line, ok = p.Line()
		scan(line)
	}
	p.Kill(moment)
	for _, line := range p.Rest() {
		scan(line)
	}
	require.Empty(t, p.Failure())
	return head
}

// checkCrashed checks that all data in a database are of one version, and returns the number of published ones.
func checkCrashed(t *testing.T, db *DB, h *versions) (published int) {
	t.Helper()
	topics, associations := 0, 0
	count := func(m *fragment.Map) {
		topics += len(topicsOf(t, m))
		for a, err := range m.Associations() {
			require.NoError(t, err)
			associations += len(a.Players())
		}
	}
	err := db.View(t.Context(), "m", func(v *View) error {
		var log []Entry
		var err error
		published, log, err = h.after(v.Head)
		require.NoError(t, err)
		require.Equal(t, storetest.Dump(t, h.version(published)), storetest.Dump(t, v.Source()), "the records are those of version %d", published)
		require.Len(t, topicsOf(t, v.Source()), v.Topics)
		count(h.version(published))
		updated := v.Created
		got := entries(t, v)
		require.Len(t, got, len(log))
		require.Equal(t, digestOf(t, v.Source()), got[len(got)-1].Digest)
		before := map[fragment.Ref]*Entry{}
		for i, e := range got {
			want := log[i]
			want.Seq, want.Updated, want.Digest, want.Tombstone, want.Covered = uint64(i+1), e.Updated, e.Digest, e.Tombstone, e.Covered
			if prior := before[e.TopicSI]; prior != nil {
				want.Prior, want.Modified = prior.Seq, prior.Lives()
			}
			before[e.TopicSI] = &got[i]
			require.Equal(t, want, e)
			require.True(t, e.Updated.After(updated))
			if e.Seq+100 > v.Head {
				shown(t, v, &e)
			}
			updated = e.Updated
		}
		require.Equal(t, updated, v.Updated)
		require.Equal(t, len(log), rows(t, db, "e"), "nothing is above the head")
		list, err := v.Snapshots()
		require.NoError(t, err)
		require.ElementsMatch(t, filesOf(&v.Collection, list...), snapshotFiles(t, db))
		for _, s := range list {
			n, _, err := h.after(s.Seq)
			require.NoError(t, err)
			m, err := fragment.ReadSnapshot(t.Context(), strings.NewReader(content(t, db, "m", &s)), xtm.Options{Base: sp})
			require.NoError(t, err)
			require.Equal(t, storetest.Dump(t, h.version(n)), storetest.Dump(t, m))
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		require.Zero(t, rows(t, db, keys.SourceTables+"efk"), "a collection that is not finished leaves nothing")
		return 0
	}
	require.NoError(t, err)
	list, err := db.Subscriptions(t.Context())
	require.NoError(t, err)
	for _, s := range list {
		if s.Staging != nil {
			require.NoError(t, db.UpdateSubscription(t.Context(), "s", func(s *Subscription) { s.Staging = nil }))
		}
	}
	require.NoError(t, db.ReadSources(t.Context(), func(list []Subscription, sources []fragment.Source) error {
		for i, s := range list {
			var head uint64
			_, err := fmt.Sscan(s.State.Mark.Handled[0], &head)
			require.NoError(t, err)
			n, _, err := h.after(head)
			require.NoError(t, err)
			require.LessOrEqual(t, n, published)
			require.Equal(t, storetest.Dump(t, h.version(n)), storetest.Dump(t, sources[i]), "the subscriber has version %d", n)
			count(h.version(n))
		}
		return nil
	}))
	require.Equal(t, []int{topics, associations}, []int{rows(t, db, "t"), rows(t, db, "a")}, "there are no rows of anything else")
	return published
}

// messages is a log handler that counts the messages with some words.
type messages struct {
	count string
	n     atomic.Int64
}

func (m *messages) Enabled(context.Context, slog.Level) bool { return true }
func (m *messages) WithAttrs([]slog.Attr) slog.Handler       { return m }
func (m *messages) WithGroup(string) slog.Handler            { return m }
func (m *messages) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, m.count) {
		m.n.Add(1)
	}
	return nil
}

func TestMain(m *testing.M) {
	on := func(task func(dir string) error) func([]string) error {
		return func(args []string) error { return task(args[0]) }
	}
	kill.Main(m, kill.Tasks{
		"hold":    on(hold),
		"work":    on(work),
		"prune":   on(pruneOnce),
		"delete":  on(deleteOnce),
		"retain":  on(retain),
		"stage":   on(stageForever),
		"restate": on(restateOnce),
		"load":    loadForever,
	})
}

// hold keeps a database open until it is killed.
func hold(dir string) error {
	if _, err := Open(context.Background(), testOptions(dir)); err != nil {
		return err
	}
	fmt.Println("open")
	select {}
}
