package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
)

// sharing returns two subscribers of the same subscriptions: two nodes over one engine.
func sharing(t *testing.T) (a, b *subscriber) {
	engine := memory.New()
	open := func() *subscriber {
		db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Logger: silent, Engine: engine})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, db.Close()) })
		s := &subscriber{t: t, db: db}
		s.configure(func(c *client.Config) { c.Parallel = 1 })
		return s
	}
	return open(), open()
}

// A round that another node has overtaken changes nothing, because it is based on an older version.
func TestARoundThatIsOvertakenChangesNothing(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"fragments": "/fragments", "records": archived, "lists": lists} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(3, "v1")...))
			a, b := sharing(t)
			_, err := a.Subscribe(context.Background(), o.URL+"/topicmaps/egov"+path, client.SubscribeOptions{Name: "egov"})
			require.NoError(t, err)
			a.sync()
			o.Put(doc(topics(3, "v2")...))
			last := sync.OnceFunc(func() {
				o.BreakWith(nil)
				o.Put(doc(topics(2, "v3")...))
				b.sync()
			})
			o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if isFragment(r) || isRecord(r) {
					last()
				}
				return false
			})
			_, err = a.syncFails()
			require.ErrorIs(t, err, store.ErrOvertaken)
			assert.Contains(t, err.Error(), "try again")
			a.has(o, doc(topics(2, "v3")...))
			a.sync()
			a.has(o, doc(topics(2, "v3")...))
			assert.Zero(t, b.sync().Applied)
		})
	}
}

// Nodes over one engine that do the same rounds end with the server's state.
func TestNodesThatShareAnEngineDoTheSameRounds(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(20, "v0")...))
	a, b := sharing(t)
	_, err := a.Subscribe(context.Background(), o.URL+"/topicmaps/egov/fragments", client.SubscribeOptions{})
	require.NoError(t, err)
	version := ""
	for round := range 12 {
		version = strings.Repeat("v", round+1)
		o.Put(doc(topics(20, version)...))
		var nodes sync.WaitGroup
		for _, s := range []*subscriber{a, b} {
			nodes.Go(func() {
				do := s.Sync
				if round%4 == 3 {
					do = s.Replace
				}
				if _, err := do(context.Background(), "egov"); err != nil && !errors.Is(err, store.ErrOvertaken) && !errors.Is(err, store.ErrNotFound) {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		nodes.Wait()
	}
	a.sync()
	a.has(o, doc(topics(20, version)...))
	assert.Zero(t, b.sync().Applied)
}
