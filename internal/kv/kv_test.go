package kv

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/tmshare/tmshare/internal/testenv" // the flags of tests
)

func TestKeys(t *testing.T) {
	for key, ok := range map[string]bool{"a": true, "\x00": true, strings.Repeat("k", MaxKey): true, "": false, "\xFF\xFF\xFF": true, Reserved: false, Reserved + "1": false, strings.Repeat("k", MaxKey+1): false} {
		require.Equal(t, ok, CheckKey([]byte(key)) == nil, "%.20q", key)
	}
}

// After is greater than all keys with the prefix, and there is no key in between.
func TestAfter(t *testing.T) {
	require.Nil(t, After(nil))
	require.Nil(t, After([]byte("\xff\xff")))
	require.Equal(t, []byte("b"), After([]byte("a\xff")))
	rapid.Check(t, func(r *rapid.T) {
		bytesOf := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xFE, 0xFF}), 0, 4)
		prefix, key := bytesOf.Draw(r, "prefix"), bytesOf.Draw(r, "key")
		if after := After(prefix); after != nil {
			behind := bytes.Compare(key, prefix) > 0 && !bytes.HasPrefix(key, prefix)
			require.Equal(r, behind, bytes.Compare(key, after) >= 0, "prefix %x, key %x, after %x", prefix, key, after)
		}
	})
}

// States are equal if number and id are; the zero value is that of none.
func TestVersions(t *testing.T) {
	at := Version{Number: 3, ID: 7}
	require.True(t, at.Same(Version{3, 7, 5}))
	require.False(t, at.Same(Version{Number: 4, ID: 7}))
	require.False(t, at.Same(Version{Number: 3, ID: 8}))
	require.False(t, Version{}.Same(Version{}))
	require.False(t, at.IsBefore(at))
	require.True(t, at.IsBefore(Version{Number: 4}))
	require.False(t, Version{Number: 4}.IsBefore(at))
	require.True(t, at.IsBefore(Version{Number: 3, ID: 8}), "another commit of the same number is of a state that was lost")
	one, other := at.Next(), at.Next()
	require.Equal(t, uint64(4), one.Number)
	require.False(t, one.Same(other))
}
