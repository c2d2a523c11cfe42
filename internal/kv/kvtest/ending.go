package kvtest

import (
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
)

var endingRules = []rule{
	{"a closed engine returns an error", func(c *checker) {
		set(c, c, "a", "1")
		require.NoError(c, c.Close())
		require.NoError(c, c.Close())
		_, err := c.Snapshot(c.Context())
		require.ErrorIs(c, err, kv.ErrClosed)
		_, err = c.Version(c.Context())
		require.ErrorIs(c, err, kv.ErrClosed)
		_, err = c.Begin(c.Context(), kv.First)
		require.ErrorIs(c, err, kv.ErrClosed)
		_, err = c.Bulk(c.Context())
		require.ErrorIs(c, err, kv.ErrClosed)
		require.ErrorIs(c, c.DeletePrefix(c.Context(), []byte("a")), kv.ErrClosed)
	}},
	{"an engine that verifies its rows finds them whole", func(c *checker) {
		v, ok := c.Engine.(kv.Verifier)
		if !ok {
			c.Skip("it verifies nothing")
		}
		set(c, c, "a", "1")
		require.NoError(c, v.Verify(c.Context()))
	}},
}
