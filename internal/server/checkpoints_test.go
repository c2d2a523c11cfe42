package server_test

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// signedNode publishes a collection that is signed.
func signedNode(t *testing.T, configure ...func(*server.Config)) (*node, *checkpoint.Key) {
	n := start(t, configure...)
	n.Publish("towns", served.Small())
	key, err := checkpoint.GenerateKey(filepath.Join(t.TempDir(), "key"), "maps.example.org")
	require.NoError(t, err)
	a := n.PutSettings("towns", `{"sign": "`+key.Path+`"}`)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	return n, key
}

// The feed of a signed collection has the checkpoint of its entries, which any reader can compute from the feed.
func TestCheckpointIsThatOfTheFeed(t *testing.T) {
	t.Parallel()
	n, key := signedNode(t)
	n.MustPut("towns", served.Small("Oslo", "Christiania"))
	f, err := feeds.Decode(strings.NewReader(string(n.MustGet("/topicmaps/towns/fragments").Bytes)), n.URL("/topicmaps/towns/fragments"), feeds.Limits{})
	require.NoError(t, err)
	require.Equal(t, key.Public, f.Key)
	c, err := checkpoint.Open(f.Checkpoint, f.Key)
	require.NoError(t, err)
	assert.Equal(t, n.SP("towns"), c.Origin)
	require.Equal(t, int64(len(f.Entries)), c.Size, "this feed is of one document")
	assert.Equal(t, f.Entries[0].Digest, c.Digest, "the newest entry comes first")
	var level [][sha256.Size]byte
	for i := len(f.Entries) - 1; i >= 0; i-- {
		e := &f.Entries[i]
		level = append(level, tlog.RecordHash(checkpoint.Leaf(e.Updated, e.TopicSI[0], e.State == feeds.StateLive, e.Covered, e.Digest)))
	}
	assert.Equal(t, [sha256.Size]byte(c.Root), rootOf(level))

	link, ok := f.Link(feeds.RelCheckpoint)
	require.True(t, ok)
	assert.Equal(t, f.Checkpoint, strings.TrimSpace(string(n.MustGet(strings.TrimPrefix(link.Href, n.BaseURL)).Bytes)))
	var answer struct{ Proof tlog.TreeProof }
	require.NoError(t, json.Unmarshal(n.MustGet("/topicmaps/towns/checkpoint/consistency?from=2&to=4").Bytes, &answer))
	assert.NotEmpty(t, answer.Proof)
	for query, status := range map[string]int{"": 400, "?from=0&to=3": 400, "?from=x&to=3": 400, "?from=1": 400, "?from=3&to=2": 404, "?from=1&to=9999": 404, "?from=%zz": 400} {
		a := n.Get("/topicmaps/towns/checkpoint/consistency" + query)
		assert.Equal(t, status, a.StatusCode, "%s: %s", query, a.Bytes)
	}
}

// rootOf computes the root of a tree of RFC 6962 from the hashes of its leaves, level by level.
func rootOf(level [][sha256.Size]byte) [sha256.Size]byte {
	for len(level) > 1 {
		var up [][sha256.Size]byte
		for i := 0; i < len(level); i += 2 {
			if i+1 == len(level) {
				up = append(up, level[i])
				continue
			}
			up = append(up, sha256.Sum256(append(append([]byte{1}, level[i][:]...), level[i+1][:]...)))
		}
		level = up
	}
	return level[0]
}

// Archive documents do not change: they have no checkpoints. Unsigned collections have none at all.
func TestWhatHasNoCheckpoint(t *testing.T) {
	t.Parallel()
	n, _ := signedNode(t, served.DocumentSize(2))
	f := n.Feed("/topicmaps/towns/fragments")
	require.Contains(t, f.Raw, "<own:checkpoint>")
	for _, l := range f.Links {
		if l.Rel == "prev-archive" {
			assert.NotContains(t, string(n.MustGet(strings.TrimPrefix(l.Href, n.BaseURL)).Bytes), "checkpoint")
		}
	}
	a := n.PutSettings("towns", `{"sign": ""}`)
	require.Equal(t, http.StatusOK, a.StatusCode)
	assert.NotContains(t, n.Feed("/topicmaps/towns/fragments").Raw, "checkpoint")
	for _, path := range []string{"/checkpoint", "/checkpoint/consistency?from=1&to=2"} {
		a := n.Get("/topicmaps/towns" + path)
		assert.Equal(t, http.StatusNotFound, a.StatusCode)
		assert.Contains(t, string(a.Bytes), "is not signed")
	}
}

// A key that cannot be used is refused when it is set. Without one that is lost later the feed is not served, until it
// is back.
func TestKeyThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	n, key := signedNode(t)
	for _, path := range []string{"relative", "/nowhere/key", os.Args[0]} {
		a := n.PutSettings("towns", `{"sign": "`+path+`"}`)
		assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, "%s: %s", path, a.Bytes)
	}
	require.NoError(t, os.Remove(key.Path))
	n.MustPut("towns", served.Small("Oslo", "Christiania"))
	a := n.Get("/topicmaps/towns/fragments")
	assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	assert.Contains(t, string(a.Bytes), "cannot be signed now")
	assert.Contains(t, n.Logs.String(), key.Path)
	a = n.Get("/topicmaps/towns/checkpoint")
	assert.Equal(t, http.StatusInternalServerError, a.StatusCode)
	assert.NotContains(t, string(a.Bytes), key.Path)
	another, err := checkpoint.GenerateKey(key.Path, "maps.example.org")
	require.NoError(t, err)
	assert.Contains(t, n.Feed("/topicmaps/towns/fragments").Raw, another.Public)
	require.NoError(t, os.Remove(key.Path))
	third, err := checkpoint.GenerateKey(key.Path, "maps.example.com")
	require.NoError(t, err)
	assert.Contains(t, n.Feed("/topicmaps/towns/fragments").Raw, third.Public, "it is the key of the file that counts")
}

// The path of the key is shown to writers alone.
func TestPathOfTheKeyIsForWriters(t *testing.T) {
	t.Parallel()
	n, key := signedNode(t)
	settings := func(headers ...string) string {
		return string(n.MustGet("/topicmaps/towns/settings", headers...).Bytes)
	}
	assert.Contains(t, settings(), key.Path)
	assert.NotContains(t, settings("X-Forwarded-For", "192.0.2.1"), key.Path)
}
