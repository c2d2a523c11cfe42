package kvtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
)

// The rules of [kv.ManyReader]. Engines with other readers pass them, too.
var manyRules = []rule{
	{"keys and prefixes are answered as one by one", func(c *checker) {
		long := strings.Repeat("long/", 500)
		state := map[string]string{
			"a": "1", "a\x00": "", "a\xff": "2", "b": strings.Repeat("b", 5000), "c/large": strings.Repeat("c", 200_000),
			"c/": "1", "c/small": "2", "\xff\xff": "3",
			long: "the head alone and more", long + "1": "", long + "2": "x", long[:1999] + "a": "y", long[:2000]: "z",
			long[:2001]: "zz",
		}
		for i := range 10 {
			state[fmt.Sprintf("few/%02d", i)] = fmt.Sprint(i)
		}
		for i := range 70 {
			state[fmt.Sprintf("many/%02d", i)] = ""
			state[fmt.Sprintf("%salike%02d", long, i)] = fmt.Sprint(i)
		}
		set(c, c, pairs(state)...)
		r := snapshot(c, c)
		defer r.Close()
		keys := append(slices.Collect(maps.Keys(state)), "", "A", "a\x01", "few/", long+"3", strings.Repeat("k", kv.MaxKey),
			"\xff")
		prefixes := []string{"", "a", "b", "c", "c/", "none", "few/", "few/0", "many", "many/", "many/1", "long", long[:1999],
			long[:2000], long[:2001], long, long + "alike", "\xff", "\xff\xff"}
		for _, most := range []int{1, 9, 10, 11, 64, 69, 70, 71} {
			readMany(c, r, state, keys, prefixes, most)
		}
		readMany(c, r, state, keys, nil, 10)
		readMany(c, r, state, nil, prefixes, 10)
		readMany(c, r, state, nil, nil, 10)
	}},
	{"a thousand keys and prefixes are few", func(c *checker) {
		state := map[string]string{}
		var keys, prefixes []string
		for i := range 9000 {
			key := fmt.Sprintf("%05d", i)
			if i%3 > 0 {
				state[key] = strings.Repeat("v", i%300)
			}
			if keys = append(keys, key); i%2 == 0 {
				prefixes = append(prefixes, key[:4], key)
			}
		}
		for i := range 40 {
			keys = append(keys, fmt.Sprintf("%05d", i)+strings.Repeat("k", 60_000))
		}
		slices.Sort(prefixes)
		set(c, c, pairs(state)...)
		r := snapshot(c, c)
		defer r.Close()
		readMany(c, r, state, keys, slices.Compact(prefixes), 64)
	}},
	{"a reader keeps to its state when it is asked for many", func(c *checker) {
		set(c, c, "a", "1", "b", "2")
		r := snapshot(c, c)
		defer r.Close()
		set(c, c, "a", "-", "b", "3", "b/", "4")
		readMany(c, r, map[string]string{"a": "1", "b": "2"}, []string{"a", "b", "b/"}, []string{"", "a", "b"}, 10)
	}},
	{"an ended context ends reading many", func(c *checker) {
		set(c, c, "a", "1")
		why := errors.New("nobody waits")
		ctx, cancel := context.WithCancelCause(c.Context())
		r, err := c.Snapshot(ctx)
		require.NoError(c, err)
		defer r.Close()
		cancel(why)
		if many, ok := r.(kv.ManyReader); ok {
			require.ErrorIs(c, many.ReadMany([][]byte{[]byte("a")}, [][]byte{[]byte("a")}, 1, func(_, _ []byte) {},
				func([]byte, []kv.Row, bool) {}), why)
		}
	}},
}

func pairs(state map[string]string) (all []string) {
	for key, value := range state {
		all = append(all, key, value)
	}
	return all
}

// readMany compares the combined answers of a reader with the expected rows.
func readMany(t tester, r kv.Reader, state map[string]string, keys, prefixes []string, most int) {
	t.Helper()
	many, ok := r.(kv.ManyReader)
	if !ok {
		return
	}
	inOrder := slices.Sorted(maps.Keys(state))
	given := map[string]bool{}
	err := many.ReadMany(asBytes(keys), asBytes(prefixes), most, func(key, value []byte) {
		want, there := state[string(key)]
		require.Equal(t, there, value != nil, "%.80q", key)
		require.Equal(t, want, string(value), "%.80q", key)
		require.False(t, given[string(key)], "%.80q", key)
		given[string(key)] = true
	}, func(prefix []byte, rows []kv.Row, more bool) {
		want := slices.DeleteFunc(slices.Clone(inOrder), func(key string) bool {
			return !strings.HasPrefix(key, string(prefix))
		})
		require.LessOrEqual(t, len(rows), min(most, len(want)), "%.80q", prefix)
		for i, row := range rows {
			require.Equal(t, want[i], string(row.Key), "%.80q", prefix)
			require.NotNil(t, row.Value)
			require.Equal(t, state[want[i]], string(row.Value), "%.80q", row.Key)
		}
		if few := len(prefix) <= 1000 && !slices.ContainsFunc(want, func(key string) bool {
			return len(key) > 1000 || len(state[key]) > 10_000
		}); few {
			require.Len(t, rows, min(most, len(want)), "%.80q", prefix)
			given["prefix "+string(prefix)] = true
		}
		require.True(t, more || len(rows) == len(want), "%.80q: %d of %d", prefix, len(rows), len(want))
		require.False(t, more && len(want) == 0, "%.80q", prefix)
	})
	require.NoError(t, err)
	for _, key := range keys {
		if len(state[key]) <= 10_000 {
			require.True(t, given[key], "no answer for %.80q", key)
		}
	}
	for _, prefix := range []string{"few/", "many/", "none"} {
		require.Equal(t, slices.Contains(prefixes, prefix), given["prefix "+prefix], prefix)
	}
}

func asBytes(all []string) [][]byte {
	some := make([][]byte, len(all))
	for i := range all {
		some[i] = []byte(all[i])
	}
	return some
}
