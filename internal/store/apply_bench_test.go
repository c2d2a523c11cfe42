package store_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
)

// BenchmarkApply measures how many fragments per second a client fetches from a
// server on the loopback interface and applies, in durable commits. Client and
// server share the process and its processors. It is compared with a Badger database
// of the same content and options that is made to read the same keys and to write the
// same rows, in as many transactions: "×raw" is how many fragments per second beside
// that, by the clock, where the one waits for the other, and "×cpu-of-raw" is the
// processor time of both ends beside that of the database alone.
func BenchmarkApply(b *testing.B) {
	const topics = 10_000
	ctx := context.Background()
	silent := slog.New(slog.DiscardHandler)
	var file bytes.Buffer
	require.NoError(b, synthetic.Write(&file, topics))
	published, err := store.Open(ctx, store.Options{Dir: b.TempDir(), Logger: silent})
	require.NoError(b, err)
	defer published.Close()
	h := httptest.NewServer(nil)
	defer h.Close()
	s, err := server.New(server.Config{Store: published, BaseURL: h.URL, OnLoopback: true, Logger: silent, Policy: upkeep.Policy{SnapshotEvery: 1 << 30}})
	require.NoError(b, err)
	defer s.Close()
	h.Config.Handler = s
	_, err = s.Import(ctx, store.Collection{Name: "m", SP: synthetic.Base}, bytes.NewReader(file.Bytes()), "the synthetic map")
	require.NoError(b, err)

	folder, copied := b.TempDir(), b.TempDir()
	db, err := store.Open(ctx, store.Options{Dir: folder, Logger: silent})
	require.NoError(b, err)
	c := newClient(b, db)
	_, err = c.Subscribe(ctx, h.URL+"/topicmaps/m", client.SubscribeOptions{})
	require.NoError(b, err)
	_, err = c.Sync(ctx, "m")
	require.NoError(b, err)
	require.NoError(b, db.Close())
	require.NoError(b, os.CopyFS(copied, os.DirFS(folder)))
	db, err = store.Open(ctx, store.Options{Dir: folder, Logger: silent})
	require.NoError(b, err)
	defer db.Close()
	c = newClient(b, db)
	raw := store.OpenRaw(b, copied)

	var applying, replaying, cpu, rawCPU time.Duration
	applied, rows, round := 0, 0, 0
	for b.Loop() {
		round++
		change(b, s, strings.ReplaceAll(file.String(), ">Topic ", fmt.Sprintf(">Round %d, topic ", round)))
		var recording store.RecordingAll
		recording.Record(db)
		begin, used := time.Now(), testenv.CPUTime()
		r, err := c.Sync(ctx, "m")
		applying += time.Since(begin)
		cpu += testenv.CPUTime() - used
		require.NoError(b, err)
		require.GreaterOrEqual(b, r.Applied, topics)
		applied += r.Applied
		rows += recording.Rows()

		begin, used = time.Now(), testenv.CPUTime()
		require.NoError(b, recording.Replay(raw))
		replaying += time.Since(begin)
		rawCPU += testenv.CPUTime() - used
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(applied)/applying.Seconds(), "fragments/s")
	b.ReportMetric(float64(applied)/replaying.Seconds(), "fragments/s-of-raw")
	b.ReportMetric(float64(rows)/float64(applied), "rows/fragment")
	b.ReportMetric(replaying.Seconds()/applying.Seconds(), "×raw")
	b.ReportMetric(cpu.Seconds()/rawCPU.Seconds(), "×cpu-of-raw")
}

func newClient(b *testing.B, db *store.DB) *client.Client {
	c, err := client.New(client.Config{Store: db, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	return c
}

// change publishes a version of the map.
func change(b *testing.B, s *server.Server, document string) {
	r := httptest.NewRequest(http.MethodPut, s.BaseURL+"/topicmaps/m", strings.NewReader(document))
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Equal(b, http.StatusOK, w.Code, "%s", w.Body)
}
