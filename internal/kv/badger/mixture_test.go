package badger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
)

// writeSome makes some writes in a folder, one for each letter, prints a line, and waits. The number makes its rows
// different from those of others.
func writeSome(args []string) error {
	from, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	e, err := tryToOpen(args[0], Options{Settings: small})
	for i, write := range args[1] {
		if err != nil {
			return err
		}
		switch n := from + i; write {
		case 'c': // a commit
			err = commitRows(e, n, 5, 100)
		case 'm': // commits of more than one memtable
			for i := range 15 {
				err = cmp.Or(err, commitRows(e, n*100+i, 100, 400))
			}
		case 'v': // large values
			err = commitRows(e, n, 20, 20<<10)
		case 'b': // rows without a commit, of more than one memtable
			err = bulkRows(e, n)
		case 'd':
			err = e.DeletePrefix(context.Background(), []byte("r00"))
		case 'p': // a commit in parts that has no end
			fmt.Println("ready")
			err = commitRows(e, n, 1<<30, 400)
		case 'e': // rows without a commit, without an end
			fmt.Println("ready")
			for err == nil {
				err = bulkRows(e, n)
			}
		case 'o': // closed, and opened again
			if err = e.Close(); err == nil {
				e, err = tryToOpen(args[0], Options{Settings: small})
			}
		case 'w': // waits until the folder is copied
			fmt.Println("wait")
			for err = os.ErrNotExist; errors.Is(err, os.ErrNotExist); time.Sleep(time.Millisecond) {
				_, err = os.Stat(args[0] + ".copied")
			}
			err = cmp.Or(err, os.Remove(args[0]+".copied"))
		case 'x':
			return e.Close()
		}
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
	return err
}

func commitRows(e *Engine, from, n, size int) error {
	return kvtest.Update(context.Background(), e, func(_ kv.Reader, w kv.Writer) error {
		err := w.Delete(fmt.Appendf(nil, "r%05d", from%7))
		for i := 0; i < n && err == nil; i++ {
			err = w.Put(fmt.Appendf(nil, "r%05d", i), bytes.Repeat([]byte{byte(from)}, size))
		}
		return err
	})
}

func bulkRows(e *Engine, from int) error {
	w, err := e.Bulk(context.Background())
	if err != nil {
		return err
	}
	for i := range 1500 {
		err = cmp.Or(err, w.Put(fmt.Appendf(nil, "s%05d", (i*7+from)%1500), bytes.Repeat([]byte{byte(from)}, 300)))
	}
	return errors.Join(err, w.Commit())
}

// image is a copy of the folder of a process that has ended.
type image struct {
	writes, folder string
	rows           map[string]string // that are there where the folder is opened
	version        kv.Version
}

// history has processes write in one folder, one after the other, and returns copies of the folder: of the end of each
// process, and of each w. They are killed, but for those whose last letter is x.
func history(t *testing.T, processes []string) (images []image) {
	t.Helper()
	folder := t.TempDir()
	for n, writes := range processes {
		copied := func() error {
			i := image{writes: fmt.Sprint(len(images), writes), folder: t.TempDir()}
			err := os.CopyFS(i.folder, os.DirFS(folder))
			if err == nil {
				i.rows, i.version, err = contentOf(t, i.over(t, nil))
			}
			if err == nil {
				images = append(images, i)
			}
			return err
		}
		p := kill.Start(t, "write", folder, writes, strconv.Itoa(n*10))
		line, running := p.Line()
		for ; line == "wait"; line, running = p.Line() {
			testenv.Eventually(t, func() bool { return copied() == nil }) // Badger may have been making a table
			require.NoError(t, os.WriteFile(folder+".copied", nil, 0o600))
		}
		if running {
			require.True(t, p.Kill(time.Duration(n*7%30)*time.Millisecond))
		} else {
			require.False(t, p.Wait())
		}
		require.NoError(t, copied(), writes)
	}
	return images
}

// over copies the files of an image over those of another one, or into an empty folder.
func (i *image) over(t *testing.T, other *image) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if other != nil {
		require.NoError(t, os.CopyFS(folder, os.DirFS(other.folder)))
	}
	files, err := os.ReadDir(i.folder)
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(i.folder, file.Name()))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, file.Name()), content, 0o600))
	}
	return folder
}

// contentOf opens a folder twice, with a commit between, and returns the rows before that commit.
func contentOf(t *testing.T, folder string) (rows map[string]string, v kv.Version, err error) {
	t.Helper()
	for range 2 {
		e, err := tryToOpen(folder, Options{Settings: small})
		if err != nil {
			return nil, v, err
		}
		if rows == nil {
			rows = rowsOf(t, e)
			v, err = e.Version(t.Context())
			require.NoError(t, err)
			require.NoError(t, commitRows(e, 1, 5, 100))
		}
		require.NoError(t, e.Close())
	}
	return rows, v, nil
}

// A copy of a folder that is put over files of another time has the rows of the copy, or is refused before anything is
// written: Badger replays all logs that it finds.
func TestACopyOverOtherFilesIsNoMixture(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	random := testenv.Rand(1)
	histories := [][]string{
		{"cc", "cc", "cc"},                // the same number of memtables
		{"c", "mcm", "c", "mmc"},          // another one
		{"mc", "cx", "c", "cx", "vmc"},    // some were closed
		{"c", "", "m", ""},                // some have crashed before the first commit
		{"cm", "cb", "mb", "be"},          // rows without commits
		{"cm", "cp", "mcp", "ocp", "cmd"}, // commits in parts, and deletions
		{"cwmcwccwmbc", "cwmdbmc"},        // processes were running
	}[testenv.Usual(4, 0):]
	for range testenv.Rounds(1, 40) {
		var h []string
		for range 4 {
			writes := ""
			for range random.IntN(4) {
				writes += string("ccmvbdo"[random.IntN(7)])
			}
			h = append(h, writes+string("ckkxpe"[random.IntN(6)]))
		}
		histories = append(histories, h)
	}
	refused := 0
	for _, h := range histories {
		images := history(t, h)
		for i := range images {
			for j := range images {
				if i == j {
					continue
				}
				what := fmt.Sprintf("%v: %s over %s", h, images[i].writes, images[j].writes)
				folder := images[i].over(t, &images[j])
				rows, v, err := contentOf(t, folder)
				if err != nil {
					require.ErrorIs(t, err, kv.ErrDamaged, what)
					require.ErrorContains(t, err, "empty a folder before you put a copy into it", what)
					_, _, again := contentOf(t, folder)
					require.Equal(t, err.Error(), again.Error(), what)
					refused++
					continue
				}
				require.True(t, v.Same(images[i].version), what)
				require.Equal(t, len(images[i].rows), len(rows), what)
				require.True(t, fmt.Sprint(images[i].rows) == fmt.Sprint(rows), what)
			}
		}
	}
	require.Positive(t, refused)
}

// A folder in which a process of an earlier version has crashed has no sessions. It is opened, and has one then.
func TestTheFilesOfACrashWithoutSessionsAreOpened(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	e := openIn(t, folder, small)
	v := kv.First
	for n := range 3 {
		v = v.Next()
		txn := e.badger.NewTransactionAt(e.clock.tick(), true)
		require.NoError(t, apply([]kv.Row{{Key: []byte("row"), Value: []byte{byte(n)}}, versionRow(v)}, txn))
		require.NoError(t, txn.CommitAt(e.clock.tick(), nil))
	}
	r, err := readRecord(folder)
	require.NoError(t, err)
	r.Sessions = nil
	r.SHA256 = r.sum()
	require.NoError(t, durable.WriteJSON(filepath.Join(folder, recordFile), r))
	for range 3 {
		var crash string
		testenv.Eventually(t, func() bool { // Badger makes a table of the log of before, and removes that
			logs, err := filepath.Glob(filepath.Join(folder, "*"+memtableExt))
			require.NoError(t, err)
			crash = t.TempDir()
			return len(logs) == 1 && os.CopyFS(crash, os.DirFS(folder)) == nil
		})
		e := openIn(t, crash, small)
		now, err := e.Version(t.Context())
		require.NoError(t, err)
		require.True(t, v.Same(now))
		require.NoError(t, commitRows(e, 1, 1, 1))
		v, err = e.Version(t.Context())
		require.NoError(t, err)
		folder = crash
	}
}
