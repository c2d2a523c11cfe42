package postgres_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

type requested struct{}

// ofRequests reports whether a question is asked for a request.
func ofRequests(ctx context.Context) bool { return ctx.Value(requested{}) != nil }

// markRequests has ofRequests tell the requests of this server from its other work.
func (m *measured) markRequests() {
	handler := m.http.Config.Handler
	m.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requested{}, true)))
	})
}

// How many questions a POST asks does not depend on how many topics it has, as long as they are some hundreds: one before the document is read, one
// for the state, one for the commit, the others for what is there.
func TestQuestionsOfPosts(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	e := &kvtest.Asked{Engine: pgserver.Open(t, s.Store(t)), Of: ofRequests}
	m := measure(t, store.Options{Engine: e}, 3000)
	m.markRequests()
	for topics, most := range map[int]int{1: 7, 100: 8, 400: 10} {
		for round, from := range []int{0, 0, 0, 1000, 2800} { // changed for the first time, and again; with new ones
			before := e.Questions.Load()
			m.post(document(from, topics, 10*topics+round))
			n := e.Questions.Load() - before
			t.Logf("%d topics, round %d: %d questions", topics, round, n)
			assert.LessOrEqual(t, int(n), most, "%d topics, round %d", topics, round)
			assert.Positive(t, n)
		}
	}
}
