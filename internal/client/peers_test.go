package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/store"
)

// newPeer returns a client on the store of a server: a node that publishes a collection of its own and follows others.
func newPeer(t *testing.T, o *origin) *subscriber {
	s := &subscriber{t: t, dir: o.Dir, db: o.DB}
	s.configure()
	return s
}

// Two nodes that publish their own statements and follow each other end without new entries, and each keeps the
// statements of both apart, even about the same subjects.
func TestPeersFallSilent(t *testing.T) {
	t.Parallel()
	names := [2]string{"north", "south"}
	var origins [2]*origin
	var peers [2]*subscriber
	for i := range origins {
		origins[i] = newOrigin(t)
		origins[i].Create(names[i], doc(topic("oslo", "Oslo, says "+names[i])))
		peers[i] = newPeer(t, origins[i])
	}
	for i, p := range peers {
		_, err := p.Subscribe(context.Background(), origins[1-i].FeedURL(names[1-i]), client.SubscribeOptions{})
		require.NoError(t, err)
	}
	head := func(i int) (head uint64) {
		require.NoError(t, origins[i].DB.View(t.Context(), names[i], func(v *store.View) error { head = v.Head; return nil }))
		return head
	}
	round := func() (entries int) {
		for i, p := range peers {
			r, err := p.Sync(context.Background(), names[1-i])
			require.NoError(t, err)
			entries += r.Entries
		}
		return entries
	}
	round()
	var states [2]string
	for version := range 4 {
		states = [2]string{
			doc(alias("oslo", "christiania", fmt.Sprint("Oslo ", version)), vocabulary, topic("bergen", "Bergen"), link("near", "oslo", "bergen")),
			doc(topic("oslo", "Oslo"), topic("christiania", fmt.Sprint("Christiania ", version))),
		}
		if version == 3 {
			states[0] = doc(topic("oslo", "Oslo")) // many topics are deleted, and no node restores them
		}
		before := [2]uint64{}
		for i, o := range origins {
			o.PutAs(names[i], states[i])
			before[i] = head(i)
		}
		require.NotZero(t, round())
		for range 3 {
			require.Zero(t, round(), "an echo")
		}
		for i := range origins {
			assert.Equal(t, before[i], head(i), "%s publishes what it has heard", names[i])
		}
	}
	for i, p := range peers {
		p.hasAs(names[1-i], origins[1-i].SP(names[1-i]), states[1-i])
		require.NoError(t, origins[i].DB.View(p.t.Context(), names[i], func(v *store.View) error {
			m, err := fragment.NameTopics(t.Context(), published(t, states[i], v.SP), v.SP, nil)
			require.NoError(t, err)
			followtest.SameRecords(t, followtest.Contents(t, m), followtest.Contents(t, v.Source()), "%s's own", names[i])
			return nil
		}))
		w := httptest.NewRecorder()
		origins[i].Server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, origins[i].URL+"/topicmaps/"+names[1-i], nil))
		assert.Equal(t, http.StatusNotFound, w.Code, "what a node follows it does not publish")
	}
}
