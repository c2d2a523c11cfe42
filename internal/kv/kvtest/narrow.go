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

// narrowRules are about commits that depend on some keyspaces alone. Keys of the keyspace n begin with in(n).
var narrowRules = []rule{
	{"a commit is refused only if the rows that it depends on have changed", func(c *checker) {
		for _, size := range []int{1, many} {
			for name, by := range map[string]struct {
				reads   []uint32
				other   string // the row that another writer changes meanwhile
				refused bool
			}{
				"nothing":                         {nil, in(9, "x"), false},
				"its own keyspace":                {nil, in(1, "x"), true},
				"a keyspace that it has read":     {[]uint32{2, 3}, in(3, "x"), true},
				"a keyspace that it has not read": {[]uint32{2, 3}, in(4, "x"), false},
				"a keyspace of none":              {[]uint32{5}, in(5, "x"), true},
			} {
				set(c, c, in(2, "a"), "1", in(3, "a"), "1")
				require.NoError(c, c.DeletePrefix(c.Context(), []byte(in(5, ""))))
				r := snapshot(c, c)
				w, err := c.Begin(c.Context(), r.Version())
				require.NoError(c, err)
				require.NoError(c, writeMany(w, in(1, "r"), size, 10, name))
				require.NoError(c, w.Narrow(r, by.reads))
				set(c, c, by.other, fmt.Sprint(size, name))
				before := version(c, c)
				if err = w.Commit(); by.refused {
					require.ErrorIs(c, err, kv.ErrConflict, "%s, %d rows", name, size)
					require.Equal(c, before, version(c, c))
				} else {
					require.NoError(c, err, "%s, %d rows", name, size)
					require.Equal(c, w.Leads(), version(c, c))
					require.Equal(c, before.Number+1, version(c, c).Number)
					require.NotEqual(c, before.ID, version(c, c).ID)
				}
				w.Cancel()
				r.Close()
			}
		}
	}},
	{"if each of two transactions reads rows that the other changes, one is refused", func(c *checker) {
		set(c, c, in(1, "a"), "1", in(2, "a"), "1")
		r := snapshot(c, c)
		defer r.Close()
		var failed [2]error
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				w, err := c.Begin(c.Context(), r.Version())
				if err == nil {
					defer w.Cancel()
					err = errors.Join(w.Put([]byte(in(uint32(1+i), "a")), []byte("2")), w.Narrow(r, []uint32{uint32(2 - i)}))
				}
				if err == nil {
					err = w.Commit()
				}
				failed[i] = err
			})
		}
		both.Wait()
		for i := range 2 {
			if failed[i] != nil {
				require.ErrorIs(c, failed[i], kv.ErrConflict)
			}
		}
		require.NotEqual(c, failed[0] == nil, failed[1] == nil, "%v, %v", failed[0], failed[1])
	}},
	{"all of the state is another one after any commit", func(c *checker) {
		set(c, c, in(1, "a"), "1")
		r := snapshot(c, c)
		defer r.Close()
		whole, err := c.Begin(c.Context(), r.Version())
		require.NoError(c, err)
		defer whole.Cancel()
		require.NoError(c, whole.Put([]byte(in(2, "a")), []byte("1")))
		w, err := c.Begin(c.Context(), r.Version())
		require.NoError(c, err)
		defer w.Cancel()
		require.NoError(c, errors.Join(w.Put([]byte(in(3, "a")), []byte("1")), w.Narrow(r, nil), w.Commit()))
		require.ErrorIs(c, whole.Commit(), kv.ErrConflict)
	}},
	{"no change is lost among writers of several keyspaces", func(c *checker) {
		const writers, each = 6, 30
		var done sync.WaitGroup
		for i := range writers {
			done.Go(func() {
				for n := range each {
					own, other := uint32(1+i%3), uint32(1+(i+n)%3)
					for {
						err := addTo(c.Context(), c, own, other)
						if err == nil {
							break
						}
						if !errors.Is(err, kv.ErrConflict) {
							c.Error(err)
							return
						}
					}
				}
			})
		}
		done.Wait()
		r := snapshot(c, c)
		defer r.Close()
		sum := uint64(0)
		for space := range uint32(3) {
			n, err := count(r, in(1+space, "n"))
			require.NoError(c, err)
			sum += n
		}
		require.Equal(c, uint64(writers*each), sum)
	}},
}

// addTo adds one to the number in a keyspace, if the number in another one is unchanged.
func addTo(ctx context.Context, e kv.Engine, own, other uint32) error {
	return updateOnce(ctx, e, func(r kv.Reader, w kv.Writer) error {
		n, err := count(r, in(own, "n"))
		if err == nil {
			err = w.Put([]byte(in(own, "n")), binary.BigEndian.AppendUint64(nil, n+1))
		}
		return errors.Join(err, w.Narrow(r, []uint32{own, other}))
	})
}

// in returns a key in a keyspace.
func in(space uint32, rest string) string {
	return string(binary.BigEndian.AppendUint32(nil, space)) + rest
}
