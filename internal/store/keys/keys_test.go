package keys

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	_ "github.com/tmshare/tmshare/internal/testenv" // the flags of tests
)

// The row that engines read with each version is one of the names.
func TestTheEraIsAmongTheNames(t *testing.T) { require.Equal(t, Meta("era"), kv.EraKey) }

// A list of keys returns each of them, and an invalid list is an error.
func TestListsOfSharedBeginnings(t *testing.T) {
	all := []string{"a", "abc", "abd", "b", "\x00", "\x00\x00"}
	var list, last []byte
	for _, key := range all {
		list = AppendShared(list, last, []byte(key))
		last = []byte(key)
	}
	var got []string
	var key []byte
	for rest, ok := list, true; len(rest) > 0; {
		key, rest, ok = NextShared(rest, key)
		require.True(t, ok)
		got = append(got, string(key))
	}
	require.Equal(t, all, got)
	for _, bad := range []string{"\x00", "\x00\x02a", "\x01\x00", "\x00\x00", "\xFF", "\x00\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"} {
		_, _, ok := NextShared([]byte(bad), nil)
		require.False(t, ok, "%q", bad)
	}
}
