package kvtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
)

var sharingRules = []rule{
	{"who is late decides again", func(c *checker) {
		set(c, c, "a", "1")
		since := version(c, c)
		late, err := c.Begin(c.Context(), since)
		require.NoError(c, err)
		defer late.Cancel()
		require.NoError(c, write(late, "a", "late", "b", "late"))
		set(c, c, "x", "of somebody else")
		require.ErrorIs(c, late.Commit(), kv.ErrConflict)
		require.Equal(c, []string{"a", "1", "x", "of somebody else"}, rows(c, c, ""))
		require.NoError(c, Update(c.Context(), c, func(_ kv.Reader, w kv.Writer) error { return write(w, "a", "late") }))
		require.Equal(c, []string{"a", "late", "x", "of somebody else"}, rows(c, c, ""))
	}},
	{"who is late with many rows decides again", func(c *checker) {
		late, err := c.Begin(c.Context(), version(c, c))
		require.NoError(c, err)
		defer late.Cancel()
		require.NoError(c, writeMany(late, "r", many, 10, "late"))
		set(c, c, "x", "of somebody else")
		require.ErrorIs(c, late.Commit(), kv.ErrConflict)
		require.Equal(c, []string{"x", "of somebody else"}, rows(c, c, ""))
	}},
	{"nothing follows a state that was never there", func(c *checker) {
		set(c, c, "a", "1")
		for _, since := range []kv.Version{{}, version(c, c).Next(), kv.First, {Number: version(c, c).Number, ID: 1}} {
			w, err := c.Begin(c.Context(), since)
			require.NoError(c, err)
			require.NoError(c, write(w, "a", "2"))
			require.ErrorIs(c, w.Commit(), kv.ErrConflict)
			w.Cancel()
		}
		require.Equal(c, []string{"a", "1"}, rows(c, c, ""))
	}},
	{"a version stays until a commit", func(c *checker) {
		first := version(c, c)
		require.NotZero(c, first)
		r := snapshot(c, c)
		defer r.Close()
		require.True(c, r.Version().Same(first))
		bulk, err := c.Bulk(c.Context())
		require.NoError(c, err)
		require.NoError(c, writeMany(bulk, "r", many, 10, "x"))
		require.NoError(c, bulk.Commit())
		require.NoError(c, c.DeletePrefix(c.Context(), []byte("r")))
		given, err := c.Begin(c.Context(), first)
		require.NoError(c, err)
		require.NoError(c, writeMany(given, "r", many, 10, "x"))
		given.Cancel()
		require.True(c, version(c, c).Same(first))
		require.True(c, snapshotVersion(c).Same(first))
		for _, n := range []int{1, many} {
			before := version(c, c)
			var leads kv.Version
			require.NoError(c, Update(c.Context(), c, func(_ kv.Reader, w kv.Writer) error {
				leads = w.Leads()
				return writeMany(w, "r", n, 10, "x")
			}))
			require.Equal(c, leads, version(c, c))
			require.Equal(c, before.Number+1, leads.Number)
			require.NotEqual(c, before.ID, leads.ID)
			require.Equal(c, version(c, c), snapshotVersion(c))
		}
		require.True(c, r.Version().Same(first), "it is that of the state that is read")
	}},
	{"a version has the era of its state", func(c *checker) {
		set(c, c, "a", "1")
		require.Zero(c, version(c, c).Era)
		before := snapshot(c, c)
		defer before.Close()
		set(c, c, string(kv.EraKey), "\x00\x01\x02\x03\x04\x05\x06\x07")
		require.Equal(c, uint64(0x01020304050607), version(c, c).Era)
		require.Equal(c, version(c, c), snapshotVersion(c))
		require.Zero(c, before.Version().Era)
		set(c, c, string(kv.EraKey), "-")
		require.Zero(c, version(c, c).Era)
	}},
	{"no change is lost among writers", func(c *checker) {
		const writers, each = 6, 40
		var done sync.WaitGroup
		for i := range writers {
			done.Go(func() {
				for range each {
					err := Update(c.Context(), c, func(r kv.Reader, w kv.Writer) error {
						for _, key := range []string{"all", fmt.Sprint("of ", i)} {
							n, err := count(r, key)
							if err == nil {
								err = w.Put([]byte(key), binary.BigEndian.AppendUint64(nil, n+1))
							}
							if err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						c.Error(err)
						return
					}
				}
			})
		}
		done.Wait()
		r := snapshot(c, c)
		defer r.Close()
		n, err := count(r, "all")
		require.NoError(c, err)
		require.Equal(c, uint64(writers*each), n)
		for i := range writers {
			n, err := count(r, fmt.Sprint("of ", i))
			require.NoError(c, err)
			require.Equal(c, uint64(each), n)
		}
	}},
	{"readers see commits whole, in order, and as old as their versions say", checkReadersBesideWriters},
}

func snapshotVersion(c *checker) kv.Version {
	r := snapshot(c, c)
	defer r.Close()
	return r.Version()
}

func count(r kv.Reader, key string) (uint64, error) {
	b, err := r.Get([]byte(key))
	if b == nil || err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b), nil
}

// checkReadersBesideWriters makes small and large commits while others read: each state has the rows of one commit, not
// of an earlier one than the last that has returned, and is the same for the same version.
func checkReadersBesideWriters(c *checker) {
	const commits = 8
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	var mu sync.Mutex
	committed := uint64(0) // the number of the last commit that has returned
	numbers := map[kv.Version]uint64{}
	var readers sync.WaitGroup
	look := func() error {
		mu.Lock()
		least := committed
		mu.Unlock()
		r, err := c.Snapshot(c.Context())
		if err != nil {
			return err
		}
		defer r.Close()
		n, err := count(r, "number")
		if err != nil {
			return err
		}
		for row, err := range r.Range([]byte("r"), nil, false) {
			if err != nil {
				return err
			}
			if string(row.Value) != fmt.Sprint(n) {
				return fmt.Errorf("row %q is of commit %s in commit %d", row.Key, row.Value, n)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if n < least {
			return fmt.Errorf("commit %d had returned, %d is read", least, n)
		}
		if v := r.Version(); v.Number > 0 {
			if other, ok := numbers[v]; ok && other != n {
				return fmt.Errorf("version %v is of commit %d and of %d", v, n, other)
			}
			numbers[v] = n
		}
		return nil
	}
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := look(); err != nil {
					c.Error(err)
					return
				}
			}
		})
	}
	for n := uint64(1); n <= commits; n++ {
		size := 100
		if n%4 == 2 {
			size = many
		}
		require.NoError(c, Update(c.Context(), c, func(r kv.Reader, w kv.Writer) error {
			var failed error
			for row, err := range r.Range([]byte("r"), nil, false) {
				failed = errors.Join(failed, err, w.Delete(append([]byte(nil), row.Key...)))
			}
			for i := range size {
				failed = errors.Join(failed, w.Put(fmt.Appendf(nil, "r%08d", i), fmt.Append(nil, n)))
			}
			return errors.Join(failed, w.Put([]byte("number"), binary.BigEndian.AppendUint64(nil, n)))
		}))
		mu.Lock()
		committed = n
		mu.Unlock()
		if err := look(); err != nil {
			c.Fatal(err)
		}
	}
	cancel()
	readers.Wait()
	require.GreaterOrEqual(c, len(numbers), commits, "each commit has a version of its own")
}
