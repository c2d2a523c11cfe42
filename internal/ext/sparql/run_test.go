package sparql

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/consumed"
	"github.com/tmshare/tmshare/internal/testkit/triplestore"
)

// The waits between tries begin anew after a target was in step.
func TestWaitsBeginAnewAfterATargetWasInStep(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	change := consumed.Edits(t, 1)
	src.Publish(t, change)
	k := newTarget(t, db, s)
	s.Keep(func() { s.Fault = func(bool) triplestore.Fault { return triplestore.Away } })
	r := &runner{db: db, locks: k.locks, log: k.log, every: time.Millisecond, retry: time.Millisecond}
	_, was, err := r.inStep(t.Context(), k, store.Version{})
	require.Error(t, err)
	require.False(t, was)
	s.Keep(func() { s.Fault = nil })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, was, err = r.inStep(t.Context(), k, store.Version{})
	}()
	testenv.Eventually(t, func() bool {
		all, err := targets(t.Context(), db)
		return err == nil && !all[0].InStep.IsZero()
	})
	s.Keep(func() { s.Fault = func(bool) triplestore.Fault { return triplestore.Away } })
	src.Publish(t, change)
	<-ended
	require.Error(t, err)
	require.True(t, was)
}
