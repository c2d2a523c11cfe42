package web

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Requests with wrong tokens get eight tries a second in total, at any concurrency. The others get a time to retry.
// Requests with a right token, or without one, do not wait for them.
func TestThoseWhoTryTokensAreHeldBack(t *testing.T) {
	known := NewTokens([]string{"the right token 1", "the right token 2"}, nil)
	guesses := sync.OnceValue(func() *Guesses { return NewGuesses(known) }) // in the bubble of time
	answer := func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("Authorization") == "Bearer the right token 1" {
			return nil
		}
		return Refused(w, r, "writing")
	}
	guarded := func(w http.ResponseWriter, r *http.Request) error { // twice, as if a route has a guard of its own
		return guesses().Guard(guesses().Guard(answer))(w, r)
	}
	serve(t, false, guarded, func(t *testing.T, s *site) {
		ask := func(authorization string) int {
			r, err := http.NewRequest(http.MethodGet, s.URL, nil)
			require.NoError(t, err)
			if authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			res, err := s.Client().Do(r)
			require.NoError(t, err)
			res.Body.Close()
			return res.StatusCode
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		counts := map[int]int{}
		start := time.Now()
		const seconds = 10
		for i := range 40 {
			all.Go(func() {
				for n := 0; time.Since(start) < seconds*time.Second; n++ {
					status := ask(fmt.Sprintf("Bearer guess %d of %d", n, i))
					mu.Lock()
					counts[status]++
					mu.Unlock()
				}
			})
		}
		for range 100 {
			before := time.Now()
			assert.Equal(t, http.StatusOK, ask("Bearer the right token 1"))
			assert.Equal(t, http.StatusUnauthorized, ask("Bearer the right token 2"), "it is for something else")
			assert.Equal(t, http.StatusUnauthorized, ask(""))
			assert.Equal(t, http.StatusUnauthorized, ask("Basic dTpw"))
			assert.Zero(t, time.Since(before))
			time.Sleep(seconds * time.Second / 100)
		}
		all.Wait()
		assert.LessOrEqual(t, counts[http.StatusUnauthorized], 8*(seconds+2))
		assert.GreaterOrEqual(t, counts[http.StatusUnauthorized], 8*(seconds-2), "but they are answered")
		assert.Positive(t, counts[http.StatusServiceUnavailable])
		assert.Len(t, counts, 2)
		assert.EqualValues(t, counts[http.StatusUnauthorized]+counts[http.StatusServiceUnavailable], guesses().Tried())
	})
}

// A server without tokens does not delay requests.
func TestAServerWithoutTokensHoldsNobodyBack(t *testing.T) {
	g := NewGuesses(nil)
	serve(t, false, g.Guard(readAll), func(t *testing.T, s *site) {
		start := time.Now()
		r, err := http.NewRequest(http.MethodGet, s.URL, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer of another server")
		res, err := s.Client().Do(r)
		require.NoError(t, err)
		res.Body.Close()
		assert.Equal(t, http.StatusOK, res.StatusCode)
		assert.Zero(t, time.Since(start))
		assert.Zero(t, g.Tried())
	})
}
