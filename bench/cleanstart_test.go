package bench_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// The environment of a child process that makes a clean start: the data folder, or the address of the database, and the
// subscribed URL.
const (
	childCopy   = "TMSHARE_BENCH_CHILD_COPY"
	childOrigin = "TMSHARE_BENCH_CHILD_ORIGIN"
)

// BenchmarkCleanStart makes a clean start from a server in another process over the loopback interface, in a process of
// its own, and reports its peak of anonymous memory. Its time is compared with that of the two halves of the work, one
// after the other: reading the snapshot into a map, and writing the same rows to Badger, in the order of their keys. It
// is compared by the clock, where the clean start benefits from a second processor, and in processor time. For a copy
// in a database, the reference is a copy in a folder, of the same origin.
func BenchmarkCleanStart(b *testing.B) {
	n := mapSize()
	if *million {
		n = 1_000_000
	}
	c := synthesize(b, n)
	origin := serve(b, importInto(b, c))
	took, reading, writing, inFolder := elapsed{never, never}, elapsed{never, never}, elapsed{never, never}, elapsed{never, never}
	var peak float64
	for b.Loop() {
		folder := filepath.Join(b.TempDir(), "copy")
		place := stores.Place(b, folder)
		d, p := cleanStart(b, origin.url+"/topicmaps/"+collection, place)
		took, peak = took.least(d), max(peak, p)
		b.StopTimer()
		if extension.IsAddress(place) {
			d, _ = cleanStart(b, origin.url+"/topicmaps/"+collection, folder)
			inFolder = inFolder.least(d)
		} else {
			reading = reading.least(readSnapshot(b, origin, c.topics))
			writing = writing.least(writeRows(b, folder))
		}
		require.NoError(b, os.RemoveAll(folder))
		b.StartTimer()
	}
	b.ReportMetric(took.clock.Seconds(), "s/clean-start")
	b.ReportMetric(float64(c.topics)/took.clock.Seconds(), "topics/s")
	rate(b, float64(c.topics), "topics", took.cpu)
	if inFolder.clock < never {
		b.ReportMetric(inFolder.clock.Seconds(), "s/clean-start-in-folder")
		ratio(b, took.clock.Seconds(), inFolder.clock.Seconds(), "clean-start-in-folder")
	} else {
		b.ReportMetric(reading.clock.Seconds(), "s/read")
		b.ReportMetric(writing.clock.Seconds(), "s/write")
		ratio(b, took.clock.Seconds(), (reading.clock + writing.clock).Seconds(), "read+write")
		ratio(b, took.cpu.Seconds(), (reading.cpu + writing.cpu).Seconds(), "cpu-of-read+write")
	}
	if peak > 0 { // /proc is available
		b.ReportMetric(peak/1e6, "peak-MB")
	}
}

// elapsed is a duration by the clock, and in processor time.
type elapsed struct{ clock, cpu time.Duration }

func (s elapsed) least(other elapsed) elapsed {
	return elapsed{min(s.clock, other.clock), min(s.cpu, other.cpu)}
}

// elapsing measures f.
func elapsing(f func()) elapsed {
	begin, cpu := time.Now(), testenv.CPUTime()
	f()
	return elapsed{time.Since(begin), testenv.CPUTime() - cpu}
}

// cleanStart returns the durations of a clean start, and the peak of its memory.
func cleanStart(b *testing.B, url, place string) (took elapsed, peak float64) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childCopy+"="+place, childOrigin+"="+url)
	var out, output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &output
	peak, err := sampled(b, cmd)
	require.NoError(b, err, "%s", output.String())
	_, err = fmt.Sscan(out.String(), &took.clock, &took.cpu)
	require.NoError(b, err)
	return took, peak
}

// syncPlace is the work of the child process. It prints the durations of the round.
func syncPlace(place string) (err error) {
	debug.SetGCPercent(clientcmd.GCPercent) // as tmshare-client does
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, err := openStore(ctx, place, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := client.New(client.Config{Store: db, Logger: logger})
	if err != nil {
		return err
	}
	s, err := c.Subscribe(ctx, os.Getenv(childOrigin), client.SubscribeOptions{})
	if err != nil {
		return err
	}
	stop, err := profile(".copy")
	if err != nil {
		return err
	}
	defer stop()
	var r *client.Round
	took := elapsing(func() { r, err = c.Sync(ctx, s.Name) })
	if err != nil {
		return err
	}
	if !r.CleanStart || r.Entries > 0 {
		return fmt.Errorf("no clean start of all: %+v", r)
	}
	fmt.Println(int64(took.clock), int64(took.cpu))
	return nil
}

// readSnapshot measures reading the snapshot, unpacked, into a map.
func readSnapshot(b *testing.B, origin *node, topics int) elapsed {
	newest := origin.document(origin.url + "/topicmaps/" + collection + "/snapshots").Entries[0]
	_, data := origin.do("GET", newest.link(b, "alternate", feeds.MediaTypeXTM21), nil, 200, "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(b, err)
	file := filepath.Join(b.TempDir(), "snapshot.xtm")
	f, err := os.Create(file)
	require.NoError(b, err)
	defer f.Close()
	_, err = io.Copy(f, z)
	require.NoError(b, err)
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(b, err)
	runtime.GC()
	var tm *tmdm.TopicMap
	took := elapsing(func() { tm, err = xtm.Read(b.Context(), f, xtm.Options{Base: tmdm.Locator(synthetic.Base)}) })
	require.NoError(b, err)
	require.Equal(b, topics, count(tm.Topics()))
	return took
}

// writeRows measures writing the rows of a data folder to another database with the same settings, in batches of
// Badger. Reading them, in pieces, is not included.
func writeRows(b *testing.B, folder string) (took elapsed) {
	from, to := openEngine(b, folder), openEngineWith(b, b.TempDir(), badger.Settings{LoadFrom: math.MaxInt64})
	defer func() { require.NoError(b, errors.Join(from.Close(), to.Close())) }() // the folder is removed after that
	var piece []kv.Row
	rows := 0
	write := func() {
		d := elapsing(func() {
			w, err := to.Bulk(b.Context())
			require.NoError(b, err)
			for _, r := range piece {
				require.NoError(b, w.Put(r.Key, r.Value))
			}
			require.NoError(b, w.Commit())
		})
		took.clock += d.clock
		took.cpu += d.cpu
		rows += len(piece)
		piece = piece[:0]
	}
	reader, err := from.Snapshot(b.Context())
	require.NoError(b, err)
	defer reader.Close()
	for r, err := range reader.Range(nil, nil, false) {
		require.NoError(b, err)
		if piece = append(piece, kv.Row{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}); len(piece) == 500_000 {
			write()
		}
	}
	write()
	b.ReportMetric(float64(rows), "rows")
	return took
}

// openEngine opens the engine of a data folder that is closed, or of a new one.
func openEngine(b *testing.B, dir string) kv.Engine { return openEngineWith(b, dir, badger.Settings{}) }

func openEngineWith(b *testing.B, dir string, s badger.Settings) kv.Engine {
	path := filepath.Join(dir, "badger")
	require.NoError(b, os.MkdirAll(path, 0o700))
	f, err := badger.Lock(path, false)
	require.NoError(b, err)
	e, err := f.Open(badger.Options{Logger: slog.New(slog.DiscardHandler), Settings: s})
	require.NoError(b, err)
	return e
}
