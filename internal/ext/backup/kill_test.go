package backup_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/backup"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
)

func TestMain(m *testing.M) {
	kill.Main(m, kill.Tasks{"backup": makeBackup, "restore": restoreBackup, "move": moveStore})
}

// tell writes a line at each step.
func tell(p backup.Progress) { fmt.Println(p.Phase) }

// makeBackup backs the data folder args[0] up to args[1], and keeps two.
func makeBackup(args []string) error {
	fmt.Println("begin")
	db, err := store.Open(context.Background(), store.Options{Dir: args[0], Access: store.Write, Logger: silent, Badger: badger.Small})
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := backup.Make(context.Background(), db, args[1], tell); err != nil {
		return err
	}
	if !backup.IsFolder(args[1]) {
		return nil
	}
	fmt.Println("removing older ones")
	_, err = backup.Prune(args[1], 2)
	return err
}

func restoreBackup(args []string) error {
	fmt.Println("begin")
	_, err := backup.Restore(context.Background(), args[0], backup.Folder(args[1], silent), tell)
	return err
}

// killSomewhere runs a task and kills it a moment after one of its first steps.
func killSomewhere(t *testing.T, rng *rand.Rand, task string, args ...string) (killed bool) {
	t.Helper()
	p := kill.Start(t, task, args...)
	for range 1 + rng.IntN(6) {
		if _, more := p.Line(); !more {
			break
		}
	}
	if rng.IntN(3) == 0 { // on a busy machine, each wait may be longer than the task
		return p.Kill(0)
	}
	return p.Kill(time.Duration(rng.Int64N(int64(60 * time.Millisecond))))
}

// A backup that is killed spoils no earlier one, and the next one is whole.
func TestAKilledBackupSpoilsNoOther(t *testing.T) {
	t.Parallel()
	rng := testenv.Rand(141)
	db := node(t, 400)
	folder := filepath.Join(t.TempDir(), "backups")
	require.NoError(t, os.Mkdir(folder, 0o700))
	_, err := backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	kills := 0
	for n := range testenv.Rounds(20, 300) {
		publish(t, db, "a", n%400, fmt.Sprint("name ", n))
		require.NoError(t, db.Close())
		target := folder
		if n%4 == 3 {
			target = filepath.Join(filepath.Dir(folder), fmt.Sprint(n, ".backup"))
		}
		if killSomewhere(t, rng, "backup", db.Dir(), target) {
			kills++
		}
		dir := filepath.Join(t.TempDir(), "restored")
		_, err := backup.Restore(t.Context(), folder, backup.Folder(dir, silent), none)
		require.NoError(t, err, "after kill %d", n)
		if _, err := os.Stat(target); err == nil && target != folder {
			_, err := backup.Restore(t.Context(), target, backup.Folder(dir+"2", silent), none)
			require.NoError(t, err, "a file with the name of a backup is one")
		}
		db = open(t, db.Dir(), store.Write)
	}
	require.Positive(t, kills)
	_, err = backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "restored")
	_, err = backup.Restore(t.Context(), folder, backup.Folder(dir, silent), none)
	require.NoError(t, err)
	require.True(t, maps.Equal(rows(t, db), rows(t, open(t, dir, store.Write))))
}

// A restore that is killed leaves nothing, or a folder that no command takes for a data folder,
// nor for a place to make a new one.
func TestAKilledRestoreLeavesNothingThatOpens(t *testing.T) {
	t.Parallel()
	rng := testenv.Rand(142)
	db := node(t, 400)
	path := filepath.Join(t.TempDir(), "one.backup")
	_, err := backup.Make(t.Context(), db, path, none)
	require.NoError(t, err)
	want := rows(t, db)
	refused, complete := 0, 0
	for n := range testenv.Rounds(20, 300) {
		dir := filepath.Join(t.TempDir(), "restored")
		if n%2 == 0 {
			require.NoError(t, os.Mkdir(dir, 0o700))
		}
		killSomewhere(t, rng, "restore", path, dir)
		if left, err := os.ReadDir(dir); err != nil || len(left) == 0 {
			continue // the backup was still being checked
		}
		identity, err := datafolder.ReadIdentity(dir)
		require.NoError(t, err, "kill %d: the folder has an identity before anything else", n)
		if identity.Complete {
			complete++
			restored, err := store.Open(t.Context(), store.Options{Dir: dir, Access: store.Write, Logger: silent, Badger: badger.Small})
			require.NoError(t, err)
			require.True(t, maps.Equal(want, rows(t, restored)))
			require.NoError(t, restored.Close())
			continue
		}
		refused++
		for _, access := range []store.Access{store.Create, store.Write, store.Read, store.Restore} {
			_, err := store.Open(t.Context(), store.Options{Dir: dir, Access: access, Logger: silent, Badger: badger.Small})
			require.ErrorContains(t, err, "was interrupted, or is under way: if none is, remove the folder", "kill %d", n)
		}
	}
	require.Positive(t, refused+complete)
	t.Logf("%d not complete, %d complete", refused, complete)
}

// A folder of backups is for one at a time.
func TestOneBackupIsWrittenToAFolderAtATime(t *testing.T) {
	t.Parallel()
	db := node(t, 5)
	folder := t.TempDir()
	tried := 0
	_, err := backup.Make(t.Context(), db, folder, func(p backup.Progress) {
		if p.Phase != "writing snapshots" {
			return
		}
		tried++
		_, err := backup.Make(t.Context(), db, folder, none)
		require.ErrorContains(t, err, "another backup into "+folder+" is being made: wait")
		_, err = backup.Prune(folder, 1)
		require.ErrorContains(t, err, "another backup")
	})
	require.NoError(t, err)
	require.Positive(t, tried)
	_, err = backup.Prune(folder, 1)
	require.NoError(t, err)
	_, err = backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
}

// A data folder among backups would keep the next backup out.
func TestNothingIsRestoredAmongTheBackups(t *testing.T) {
	t.Parallel()
	db := node(t, 3)
	folder := t.TempDir()
	_, err := backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	for _, dir := range []string{folder, filepath.Join(folder, "x"), filepath.Join(folder, "x", "y")} {
		_, err := backup.Restore(t.Context(), folder, backup.Folder(dir, silent), none)
		require.ErrorContains(t, err, "is in the folder of the backups: restore into a folder outside")
	}
	_, err = backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
}
