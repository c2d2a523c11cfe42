package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/xtm"
)

// BenchmarkApply measures the fragments per second that a client fetches from a server on the loopback interface and
// applies, in durable commits. Client and server share the process and its processors. The reference is a Badger
// database of the same content and options that reads the same keys and writes the same rows, in as many transactions:
// "×raw" is the ratio of fragments per second by the clock, which includes waiting for each other, and "×cpu-of-raw" is
// the ratio of the processor time of both ends to that of the database alone. State digests are kept in every other
// round: "×cpu-without-digests" is the ratio of the processor time of these rounds to that of the others.
func BenchmarkApply(b *testing.B) {
	topics := store.MapSize()
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
	recording := store.Record(db)

	var applying, replaying, cpu, rawCPU time.Duration
	applied, rows, round := 0, 0, 0
	var digests store.DigestCost
	for b.Loop() {
		round++
		stop := digests.Round()
		change(b, s, strings.ReplaceAll(file.String(), ">Topic ", fmt.Sprintf(">Round %d, topic ", round)))
		begin, used := time.Now(), testenv.CPUTime()
		r, err := c.Sync(ctx, "m")
		applying += time.Since(begin)
		cpu += testenv.CPUTime() - used
		stop()
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
	digests.Report(b)
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

// BenchmarkPostBatches publishes changed topics of the synthetic map, a hundred with each POST, on disk. The reference
// is a Badger database of the same content and options that reads the same keys and writes the same rows, in a
// transaction for each POST: "×raw" is the ratio of topics per second, and "×cpu-of-raw" that per second of processor
// time, which other work on the machine affects less. State digests are kept with every other POST, as in
// BenchmarkApply.
func BenchmarkPostBatches(b *testing.B) {
	const size = 100
	topics := store.MapSize() / size * size
	require.NotZero(b, topics, "-topics: at least %d", size)
	folder := b.TempDir()
	documents := publishSynthetic(b, folder, topics, size)
	copied := b.TempDir()
	require.NoError(b, os.CopyFS(copied, os.DirFS(folder)))

	db, err := store.Open(b.Context(), store.Options{Dir: folder, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	defer db.Close()
	s := newServer(b, db)
	defer s.Close()
	h := httptest.NewServer(s)
	defer h.Close()
	recording := store.Record(db)
	raw := store.OpenRaw(b, copied)

	var posting, replaying, postingCPU, replayingCPU time.Duration
	posts, rows := 0, 0
	var digests store.DigestCost
	for b.Loop() {
		for _, document := range documents {
			posts++
			stop := digests.Round()
			body := strings.ReplaceAll(document, ">Topic ", fmt.Sprintf(">Round %d, topic ", posts))
			start, startCPU := time.Now(), testenv.CPUTime()
			p := post(b, h.URL+"/topicmaps/m/topics", body)
			posting += time.Since(start)
			postingCPU += testenv.CPUTime() - startCPU
			stop()
			require.Equal(b, size, p.Updated)
			require.Zero(b, p.Added+p.Deleted)
			rows += recording.Rows()

			start, startCPU = time.Now(), testenv.CPUTime()
			require.NoError(b, recording.Replay(raw))
			replaying += time.Since(start)
			replayingCPU += testenv.CPUTime() - startCPU
		}
	}
	published := float64(posts * size)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(published/posting.Seconds(), "topics/s")
	b.ReportMetric(published/replaying.Seconds(), "topics/s-of-raw")
	b.ReportMetric(float64(rows)/published, "rows/topic")
	b.ReportMetric(replaying.Seconds()/posting.Seconds(), "×raw")
	b.ReportMetric(published/postingCPU.Seconds(), "topics/cpu-s")
	b.ReportMetric(replayingCPU.Seconds()/postingCPU.Seconds(), "×cpu-of-raw")
	digests.Report(b)
}

// mostPosts is the maximum number of documents posted in a round of BenchmarkPostBatches: of a map of a million topics
// not all.
const mostPosts = 1000

// publishSynthetic publishes a map in a new data folder. It returns documents that
// describe so many of its topics each, all topics in all, or as many as mostPosts documents describe.
func publishSynthetic(b *testing.B, folder string, topics, each int) (documents []string) {
	b.Helper()
	db, err := store.Open(b.Context(), store.Options{Dir: folder, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	s := newServer(b, db)
	var file bytes.Buffer
	require.NoError(b, synthetic.Write(&file, topics))
	_, err = s.Import(b.Context(), store.Collection{Name: "m", SP: synthetic.Base}, &file, "the synthetic map")
	require.NoError(b, err)
	require.NoError(b, db.View(b.Context(), "m", func(v *store.View) error {
		var all strings.Builder
		for i := range min(topics, mostPosts*each) {
			if i%each == 0 {
				all.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
			}
			all.WriteString(inner(b, v, fragment.Ref(fmt.Sprintf("%st/%d", synthetic.Base, i))))
			if i%each == each-1 {
				documents = append(documents, all.String()+"</topicMap>")
				all.Reset()
			}
		}
		return nil
	}))
	s.Close()
	require.NoError(b, db.Close())
	return documents
}

// inner returns the content of a topic's element in its fragment. Nothing in it has an id.
func inner(b *testing.B, v *store.View, topic fragment.Ref) string {
	var document bytes.Buffer
	require.NoError(b, fragment.Write(&document, v.Source(), topic, fragment.Form{Version: xtm.V21, SP: v.SP, OmitInstances: true}))
	_, body, found := strings.Cut(document.String(), `version="2.1">`)
	require.True(b, found)
	return strings.TrimSuffix(strings.TrimSpace(body), "</topicMap>")
}

func newServer(b *testing.B, db *store.DB) *server.Server {
	s, err := server.New(server.Config{
		Store: db, BaseURL: "http://127.0.0.1:1", OnLoopback: true, MaxBody: 4 << 30, Logger: slog.New(slog.DiscardHandler),
		Policy: upkeep.Policy{SnapshotEvery: 1 << 30}, // not while it is measured
	})
	require.NoError(b, err)
	return s
}

func post(b *testing.B, url, document string) (p publish.Published) {
	a, err := http.Post(url, "application/x-tm+xml;version=2.1", strings.NewReader(document))
	require.NoError(b, err)
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, a.StatusCode, "%s", answer)
	require.NoError(b, json.Unmarshal(answer, &p))
	return p
}
