package bench_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// changesToCatchUp is the number of changed topics in a round of BenchmarkDeriveCatchUp.
const changesToCatchUp = 1000

// BenchmarkDeriveCatchUp measures how fast a derived collection catches up on 1,000 changes of a source that its node
// follows. The reference is a plain subscription of another node, which fetches and applies the same changes over the
// loopback interface. The deriving node follows three servers, which speak of the same subjects. "whole" is its round
// and the derivation together.
func BenchmarkDeriveCatchUp(b *testing.B) {
	size := max(mapSize(), 2*changesToCatchUp)
	var doc bytes.Buffer
	require.NoError(b, synthetic.WriteReified(&doc, size, reifiedOf))
	deriving, plain := newHop(b), newHop(b)
	var changed *hop
	var from []string
	for i := range inputs {
		origin := newHop(b)
		_, err := origin.server.Import(b.Context(), store.Collection{Name: inputName(i), SP: fmt.Sprintf("http://%d.example.org/", i)}, bytes.NewReader(doc.Bytes()), "the synthetic map")
		require.NoError(b, err)
		for _, h := range []*hop{deriving, plain} {
			if h == plain && i > 0 {
				continue
			}
			_, err = h.Subscribe(b.Context(), origin.server.BaseURL+"/topicmaps/"+inputName(i), client.SubscribeOptions{})
			require.NoError(b, err)
			_, err = h.Sync(b.Context(), inputName(i))
			require.NoError(b, err)
		}
		if from = append(from, inputName(i)); i == 0 {
			changed = origin
		}
	}
	_, err := deriving.db.CreateCollection(b.Context(), store.Collection{Name: collection, SP: "http://derived.example.org/", DerivedFrom: from}, &merge.Memory{}, nil)
	require.NoError(b, err)
	_, err = derive.CatchUp(b.Context(), deriving.db, collection)
	require.NoError(b, err)
	following, followed, derived := never, never, never
	round := func() {
		for i := range changesToCatchUp {
			require.NoError(b, edit(b.Context(), changed.db, inputName(0), changeName, i))
		}
		sync := func(h *hop) time.Duration {
			begin := time.Now()
			r, err := h.Sync(b.Context(), inputName(0))
			require.NoError(b, err)
			require.Equal(b, changesToCatchUp, r.Entries)
			return time.Since(begin)
		}
		following = min(following, sync(plain))
		followed = min(followed, sync(deriving))
		begin := time.Now()
		_, err := derive.CatchUp(b.Context(), deriving.db, collection)
		require.NoError(b, err)
		derived = min(derived, time.Since(begin))
	}
	for b.Loop() {
		for range rounds() {
			round()
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(changesToCatchUp/derived.Seconds(), "changes/s-derived")
	b.ReportMetric(changesToCatchUp/following.Seconds(), "changes/s-followed")
	ratio(b, following.Seconds(), derived.Seconds(), "speed-of-subscription")
	ratio(b, following.Seconds(), (followed + derived).Seconds(), "speed-of-subscription-whole")
}
