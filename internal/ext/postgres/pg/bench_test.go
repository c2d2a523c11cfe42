package pg_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// recorded is an engine that keeps what is committed.
type recorded struct {
	kv.Engine
	commits [][]kv.Row
}

func (e *recorded) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	w, err := e.Engine.Begin(ctx, since)
	return &recordedWriter{Writer: w, engine: e}, err
}

type recordedWriter struct {
	kv.Writer
	engine *recorded
	rows   []kv.Row
}

func (w *recordedWriter) Put(key, value []byte) error {
	w.rows = append(w.rows, kv.Row{Key: key, Value: value})
	return w.Writer.Put(key, value)
}

func (w *recordedWriter) Commit() error {
	w.engine.commits = append(w.engine.commits, w.rows)
	return w.Writer.Commit()
}

// measured is a server over a store.
type measured struct {
	b    testing.TB
	db   *store.DB
	http *httptest.Server
}

const prefix = "https://maps.example.org/m/"

func measure(b testing.TB, o store.Options, topics int) *measured {
	m := &measured{b: b, http: httptest.NewServer(nil)}
	b.Cleanup(m.http.Close)
	o.Dir, o.Logger, o.Indexes = b.TempDir(), slog.New(slog.DiscardHandler), ext.Indexes()
	var err error
	m.db, err = store.Open(b.Context(), o)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, m.db.Close()) })
	s := m.serve()
	_, err = s.Import(b.Context(), store.Collection{Name: "m", SP: prefix}, bytes.NewReader(document(0, topics, 0)), "the map")
	require.NoError(b, err)
	return m
}

// serve has another server answer, which remembers nothing yet.
func (m *measured) serve() *server.Server {
	s, err := server.New(server.Config{Parts: ext.Parts(), Store: m.db, BaseURL: m.http.URL, OnLoopback: true, Logger: slog.New(slog.DiscardHandler), Policy: upkeep.Policy{SnapshotEvery: 1 << 30}})
	require.NoError(m.b, err)
	m.b.Cleanup(s.Close)
	m.http.Config.Handler = s
	return s
}

// document has topics from a number on. Their names have a round.
func document(from, n, round int) []byte {
	var b bytes.Buffer
	b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, `<topic id="t%d"><subjectIdentifier href="http://psi.example.org/t/%d"/><instanceOf><topicRef href="#class"/></instanceOf><name><value>Topic %d of round %d</value></name><occurrence><type><topicRef href="#note"/></type><resourceData>A note on topic %d that says a little more than its name.</resourceData></occurrence></topic>`, i, i, i, round, i)
	}
	b.WriteString(`<topic id="class"><subjectIdentifier href="http://psi.example.org/class"/></topic><topic id="note"><subjectIdentifier href="http://psi.example.org/note"/></topic></topicMap>`)
	return b.Bytes()
}

func (m *measured) post(body []byte) {
	res, err := http.Post(m.http.URL+"/topicmaps/m/topics", "application/xtm+xml", bytes.NewReader(body))
	require.NoError(m.b, err)
	answer, err := io.ReadAll(res.Body)
	res.Body.Close()
	require.NoError(m.b, err)
	require.Equal(m.b, http.StatusOK, res.StatusCode, "%s", answer)
}

// BenchmarkPostBatches publishes a hundred changed topics with each POST. It is compared with pgx that writes the same
// rows into a table of keys and values of the same server, in as many transactions: "×raw" is how many topics per
// second beside that.
func BenchmarkPostBatches(b *testing.B) {
	const each = 100
	topics := 20_000
	if testing.Short() {
		topics = 1000
	}
	s := pgserver.Start(b)
	engine := &recorded{Engine: pgserver.Open(b, s.Store(b))}
	m := measure(b, store.Options{Engine: engine}, topics)
	raw, err := pgx.Connect(b.Context(), s.URL())
	require.NoError(b, err)
	defer raw.Close(context.Background())
	_, err = raw.Exec(b.Context(), "CREATE TABLE raw (key bytea PRIMARY KEY, value bytea NOT NULL)")
	require.NoError(b, err)
	var posting, writing, cpu time.Duration
	posts, rows := 0, 0
	for b.Loop() {
		for from := 0; from+each <= topics; from += each {
			posts++
			body := document(from, each, posts)
			engine.commits = nil
			start, used := time.Now(), testenv.CPUTime()
			m.post(body)
			posting += time.Since(start)
			cpu += testenv.CPUTime() - used
			for _, commit := range engine.commits {
				rows += len(commit)
				start = time.Now()
				require.NoError(b, writeRaw(b.Context(), raw, commit))
				writing += time.Since(start)
			}
		}
	}
	published := float64(posts * each)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(published/posting.Seconds(), "topics/s")
	b.ReportMetric(published/cpu.Seconds(), "topics/cpu-s")
	b.ReportMetric(published/writing.Seconds(), "topics/s-of-raw")
	b.ReportMetric(float64(rows)/published, "rows/topic")
	b.ReportMetric(writing.Seconds()/posting.Seconds(), "×raw")
}

func writeRaw(ctx context.Context, conn *pgx.Conn, rows []kv.Row) error {
	last := map[string][]byte{}
	for _, r := range rows {
		last[string(r.Key)] = append([]byte{}, r.Value...)
	}
	var keys, values [][]byte
	for key, value := range last {
		keys, values = append(keys, []byte(key)), append(values, value)
	}
	var batch pgx.Batch
	batch.Queue("BEGIN")
	batch.Queue("INSERT INTO raw SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT (key) DO UPDATE SET value = excluded.value", keys, values)
	batch.Queue("COMMIT")
	return conn.SendBatch(ctx, &batch).Close()
}

// BenchmarkRecentDocument asks for the recent document of a feed while nothing changes, on this engine and on Badger in
// one run. It reports how many questions the database is asked for a request, and within what time 99 % of the answers
// come.
func BenchmarkRecentDocument(b *testing.B) {
	const requests = 1000
	s := pgserver.Start(b)
	for b.Loop() {
		engine := &kvtest.Asked{Engine: pgserver.Open(b, s.Store(b)), Of: ofRequests}
		m := measure(b, store.Options{Engine: engine}, 500)
		m.markRequests()
		m.post(document(0, 1, 1))
		m.recentDocument(requests) // a connection for each, and what is remembered
		before := engine.Questions.Load()
		p99 := m.recentDocument(requests)
		inFolder := measure(b, store.Options{}, 500)
		inFolder.post(document(0, 1, 1))
		inFolder.recentDocument(requests)
		b.ReportMetric(float64(engine.Questions.Load()-before)/requests, "questions")
		b.ReportMetric(p99.Seconds()*1000, "ms/p99")
		b.ReportMetric(p99.Seconds()/inFolder.recentDocument(requests).Seconds(), "×p99-of-Badger")
	}
	b.ReportMetric(0, "ns/op")
}

// recentDocument asks for the recent document so many times, and returns within what time 99 % of the answers come.
func (m *measured) recentDocument(requests int) time.Duration {
	var took []time.Duration
	for range requests {
		start := time.Now()
		res, err := http.Get(m.http.URL + "/topicmaps/m/fragments")
		require.NoError(m.b, err)
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		require.NoError(m.b, err)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}
