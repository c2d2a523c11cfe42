package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
)

var readingRules = []rule{
	{"there are no rows at first", func(c *checker) {
		require.Empty(c, rows(c, c, ""))
		r := snapshot(c, c)
		defer r.Close()
		require.Empty(c, list(c, r.Range(nil, nil, true)))
		value, err := r.Get([]byte("a"))
		require.NoError(c, err)
		require.Nil(c, value)
	}},
	{"a row is found by its key alone", func(c *checker) {
		set(c, c, "ab", "1", "abc", "2")
		r := snapshot(c, c)
		defer r.Close()
		for key, want := range map[string][]byte{"ab": []byte("1"), "abc": []byte("2"), "a": nil, "abcd": nil, "b": nil} {
			value, err := r.Get([]byte(key))
			require.NoError(c, err)
			require.Equal(c, want, value, key)
		}
	}},
	{"an empty value is a value", func(c *checker) {
		set(c, c, "a", "")
		require.NoError(c, Update(c.Context(), c, func(_ kv.Reader, w kv.Writer) error { return w.Put([]byte("b"), nil) }))
		r := snapshot(c, c)
		defer r.Close()
		for _, key := range []string{"a", "b"} {
			value, err := r.Get([]byte(key))
			require.NoError(c, err)
			require.NotNil(c, value)
			require.Empty(c, value)
		}
		require.Equal(c, []string{"a", "", "b", ""}, rows(c, c, ""))
	}},
	{"rows come in the order of bytes", func(c *checker) {
		set(c, c, "b", "5", "a\x00", "2", "a", "1", "a\xff\xff", "4", "\xff", "7", "a\xff", "3", "é", "6", "\xff\xff", "8",
			"\x00", "0")
		require.Equal(c, []string{"\x00", "0", "a", "1", "a\x00", "2", "a\xff", "3", "a\xff\xff", "4", "b", "5", "é", "6",
			"\xff", "7", "\xff\xff", "8"}, rows(c, c, ""))
	}},
	{"a range has a prefix, a beginning and a direction", checkRanges},
	{"long keys that begin alike are in the order of bytes", func(c *checker) {
		random := rand.New(rand.NewPCG(1, 2))
		alike := func(n int) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(random.IntN(256)) // which no index packs
			}
			return "k" + string(b)
		}
		var keys, all []string
		for _, begin := range []string{alike(1990), alike(1999), alike(2600), alike(64_000)} {
			for _, end := range []string{"", "\x00", "\x00\x00", "a", "a/", alike(900), "\xff", "\xff\xff"} {
				keys = append(keys, begin+end)
			}
		}
		slices.Sort(keys)
		for i, key := range keys {
			all = append(all, key, fmt.Sprint(i))
		}
		set(c, c, all...)
		r := snapshot(c, c)
		defer r.Close()
		require.Equal(c, all, list(c, r.Range([]byte("k"), nil, false)))
		for i, key := range keys {
			value, err := r.Get([]byte(key))
			require.NoError(c, err)
			require.Equal(c, fmt.Sprint(i), string(value))
			require.Equal(c, all[2*i:], list(c, r.Range(nil, []byte(key), false)))
			back := list(c, r.Range(nil, []byte(key), true))
			require.Len(c, back, 2*(i+1))
			require.Equal(c, key, back[0])
			require.Equal(c, keys[0], back[2*i])
		}
		set(c, c, keys[3], "-", keys[4], "new")
		require.NoError(c, c.DeletePrefix(c.Context(), []byte(keys[10][:1000])))
		now := snapshot(c, c)
		defer now.Close()
		for _, key := range slices.Delete(slices.Clone(keys), 3, 4) {
			value, err := now.Get([]byte(key))
			require.NoError(c, err)
			require.Equal(c, strings.HasPrefix(key, keys[10][:1000]), value == nil)
		}
	}},
	{"an iteration may be left and begun again", func(c *checker) {
		set(c, c, "a", "1", "b", "2", "c", "3")
		r := snapshot(c, c)
		defer r.Close()
		all := r.Range(nil, nil, false)
		for row, err := range all {
			require.NoError(c, err)
			require.Equal(c, "a", string(row.Key))
			break
		}
		for outer, err := range all {
			require.NoError(c, err)
			key := string(outer.Key)
			require.Equal(c, []string{"a", "1", "b", "2", "c", "3"}, list(c, all), "an iteration within another")
			require.Equal(c, key, string(outer.Key))
		}
	}},
	{"a value stays as it is", func(c *checker) {
		set(c, c, "a", "first", "b", "other")
		r := snapshot(c, c)
		defer r.Close()
		value, err := r.Get([]byte("a"))
		require.NoError(c, err)
		_, err = r.Get([]byte("b"))
		require.NoError(c, err)
		list(c, r.Range(nil, nil, false))
		set(c, c, "a", "second")
		require.Equal(c, "first", string(value))
	}},
	{"one reader serves many at a time", func(c *checker) {
		for i := range 50 {
			set(c, c, fmt.Sprintf("%02d", i), "x")
		}
		r := snapshot(c, c)
		defer r.Close()
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for i := range 50 {
					value, err := r.Get(fmt.Appendf(nil, "%02d", i))
					if err == nil && string(value) != "x" {
						err = errors.New("another value was read")
					}
					n := 0
					for _, failed := range r.Range([]byte("1"), nil, i%2 == 0) {
						err = errors.Join(err, failed)
						n++
					}
					if err != nil || n != 10 {
						c.Errorf("%d rows, %v", n, err)
					}
				}
			})
		}
		readers.Wait()
	}},
	{"an ended context ends reading", func(c *checker) {
		set(c, c, "a", "1", "b", "2", "c", "3")
		why := errors.New("nobody waits")
		ctx, cancel := context.WithCancelCause(c.Context())
		defer cancel(nil)
		r, err := c.Snapshot(ctx)
		require.NoError(c, err)
		defer r.Close()
		seen := 0
		for _, err := range r.Range(nil, nil, false) {
			if seen++; seen == 1 {
				require.NoError(c, err)
				cancel(why)
				continue
			}
			require.ErrorIs(c, err, why)
		}
		require.Equal(c, 2, seen, "the error is the last that it yields")
		_, err = r.Get([]byte("a"))
		require.ErrorIs(c, err, why)
		for _, err := range r.Range(nil, nil, true) {
			require.ErrorIs(c, err, why)
		}
		_, err = c.Snapshot(ctx)
		require.ErrorIs(c, err, why)
		_, err = c.Version(ctx)
		require.ErrorIs(c, err, why)
	}},
}

func checkRanges(c *checker) {
	var keys []string
	var all []string
	for _, key := range []string{"a", "b", "b/1", "b/3", "b/3/x", "b/\xff", "b/\xff\xff", "b0", "c", "\xff", "\xff\x01"} {
		keys = append(keys, key)
		all = append(all, key, "of "+key)
	}
	set(c, c, all...)
	r := snapshot(c, c)
	defer r.Close()
	for _, prefix := range []string{"", "a", "b", "b/", "b/3", "b/\xff", "c", "x", "\xff", "\xff\xff"} {
		for _, from := range append(keys, "none", "", "A", "b/0", "b/2", "b/4", "b/\xff\xff\xff", "d", "\xff\xff\xff") {
			for _, reverse := range []bool{false, true} {
				start := []byte(from)
				if from == "none" {
					start = nil
				}
				want := []string{}
				for i := range keys {
					key := keys[i]
					if reverse {
						key = keys[len(keys)-1-i]
					}
					in := strings.HasPrefix(key, prefix)
					if start != nil {
						order := bytes.Compare([]byte(key), start)
						in = in && (order == 0 || (order > 0) != reverse)
					}
					if in {
						want = append(want, key, "of "+key)
					}
				}
				require.Equal(c, want, list(c, r.Range([]byte(prefix), start, reverse)), "prefix %q, from %q, reverse %t", prefix,
					from, reverse)
			}
		}
	}
}
