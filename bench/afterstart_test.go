package bench_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
)

// BenchmarkPagesAfterAStart measures the first page of the hierarchy and of the types of a vocabulary of 100,000 concepts
// (20,000 with -short) after a start of the server, before its background has run. The log has both kinds of time.
func BenchmarkPagesAfterAStart(b *testing.B) {
	n := 100_000
	if testing.Short() {
		n = 20_000
	}
	silent := slog.New(slog.DiscardHandler)
	place := newPlace(b)
	h := httptest.NewServer(nil)
	b.Cleanup(h.Close)
	start := func() (*store.DB, *server.Server) {
		db, err := openStore(b.Context(), place, silent)
		require.NoError(b, err)
		s, err := server.New(server.Config{Parts: ext.Parts(), Formats: ext.Formats(), Store: db, BaseURL: h.URL, OnLoopback: true, Logger: silent,
			Policy: upkeep.Policy{SnapshotEvery: 1 << 30}})
		require.NoError(b, err)
		h.Config.Handler = s
		return db, s
	}
	db, s := start()
	require.NoError(b, s.Start())
	sendConcepts(b, h, http.MethodPut, "", nil)
	sendConcepts(b, h, http.MethodPut, "", concepts(n, 0))
	rows := func() (n int) {
		require.NoError(b, db.View(b.Context(), collection, func(v *store.View) error {
			for _, err := range v.Tx().Scan(v.Extension("pages"), nil) {
				n++
				require.NoError(b, err)
			}
			return nil
		}))
		return n
	}
	for begun := time.Now(); rows() == 0 && time.Since(begun) < 20*time.Second; {
		time.Sleep(50 * time.Millisecond)
	}
	b.Logf("%d rows", rows())
	var longest time.Duration
	for b.Loop() {
		for _, i := range []int{2, 1} {
			s.Close()
			require.NoError(b, db.Close())
			db, s = start()
			kind := pageKinds(b, h, n)[i]
			cpu, begun := testenv.CPUTime(), time.Now()
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, kind.urls[0], nil))
			took := time.Since(begun)
			require.Equal(b, http.StatusOK, answer.Code)
			longest = max(longest, took)
			b.Logf("%s: %v, processor %v", kind.name, took, testenv.CPUTime()-cpu)
		}
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms/page")
	s.Close()
	require.NoError(b, db.Close())
}
