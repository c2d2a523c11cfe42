package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// A snapshot whose files have other bytes than the server wrote, and as many, is never taken for the map: a client either
// gets the map or is told that it cannot be read.
func TestSnapshotWithOtherBytesOfTheSameLengthIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(t *testing.T, file []byte) []byte
		refused bool // else the server notices, and has another snapshot
	}{
		"another map, packed as it should be": {damage: another},
		"zeros in the middle": {refused: true, damage: func(_ *testing.T, file []byte) []byte {
			clear(file[len(file)/2 : len(file)/2+100])
			return file
		}},
		"zeros at the end": {damage: func(_ *testing.T, file []byte) []byte {
			clear(file[len(file)-20:])
			return file
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, server.Config{})
			importMap(t, s, "egov", maps.EGov)
			files, err := filepath.Glob(filepath.Join(s.Store.Dir(), "snapshots", "*", "*.gz"))
			require.NoError(t, err)
			require.Len(t, files, 2, "one for each form")
			for _, path := range files {
				file, err := os.ReadFile(path)
				require.NoError(t, err)
				damaged := c.damage(t, bytes.Clone(file))
				require.Len(t, damaged, len(file))
				require.NoError(t, os.WriteFile(path, damaged, 0o600))
			}

			node := newClient(t)
			_, err = node.Subscribe(t.Context(), s.BaseURL+"/topicmaps/egov", client.SubscribeOptions{})
			require.NoError(t, err)
			round, err := node.Sync(t.Context(), "egov")
			if c.refused {
				assert.ErrorContains(t, err, "snapshot")
				return
			}
			require.NoError(t, err)
			assert.True(t, round.CleanStart)
			verdict, err := node.Verify(t.Context(), "egov")
			require.NoError(t, err)
			assert.True(t, verdict.Equal)
		})
	}
}

// another returns the gzip file of another map, of the same length: an extra field fills it up (RFC 1952 §2.3.1.1, Extra
// field).
func another(t *testing.T, file []byte) []byte {
	const other = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="t"><subjectIdentifier href="http://psi.example.org/other"/></topic></topicMap>`
	pack := func(extra []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Extra = extra
		_, err := z.Write([]byte(other))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	const header = 2 // bytes of the field's own length
	return pack(make([]byte, len(file)-len(pack(nil))-header))
}
