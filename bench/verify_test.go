package bench_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/stream"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// The environment of a child process that reads a copy: the data folder, and whether it compares ("verify") or only
// reads both sides ("read").
const (
	childCompare = "TMSHARE_BENCH_CHILD_COMPARE"
	childWork    = "TMSHARE_BENCH_CHILD_WORK"
)

// BenchmarkVerifyFull compares all records of a copy with those of a server in another process, as "verify --full"
// does, in a process of its own, and reports its peak of anonymous memory. The reference is a process that only reads
// both sides: the server's present map, fetched into a file, and all records of the copy, decoded.
func BenchmarkVerifyFull(b *testing.B) {
	n := mapSize()
	if *million {
		n = 1_000_000
	}
	c := synthesize(b, n)
	origin := serve(b, importInto(b, c))
	folder := filepath.Join(b.TempDir(), "copy")
	cleanStart(b, origin.url+"/topicmaps/"+collection, folder)
	took, reading := elapsed{never, never}, elapsed{never, never}
	var peak, peakRead float64
	round := func() {
		d, p := compareAsChild(b, origin, folder, "verify", c.topics)
		took, peak = took.least(d), max(peak, p)
		d, p = compareAsChild(b, origin, folder, "read", c.topics)
		reading, peakRead = reading.least(d), max(peakRead, p)
	}
	for b.Loop() {
		round()
	}
	for range rounds() - b.N {
		round()
	}
	b.ReportMetric(took.clock.Seconds(), "s/verify")
	b.ReportMetric(reading.clock.Seconds(), "s/read")
	ratio(b, took.clock.Seconds(), reading.clock.Seconds(), "reading-both-sides")
	ratio(b, took.cpu.Seconds(), reading.cpu.Seconds(), "cpu-of-reading-both-sides")
	if peak > 0 { // /proc is available
		b.ReportMetric(peak/1e6, "peak-MB")
		b.ReportMetric(peakRead/1e6, "read-peak-MB")
	}
}

func compareAsChild(b *testing.B, origin *node, folder, work string, topics int) (took elapsed, peak float64) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childCompare+"="+folder, childWork+"="+work, childOrigin+"="+origin.url+"/topicmaps/"+collection)
	var out, output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &output
	peak, err := sampled(b, cmd)
	require.NoError(b, err, "%s", output.String())
	here, there := 0, 0
	_, err = fmt.Sscan(out.String(), &took.clock, &took.cpu, &here, &there)
	require.NoError(b, err)
	require.Equal(b, topics, there, "topics of the server")
	require.Equal(b, topics, here, "topics of the copy")
	return took, peak
}

// compareFolder is the work of the child process. It prints its durations and the number of topics on both sides.
func compareFolder(folder string) (err error) {
	debug.SetGCPercent(clientcmd.GCPercent) // as tmshare-client does
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, err := store.Open(ctx, store.Options{Dir: folder, Indexes: ext.Indexes(), Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Damage(ctx); err != nil { // which is looked for in the background
		return err
	}
	all, err := db.Subscriptions(ctx)
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Store: db, Logger: logger})
	if err != nil {
		return err
	}
	stop, err := profile("." + os.Getenv(childWork))
	if err != nil {
		return err
	}
	defer stop()
	here, there := 0, 0
	took := elapsing(func() {
		if os.Getenv(childWork) == "read" {
			here, there, err = readBothSides(ctx, db)
			return
		}
		var v *client.Verdict
		if v, err = c.Verify(ctx, all[0].Name, true); err == nil && (!v.Equal || v.Mended+v.Repaired > 0) {
			err = fmt.Errorf("the copy is not equal: %+v", v)
		}
		if err == nil {
			here, there = v.Topics, v.Topics
		}
	})
	if err != nil {
		return err
	}
	fmt.Println(int64(took.clock), int64(took.cpu), here, there)
	return nil
}

// readBothSides reads the records of the server's map and of the copy.
func readBothSides(ctx context.Context, db *store.DB) (here, there int, err error) {
	file := filepath.Join(db.Scratch(), "map.xtm")
	if err := errors.Join(os.MkdirAll(db.Scratch(), 0o700), fetchInto(ctx, file)); err != nil {
		return 0, 0, err
	}
	defer os.Remove(file)
	open := func() (io.ReadCloser, error) { return os.Open(file) }
	for r, err := range stream.Snapshot(open, xtm.Options{Base: synthetic.Base}) {
		if err != nil {
			return 0, 0, err
		}
		if r.Topic != nil {
			there++
		}
	}
	err = db.ReadSources(ctx, func(_ []store.Subscription, all []fragment.Source) error {
		for r, err := range fragment.Records(all[0]) {
			if err != nil {
				return err
			}
			if r.Topic != nil {
				here++
			}
		}
		return nil
	})
	return here, there, err
}

func fetchInto(ctx context.Context, file string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv(childOrigin)+"/snapshots/current", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", feeds.MediaTypeXTM21)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, a.Body)
	return errors.Join(err, f.Close())
}
