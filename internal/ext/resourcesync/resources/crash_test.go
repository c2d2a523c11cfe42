package resources_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// The test starts this program again, to build one set after the other until it is killed.
const task = "TMSHARE_RESOURCES_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(task); dir != "" {
		if err := buildOn(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const sp = "http://example.org/topicmaps/m/"

func mapOf(topics int, name string) (*fragment.Map, error) {
	var b strings.Builder
	b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">`)
	for i := range topics {
		fmt.Fprintf(&b, `<topic id="t%d"><subjectIdentity><subjectIndicatorRef xlink:href="http://psi.example.org/%d"/></subjectIdentity><baseName><baseNameString>%s %d</baseNameString></baseName></topic>`, i, i, name, i)
	}
	b.WriteString(`</topicMap>`)
	tm, err := xtm.Read(context.Background(), strings.NewReader(b.String()), xtm.Options{Base: tmdm.Locator(sp)})
	if err != nil {
		return nil, err
	}
	return fragment.NameTopics(context.Background(), tm, sp, nil)
}

var sizes = resources.Sizes{ListItems: 60, PackageItems: 50}

func open(dir string) (*store.DB, *resources.Folder, error) {
	db, err := store.Open(context.Background(), store.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler), Badger: badger.Small})
	return db, &resources.Folder{Store: db, Sizes: sizes}, err
}

func siteOf(c *store.Collection) *resources.Site {
	return &resources.Site{Server: "http://example.org", Map: "http://example.org/topicmaps/m", Epoch: c.Epoch}
}

// buildOn publishes and builds without end.
func buildOn(dir string) error {
	db, folder, err := open(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	fmt.Println("open")
	for i := 0; ; i++ {
		next, err := mapOf(200, fmt.Sprint("name ", os.Getpid(), i))
		if err != nil {
			return err
		}
		_, err = db.Publish(ctx, "m", func(c store.Collection, prior merge.State) (*fragment.Change, error) {
			return fragment.Diff(ctx, prior, next)
		})
		if err != nil {
			return err
		}
		var set *resources.Set
		err = db.View(ctx, "m", func(v *store.View) (err error) {
			set, err = folder.Build(ctx, siteOf(&v.Collection), v)
			return err
		})
		if err != nil {
			return err
		}
		err = db.View(ctx, "m", func(v *store.View) error {
			_, err := folder.CutChanges(ctx, siteOf(&v.Collection), "m", set.Seq-1, set.At, resources.Cut{Changes: 70}, time.Now())
			return err
		})
		if err == nil {
			err = folder.Note(ctx, "m")
		}
		if err != nil {
			return err
		}
		err = db.View(ctx, "m", func(v *store.View) error {
			lists, err := resources.ChangeLists(v)
			for _, list := range lists {
				if err == nil {
					_, err = folder.BuildPart(ctx, siteOf(&v.Collection), v, list)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
}

// countItems reads a document to its end.
func countItems(t *testing.T, folder *resources.Folder, f resources.File) int {
	plain := read(t, folder, f, false)
	require.Equal(t, plain, gunzip(t, read(t, folder, f, true)), f.Name)
	r, err := resourcesync.Read(bytes.NewReader(plain), "http://example.org/x.xml", resourcesync.Limits{})
	require.NoError(t, err, f.Name)
	for n := 0; ; n++ {
		if _, err := r.Next(); err == io.EOF {
			return n
		} else if err != nil {
			require.NoError(t, err, f.Name)
		}
	}
}

func read(t *testing.T, folder *resources.Folder, f resources.File, packed bool) []byte {
	file, err := folder.Open(t.Context(), f, packed)
	require.NoError(t, err)
	defer file.Close()
	b, err := io.ReadAll(file)
	require.NoError(t, err)
	return b
}

// checkSet sees that nothing of a set is missing.
func checkSet(t *testing.T, folder *resources.Folder, set *resources.Set) {
	require.Equal(t, 4, countItems(t, folder, set.ResourceList()), "parts")
	listed, packed := 0, 0
	for n := range set.Lists {
		listed += countItems(t, folder, set.List(n+1))
	}
	require.Equal(t, set.Items, listed)
	require.Equal(t, 201, listed)
	require.Equal(t, len(set.Packages), countItems(t, folder, set.ResourceDump()))
	for n, p := range set.Packages {
		b := read(t, folder, set.Package(n+1), false)
		require.EqualValues(t, p.Length, len(b))
		f := resourcesync.NewFixity()
		_, _ = f.Write(b)
		var r resourcesync.Representation
		f.Describe(&r)
		require.Equal(t, p.Hashes, r.Hashes)
		_, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		packed += countItems(t, folder, set.Manifest(n+1))
	}
	require.Equal(t, listed, packed)
}

// If the program is killed at any point while it makes files, the files offered after that are whole.
func TestWhatIsHalfMadeIsNotThere(t *testing.T) {
	testenv.OnlyWithAll(t, "it kills processes")
	dir := t.TempDir()
	db, _, err := open(dir)
	require.NoError(t, err)
	first, err := mapOf(200, "first")
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "m", SP: sp}, first, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	rng := testenv.Rand(2)
	kills := testenv.Rounds(6, 12)
	left, sets, parts := 0, 0, 0
	for range kills {
		kill(t, dir, time.Duration(rng.IntN(800))*time.Millisecond)
		drafts := unfinished(t, dir, "*")
		left += drafts
		db, folder, err := open(dir)
		require.NoError(t, err)
		require.NoError(t, db.View(t.Context(), "m", func(v *store.View) error {
			site := siteOf(&v.Collection)
			all, err := folder.Sets(v, site)
			require.NoError(t, err)
			for _, set := range all {
				checkSet(t, folder, set)
				sets++
			}
			lists, err := resources.ChangeLists(v)
			require.NoError(t, err)
			for _, list := range lists {
				_, err := folder.BuildPart(t.Context(), site, v, list)
				require.NoError(t, err)
				part, err := folder.Part(v, site, list.Number)
				require.NoError(t, err)
				require.EqualValues(t, list.Last-list.First+1, countItems(t, folder, part.ListFile()))
				require.EqualValues(t, list.Last-list.First+1, countItems(t, folder, part.ManifestFile()))
				parts++
			}
			// The remains were cleared away, and all goes on.
			set, err := folder.Build(t.Context(), site, v)
			require.NoError(t, err)
			checkSet(t, folder, set)
			again, err := folder.Build(t.Context(), site, v)
			require.NoError(t, err)
			require.Same(t, set, again, "it is made once")
			return nil
		}))
		require.NoError(t, db.Close())
		if drafts > 0 {
			require.Zero(t, unfinished(t, dir, "*"))
		}
	}
	t.Logf("%d kills, %d drafts left, %d sets and %d change lists looked at", kills, left, sets, parts)
	if kills < 12 { // so few kills may come at any time
		return
	}
	require.Positive(t, left, "no kill came while something was made")
	require.Positive(t, sets)
	require.Positive(t, parts)
}

// unfinished counts the groups that have no notes, of those with such names.
func unfinished(t *testing.T, dir, names string) (n int) {
	groups, err := filepath.Glob(filepath.Join(dir, "resourcesync", "*", "*", names))
	require.NoError(t, err)
	for _, group := range groups {
		if _, err := os.Stat(filepath.Join(group, "set.json")); err != nil {
			n++
		}
	}
	return n
}

// kill runs the task on a folder and kills it a while after it has opened that.
func kill(t *testing.T, dir string, after time.Duration) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), task+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	time.Sleep(after)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "it was killed, and had not ended by itself")
}

func gunzip(t *testing.T, b []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	plain, err := io.ReadAll(z)
	require.NoError(t, err)
	return plain
}

// A process was killed at the end of a build, after its set was complete. Its remains go with the next build,
// although that has nothing to make.
func TestWhatAKillAfterTheSetHasLeftGoes(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, old, site string){
		"half removed": func(t *testing.T, old, _ string) { require.NoError(t, os.Remove(filepath.Join(old, "set.json"))) },
		"not removed":  func(*testing.T, string, string) {},
		"of other sites": func(t *testing.T, old, site string) {
			require.NoError(t, os.Rename(old, filepath.Join(site+"x", filepath.Base(old))))
		},
		"of a change list": func(t *testing.T, old, site string) {
			require.NoError(t, os.Rename(old, filepath.Join(site, "changes-7-x")))
			require.NoError(t, os.Remove(filepath.Join(site, "changes-7-x", "set.json")))
		},
		"an empty folder": func(t *testing.T, old, site string) {
			require.NoError(t, os.RemoveAll(old))
			require.NoError(t, os.Mkdir(old, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, copied := t.TempDir(), t.TempDir()
			db, folder, err := open(dir)
			require.NoError(t, err)
			content, err := mapOf(200, "first")
			require.NoError(t, err)
			_, err = db.CreateCollection(t.Context(), store.Collection{Name: "m", SP: sp}, content, nil)
			require.NoError(t, err)
			p := &process{t, db, folder}
			old := filepath.Join(dir, filepath.FromSlash(path.Dir(p.build().ResourceList().Name)))
			require.NoError(t, os.CopyFS(copied, os.DirFS(old)))
			for round := range resources.SetsKept {
				p.publish(round)
				p.build()
			}
			require.NoDirExists(t, old)
			require.NoError(t, db.Close())

			site := filepath.Dir(old)
			require.NoError(t, os.MkdirAll(site+"x", 0o700))
			require.NoError(t, os.CopyFS(old, os.DirFS(copied)))
			leave(t, old, site)
			db, folder, err = open(dir)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			p = &process{t, db, folder}
			p.build()
			groups, err := filepath.Glob(filepath.Join(filepath.Dir(site), "*", "*"))
			require.NoError(t, err)
			require.Len(t, groups, resources.SetsKept)
			require.Zero(t, unfinished(t, dir, "*"))
			require.Len(t, p.sets(t), resources.SetsKept)
		})
	}
}

// A build that is begun and not ended goes by itself once no process can be at it any more, also if nothing changes
// that would have a set made.
func TestWhatIsHalfMadeGoesWhenItIsOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, folder, err := open(dir)
	require.NoError(t, err)
	defer db.Close()
	content, err := mapOf(200, "first")
	require.NoError(t, err)
	c, err := db.CreateCollection(t.Context(), store.Collection{Name: "m", SP: sp}, content, nil)
	require.NoError(t, err)
	p := &process{t, db, folder}
	group := filepath.Join(dir, filepath.FromSlash(path.Dir(p.build().ResourceList().Name)))
	begun := filepath.Join(filepath.Dir(group), "set-9-x")
	require.NoError(t, os.CopyFS(begun, os.DirFS(group)))
	require.NoError(t, os.Remove(filepath.Join(begun, "set.json")))
	sweep := func() {
		require.NoError(t, folder.Sweep(t.Context(), func() ([]uuid.UUID, error) { return []uuid.UUID{c.Epoch}, nil }))
	}
	sweep()
	require.DirExists(t, begun, "a process may be at it")
	for _, name := range []string{begun, group} {
		all, err := filepath.Glob(filepath.Join(name, "*"))
		require.NoError(t, err)
		for _, file := range all {
			at := time.Now().Add(-files.Unfinished - time.Minute)
			require.NoError(t, os.Chtimes(file, at, at))
		}
	}
	sweep()
	require.NoDirExists(t, begun)
	require.Len(t, p.sets(t), 1)
}
