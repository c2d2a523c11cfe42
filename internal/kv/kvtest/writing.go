package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
)

// many rows outgrow a transaction of most engines.
const many = 20_000

var writingRules = []rule{
	{"a commit puts and deletes", func(c *checker) {
		set(c, c, "a", "1", "b", "2", "c", "3")
		set(c, c, "a", "-", "b", "two", "d", "4", "x", "-")
		require.Equal(c, []string{"b", "two", "c", "3", "d", "4"}, rows(c, c, ""))
	}},
	{"the last change of a key counts", func(c *checker) {
		set(c, c, "a", "1", "a", "2", "b", "1", "b", "-", "c", "-", "c", "3")
		require.Equal(c, []string{"a", "2", "c", "3"}, rows(c, c, ""))
	}},
	{"uncommitted rows are not visible", func(c *checker) {
		set(c, c, "a", "1")
		w, err := c.Begin(c.Context(), version(c, c))
		require.NoError(c, err)
		require.NoError(c, write(w, "a", "2", "b", "2"))
		require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
		w.Cancel()
		w.Cancel()
		require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
		wrong := errors.New("changed my mind")
		require.ErrorIs(c, Update(c.Context(), c, func(_ kv.Reader, w kv.Writer) error {
			return errors.Join(write(w, "a", "2"), wrong)
		}), wrong)
		require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
	}},
	{"the bytes given to a writer belong to the caller after the commit", func(c *checker) {
		key, value := []byte("a"), []byte("1")
		require.NoError(c, Update(c.Context(), c, func(_ kv.Reader, w kv.Writer) error { return w.Put(key, value) }))
		key[0], value[0] = 'z', '9'
		require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
	}},
	{"a commit of many rows is one", func(c *checker) { checkLarge(c, many, 10) }},
	{"a commit of large rows is one", func(c *checker) { checkLarge(c, 60, 100_000) }},
	{"a commit of many rows may be given up", func(c *checker) {
		set(c, c, "a", "1")
		for range 3 {
			w, err := c.Begin(c.Context(), version(c, c))
			require.NoError(c, err)
			require.NoError(c, writeMany(w, "r", many, 10, "x"))
			w.Cancel()
			require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
		}
		checkLarge(c, many, 10)
	}},
	{"values have a length", func(c *checker) {
		long := make([]byte, kv.MaxValue+1)
		for _, open := range []func() (kv.Writer, error){
			func() (kv.Writer, error) { return c.Begin(c.Context(), version(c, c)) },
			func() (kv.Writer, error) { return c.Bulk(c.Context()) },
		} {
			w, err := open()
			require.NoError(c, err)
			require.ErrorIs(c, w.Put([]byte("k"), long), kv.ErrTooLarge)
			w.Cancel()
		}
		require.Empty(c, rows(c, c, ""))
	}},
	{"keys have a length and are not those of the engine", func(c *checker) {
		long := strings.Repeat("k", kv.MaxKey)
		set(c, c, long, "1")
		require.Equal(c, []string{long, "1"}, rows(c, c, ""))
		for _, key := range []string{"", long + "k", kv.Reserved, kv.Reserved + "x", kv.Reserved + "\x00"} {
			for _, open := range []func() (kv.Writer, error){
				func() (kv.Writer, error) { return c.Begin(c.Context(), version(c, c)) },
				func() (kv.Writer, error) { return c.Bulk(c.Context()) },
			} {
				w, err := open()
				require.NoError(c, err)
				require.Error(c, w.Put([]byte(key), nil), "%.20q", key)
				require.Error(c, w.Delete([]byte(key)), "%.20q", key)
				w.Cancel()
			}
		}
		require.Equal(c, []string{long, "1"}, rows(c, c, ""))
	}},
	{"rows written in bulk are visible after the commit", func(c *checker) {
		set(c, c, "a", "1", "z", "1")
		w, err := c.Bulk(c.Context())
		require.NoError(c, err)
		require.NoError(c, writeMany(w, "r", many, 10, "x"))
		require.NoError(c, write(w, "z", "-"))
		require.NoError(c, w.Commit())
		w.Cancel()
		require.Equal(c, map[string]int{"x": many}, values(c, c, "r"))
		require.Equal(c, []string{"a", "1"}, append(rows(c, c, "a"), rows(c, c, "z")...))
	}},
	{"an abandoned bulk does not block other writers", func(c *checker) {
		w, err := c.Bulk(c.Context())
		require.NoError(c, err)
		require.NoError(c, writeMany(w, "r", 10_000, 10, "x"))
		w.Cancel()
		require.NoError(c, c.DeletePrefix(c.Context(), []byte("r")))
		require.Empty(c, rows(c, c, ""))
	}},
	{"the rows of an abandoned bulk are removed, and do not come back", func(c *checker) {
		w, err := c.Bulk(c.Context())
		require.NoError(c, err)
		require.NoError(c, writeMany(w, "r", 110, 100_000, "x"))
		require.NoError(c, write(w, "q", "-"))
		w.Cancel()
		require.NoError(c, c.DeletePrefix(c.Context(), []byte("r")))
		set(c, c, "a", "1")
		require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
	}},
	{"a prefix is deleted, and no other rows", func(c *checker) {
		set(c, c, "b", "1", "b/", "2", "b/1", "3", "b/\xff", "4", "b/\xff\xff", "5", "b0", "6", "\xff", "7", "\xff\xff1", "8")
		require.NoError(c, c.DeletePrefix(c.Context(), []byte("b/\xff")))
		require.Equal(c, []string{"b", "1", "b/", "2", "b/1", "3", "b0", "6", "\xff", "7", "\xff\xff1", "8"}, rows(c, c, ""))
		require.NoError(c, c.DeletePrefix(c.Context(), []byte("b/")))
		require.NoError(c, c.DeletePrefix(c.Context(), []byte("b/")))
		require.NoError(c, c.DeletePrefix(c.Context(), []byte("\xff\xff")))
		require.Equal(c, []string{"b", "1", "b0", "6", "\xff", "7"}, rows(c, c, ""))
		set(c, c, "b/1", "again")
		require.Equal(c, []string{"b/1", "again"}, rows(c, c, "b/"))
	}},
	{"a large prefix is deleted", func(c *checker) {
		w, err := c.Bulk(c.Context())
		require.NoError(c, err)
		require.NoError(c, writeMany(w, "r", many, 10, "x"))
		require.NoError(c, write(w, "q", "1", "s", "2"))
		require.NoError(c, w.Commit())
		require.NoError(c, c.DeletePrefix(c.Context(), []byte("r")))
		require.Equal(c, []string{"q", "1", "s", "2"}, rows(c, c, ""))
	}},
	{"the size grows with the rows", func(c *checker) {
		before, err := c.Size()
		require.NoError(c, err)
		w, err := c.Bulk(c.Context())
		require.NoError(c, err)
		require.NoError(c, writeMany(w, "r", 60, 100_000, "x"))
		require.NoError(c, w.Commit())
		after, err := c.Size()
		require.NoError(c, err)
		require.Greater(c, after, before+1_000_000)
	}},
	{"nothing is committed when the context has ended", func(c *checker) {
		set(c, c, "a", "1")
		why := errors.New("nobody waits")
		for _, open := range []func(context.Context) (kv.Writer, error){
			func(ctx context.Context) (kv.Writer, error) { return c.Begin(ctx, version(c, c)) },
			c.Bulk,
		} {
			for _, n := range []int{10, many} {
				ctx, cancel := context.WithCancelCause(c.Context())
				w, err := open(ctx)
				require.NoError(c, err)
				require.NoError(c, write(w, "a", "2"))
				cancel(why)
				require.ErrorIs(c, writeMany(w, "r", n, 10, "x"), why)
				require.ErrorIs(c, w.Commit(), why)
				w.Cancel()
				require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
				_, err = open(ctx)
				require.ErrorIs(c, err, why)
				require.ErrorIs(c, c.DeletePrefix(ctx, []byte("a")), why)
			}
		}
		require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
	}},
}

// writeMany writes rows, each with a value that begins with a word.
func writeMany(w kv.Writer, prefix string, n, size int, word string) error {
	value := append([]byte(word+" "), bytes.Repeat([]byte("."), size)...)
	for i := range n {
		if err := w.Put(fmt.Appendf(nil, "%s%08d", prefix, i), value); err != nil {
			return err
		}
	}
	return nil
}

// values counts the present rows with a prefix by the first words of their values.
func values(t tester, e kv.Engine, prefix string) map[string]int {
	t.Helper()
	r := snapshot(t, e)
	defer r.Close()
	return counted(t, r, prefix)
}

func counted(t tester, r kv.Reader, prefix string) map[string]int {
	t.Helper()
	words := map[string]int{}
	for row, err := range r.Range([]byte(prefix), nil, false) {
		require.NoError(t, err)
		word, _, _ := strings.Cut(string(row.Value), " ")
		words[word]++
	}
	return words
}

// checkLarge repeatedly commits n rows and removes some of them. Earlier readers still see their state.
func checkLarge(c *checker, n, size int) {
	commit := func(word string, n int) {
		require.NoError(c, Update(c.Context(), c, func(_ kv.Reader, w kv.Writer) error {
			if err := writeMany(w, "r", n, size, word); err != nil {
				return err
			}
			return w.Delete(fmt.Appendf(nil, "r%08d", n-1))
		}))
	}
	commit("first", n)
	before := snapshot(c, c)
	defer before.Close()
	commit("second", n)
	require.Equal(c, map[string]int{"second": n - 1}, values(c, c, "r"))
	commit("third", n/2)
	require.Equal(c, map[string]int{"third": n/2 - 1, "second": n - 1 - n/2}, values(c, c, "r"))
	require.Equal(c, map[string]int{"first": n - 1}, counted(c, before, "r"))
}

// Durable checks that committed rows exist when an engine is opened again. open opens the engine in a folder, or the
// present one.
func Durable(t *testing.T, open func(t *testing.T, folder string) kv.Engine) {
	folder := t.TempDir()
	e := open(t, folder)
	set(t, e, "a", "1", "b", "2")
	set(t, e, "b", "-", "c", "3")
	require.NoError(t, Update(t.Context(), e, func(_ kv.Reader, w kv.Writer) error {
		return writeMany(w, "r", many, 10, "large")
	}))
	w, err := e.Bulk(t.Context())
	require.NoError(t, err)
	require.NoError(t, writeMany(w, "s", many, 10, "bulk"))
	require.NoError(t, w.Commit())
	require.NoError(t, e.DeletePrefix(t.Context(), []byte("s0000")))
	for range 2 {
		require.NoError(t, e.Close())
		e = open(t, folder)
		require.Equal(t, []string{"a", "1", "c", "3"},
			append(append(rows(t, e, "a"), rows(t, e, "b")...), rows(t, e, "c")...))
		require.Equal(t, map[string]int{"large": many}, values(t, e, "r"))
		require.Equal(t, map[string]int{"bulk": many - 10_000}, values(t, e, "s"))
	}
	require.NoError(t, e.Close())
}
