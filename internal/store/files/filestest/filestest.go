// Package filestest holds the contract that every store of package files keeps.
package filestest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/testenv"
)

// Kind is a kind of stores.
type Kind struct {
	// Open opens a store without files, and another one over the same, as another process has it.
	// The time is what now returns.
	Open func(t *testing.T, now func() time.Time) (one, other files.Store)
	// Left returns how many things there are that are no committed file.
	Left func(t *testing.T, s files.Store) int
}

// Run checks every rule on stores of their own.
func Run(t *testing.T, k Kind) {
	for _, r := range []struct {
		name  string
		check func(*checker)
	}{
		{"what is committed can be read", (*checker).committed},
		{"nothing shows before it is committed", (*checker).unfinished},
		{"what is given up leaves nothing", (*checker).cancelled},
		{"a file can be replaced", (*checker).replaced},
		{"what is open stays readable", (*checker).open},
		{"files are listed by what their names begin with", (*checker).listed},
		{"only names of files are names", (*checker).names},
		{"nothing goes on when its context has ended", (*checker).ended},
		{"what is left behind is removed", (*checker).left},
		{"several write at once", (*checker).atOnce},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := &checker{T: t, kind: k, at: time.Now()}
			c.one, c.other = k.Open(t, func() time.Time { return c.at })
			r.check(c)
		})
	}
}

type checker struct {
	*testing.T
	kind       Kind
	at         time.Time
	one, other files.Store
}

// Content returns bytes that look like packed ones.
func Content(seed uint64, size int) []byte {
	b, rng := make([]byte, size), rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	_, _ = rng.Read(b) // which returns no error
	return b
}

// Write writes a file in pieces of some bytes.
func Write(ctx context.Context, s files.Store, name string, content []byte) error {
	w, err := s.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Cancel()
	for piece := range slices.Chunk(content, 10_007) {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return w.Commit()
}

// Read returns the content of a file.
func Read(ctx context.Context, s files.Store, name string) ([]byte, error) {
	f, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func (c *checker) write(name string, content []byte) {
	c.Helper()
	require.NoError(c, Write(c.Context(), c.one, name, content))
}

func (c *checker) requireContent(name string, want []byte) {
	c.Helper()
	for _, s := range []files.Store{c.one, c.other} {
		got, err := Read(c.Context(), s, name)
		require.NoError(c, err)
		require.True(c, bytes.Equal(want, got), "%s has %d bytes, or other ones, not %d", name, len(got), len(want))
	}
}

func (c *checker) requireNone(name string) {
	c.Helper()
	for _, s := range []files.Store{c.one, c.other} {
		_, err := s.Open(c.Context(), name)
		require.ErrorIs(c, err, fs.ErrNotExist)
	}
}

// list returns the names and sizes of files.
func (c *checker) list(prefix string) (all []string) {
	c.Helper()
	found, err := files.All(c.Context(), c.other, prefix)
	require.NoError(c, err)
	for _, f := range found {
		require.WithinDuration(c, time.Now(), f.Made, time.Hour)
		all = append(all, fmt.Sprint(f.Name, " ", f.Size))
	}
	slices.Sort(all)
	return all
}

func (c *checker) committed() {
	for n, size := range []int{0, 1, 4095, 256 << 10, 256<<10 + 1, 1_900_000} {
		name, want := fmt.Sprintf("snapshots/a/%d.gz", n), Content(uint64(n), size)
		c.write(name, want)
		c.requireContent(name, want)
		f, err := c.other.Open(c.Context(), name)
		require.NoError(c, err)
		require.EqualValues(c, size, f.Size())
		rng := testenv.Rand(uint64(n))
		for range 20 {
			from := rng.IntN(size + 1)
			part := make([]byte, rng.IntN(size-from+1))
			if rng.IntN(2) == 0 {
				_, err = f.ReadAt(part, int64(from))
			} else if _, err = f.Seek(int64(from-size), io.SeekEnd); err == nil {
				_, err = io.ReadFull(f, part)
			}
			require.NoError(c, err)
			require.True(c, bytes.Equal(want[from:from+len(part)], part), "%d bytes from %d on", len(part), from)
		}
		end := make([]byte, 10)
		read, err := f.ReadAt(end, int64(size-min(size, 3)))
		require.Equal(c, io.EOF, err)
		require.Equal(c, min(size, 3), read)
		require.NoError(c, f.Close())
	}
}

func (c *checker) unfinished() {
	const name = "snapshots/a/b/c.gz"
	c.requireNone(name)
	w, err := c.one.Create(c.Context(), name)
	require.NoError(c, err)
	want := Content(1, 700_000)
	_, err = w.Write(want)
	require.NoError(c, err)
	c.requireNone(name)
	require.Empty(c, c.list("snapshots/"))
	require.NoError(c, c.other.Sweep(c.Context(), c.at.Add(-files.Unfinished)))
	require.NoError(c, w.Commit())
	w.Cancel()
	c.requireContent(name, want)
	require.Equal(c, []string{name + " 700000"}, c.list("snapshots/"))
}

func (c *checker) cancelled() {
	for _, size := range []int{0, 10, 5_000_000} {
		w, err := c.one.Create(c.Context(), "resourcesync/x/y")
		require.NoError(c, err)
		_, err = w.Write(Content(1, size))
		require.NoError(c, err)
		w.Cancel()
		w.Cancel()
		c.requireNone("resourcesync/x/y")
	}
	require.Zero(c, c.kind.Left(c.T, c.one))
}

func (c *checker) replaced() {
	const name = "resourcesync/list.xml"
	for n := range uint64(3) {
		want := Content(n, 300_000*int(3-n))
		c.write(name, want)
		c.requireContent(name, want)
	}
	require.Len(c, c.list("resourcesync/"), 1)
	for range 2 {
		require.NoError(c, c.other.Remove(c.Context(), name))
		c.requireNone(name)
	}
	require.Empty(c, c.list("resourcesync/"))
	c.at = c.at.Add(2 * time.Hour)
	require.NoError(c, c.one.Sweep(c.Context(), c.at.Add(-files.Unfinished)))
	require.Zero(c, c.kind.Left(c.T, c.one))
}

func (c *checker) open() {
	for _, end := range []func(name string) error{
		func(name string) error { return c.one.Remove(c.Context(), name) },
		func(name string) error { return Write(c.Context(), c.one, name, []byte("other")) },
	} {
		const name = "snapshots/a/b.gz"
		want := Content(7, 3_000_000)
		c.write(name, want)
		f, err := c.other.Open(c.Context(), name)
		require.NoError(c, err)
		begin := make([]byte, 1000)
		_, err = io.ReadFull(f, begin)
		require.NoError(c, err)
		require.NoError(c, end(name))
		c.at = c.at.Add(50 * time.Minute)
		require.NoError(c, c.one.Sweep(c.Context(), c.at.Add(-files.Unfinished)))
		rest, err := io.ReadAll(f)
		require.NoError(c, err)
		require.True(c, bytes.Equal(want, append(begin, rest...)))
		require.NoError(c, f.Close())
		_, err = f.ReadAt(begin, 0)
		require.Error(c, err)
		c.at = c.at.Add(20 * time.Minute)
		require.NoError(c, c.one.Sweep(c.Context(), c.at.Add(-files.Unfinished)))
		require.Zero(c, c.kind.Left(c.T, c.one))
		require.NoError(c, c.one.Remove(c.Context(), name))
	}
}

func (c *checker) listed() {
	for n, name := range []string{"snapshots/a/1", "snapshots/a/11", "snapshots/a-b/1", "snapshots/b/c/1",
		"resourcesync/a/1"} {
		c.write(name, make([]byte, n))
	}
	require.Equal(c, []string{"snapshots/a-b/1 2", "snapshots/a/1 0", "snapshots/a/11 1", "snapshots/b/c/1 3"},
		c.list("snapshots/"))
	require.Equal(c, []string{"snapshots/a/1 0", "snapshots/a/11 1"}, c.list("snapshots/a/"))
	require.Equal(c, []string{"snapshots/a/11 1"}, c.list("snapshots/a/11"))
	require.Empty(c, c.list("snapshots/nothing/"))
	for f, err := range c.one.List(c.Context(), "snapshots/") { // which is left early
		require.NoError(c, err)
		require.NotEmpty(c, f.Name)
		break
	}
	size, err := files.Size(c.Context(), c.one, "snapshots/a")
	require.NoError(c, err)
	require.EqualValues(c, 3, size)
	require.NoError(c, files.RemoveAll(c.Context(), c.one, "snapshots/a"))
	require.Equal(c, []string{"snapshots/b/c/1 3"}, c.list("snapshots/"))
	require.Equal(c, []string{"resourcesync/a/1 4"}, c.list("resourcesync/"))
}

func (c *checker) names() {
	for _, name := range []string{
		"", "x", "snapshots", "snapshots/", "/snapshots/x", "snapshots/../x", "snapshots//x", "badger/x", "node.json",
		"snapshots/x.tmp", "snapshots/" + strings.Repeat("x/", 400) + "x",
	} {
		_, err := c.one.Create(c.Context(), name)
		require.ErrorContains(c, err, "cannot be the name of a file", name)
		_, err = c.one.Open(c.Context(), name)
		require.ErrorContains(c, err, "cannot be the name of a file", name)
		require.ErrorContains(c, c.one.Remove(c.Context(), name), "cannot be the name of a file", name)
	}
	for _, prefix := range []string{"", "snap", "snapshots", "badger/"} {
		_, err := files.All(c.Context(), c.one, prefix)
		require.ErrorContains(c, err, "no names begin with", prefix)
	}
	c.write("snapshots/a/b", nil)
	_, err := c.one.Open(c.Context(), "snapshots/a") // a folder is no file
	require.ErrorIs(c, err, fs.ErrNotExist)
}

func (c *checker) ended() {
	ctx, cancel := context.WithCancel(c.Context())
	w, err := c.one.Create(ctx, "snapshots/a/b")
	require.NoError(c, err)
	late, err := c.one.Create(ctx, "snapshots/a/b")
	require.NoError(c, err)
	_, err = late.Write([]byte("all of it"))
	require.NoError(c, err)
	cancel()
	_, err = w.Write(make([]byte, 600_000))
	require.ErrorIs(c, err, context.Canceled)
	w.Cancel()
	require.ErrorIs(c, late.Commit(), context.Canceled)
	_, err = c.one.Create(ctx, "snapshots/a/b")
	require.ErrorIs(c, err, context.Canceled)
	_, err = c.one.Open(ctx, "snapshots/a/b")
	require.ErrorIs(c, err, context.Canceled)
	require.Zero(c, c.kind.Left(c.T, c.one))
	require.Empty(c, c.list("snapshots/"))
}

func (c *checker) left() {
	c.write("snapshots/a/kept", Content(1, 500_000))
	for n := range 3 { // who is killed neither commits nor cancels
		w, err := c.one.Create(c.Context(), fmt.Sprintf("snapshots/%d/lost", n))
		require.NoError(c, err)
		_, err = w.Write(make([]byte, 5_000_000))
		require.NoError(c, err)
	}
	young := c.kind.Left(c.T, c.one) // what the engine has still in memory does not count
	require.NoError(c, c.one.Sweep(c.Context(), c.at.Add(-files.Unfinished)))
	require.GreaterOrEqual(c, c.kind.Left(c.T, c.one), young)
	require.NoError(c, c.one.Sweep(c.Context(), c.at.Add(time.Minute)))
	require.Zero(c, c.kind.Left(c.T, c.one))
	c.requireContent("snapshots/a/kept", Content(1, 500_000))
}

func (c *checker) atOnce() {
	var all sync.WaitGroup
	stores := []files.Store{c.one, c.other}
	for n := range 6 {
		all.Go(func() {
			for i := range 4 {
				own := fmt.Sprintf("snapshots/%d/%d", n, i)
				if err := Write(c.Context(), stores[n%2], own, Content(uint64(n), 300_000)); err != nil {
					c.Error(err)
				}
				if err := Write(c.Context(), stores[n%2], "snapshots/shared", Content(uint64(n), 300_000)); err != nil {
					c.Error(err)
				}
				if err := stores[n%2].Remove(c.Context(), own); err != nil {
					c.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := Read(c.Context(), c.one, "snapshots/shared")
	require.NoError(c, err)
	require.True(c, slices.ContainsFunc([]uint64{0, 1, 2, 3, 4, 5}, func(n uint64) bool {
		return bytes.Equal(got, Content(n, 300_000))
	}), "it is one of them as a whole")
	require.Equal(c, []string{"snapshots/shared 300000"}, c.list("snapshots/"))
}
