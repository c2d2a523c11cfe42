package server_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// askedEngine counts its requests.
type askedEngine struct {
	kv.Engine
	asked atomic.Int64
}

func (e *askedEngine) Version(ctx context.Context) (kv.Version, error) {
	e.asked.Add(1)
	return e.Engine.Version(ctx)
}

func (e *askedEngine) Snapshot(ctx context.Context) (kv.Reader, error) {
	e.asked.Add(1)
	return e.Engine.Snapshot(ctx)
}

// The database may be far away: reading unchanged data needs one request.
func TestWhatHasNotChangedIsAskedForOnce(t *testing.T) {
	t.Parallel()
	e := &askedEngine{Engine: memory.New()}
	n := startOn(t, store.Options{Dir: t.TempDir(), Engine: e})
	n.Publish("m", served.TopicMap(served.Topic("first", "First")))
	for _, path := range []string{"/topicmaps/m/fragments", "/topicmaps/m", "/topicmaps/m/snapshots"} {
		etag := n.MustGet(path).Header.Get("ETag")
		require.NotEmpty(t, etag, path)
		for _, status := range []int{http.StatusOK, http.StatusNotModified} {
			var conditions []string
			if status == http.StatusNotModified {
				conditions = []string{"If-None-Match", etag}
			}
			before := e.asked.Load()
			assert.Equal(t, status, n.Get(path, conditions...).StatusCode, path)
			assert.EqualValues(t, 1, e.asked.Load()-before, "%s: %d", path, status)
		}
	}
	n.Publish("other", served.TopicMap(served.Topic("second", "Second")))
	assert.Equal(t, http.StatusOK, n.Get("/topicmaps/other/fragments").StatusCode, "what is new shows at once")
}
