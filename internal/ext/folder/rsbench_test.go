package folder_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
)

// BenchmarkBaselineByDump makes a mirror of 100,000 resources of some 1,000 bytes (in short form
// 5,000) by the packages of a Resource Dump, and of as many by single requests, eight at a time,
// where each answer takes 10 ms to begin. The ratio is that of the times. The folders are in
// memory where the system has such a place: making files takes as long in both ways, and on
// some disks longer than fetching them. HARVEST_BENCH_DIR names another place.
//
//	go test ./internal/ext/folder -run xxx -bench BaselineByDump -benchtime 1x -short
func BenchmarkBaselineByDump(b *testing.B) {
	useUsualMemory(b)
	resources := 100_000
	if testing.Short() {
		resources = 5000
	}
	s := newRSSource(b, 1, rsStyle{LastMod: true, Hashes: true, Lengths: true, Changes: "open", Dump: "copies", ListIndex: true})
	for i := range resources {
		s.put(fmt.Sprintf("%s/r/%d/%d", rsHost, i/1000, i), fmt.Sprintf("%01000d", i*i))
	}
	s.forget() // else the changes fill more than one document
	s.publish()
	var requests atomic.Int64
	socket := anyhost.Serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		time.Sleep(10 * time.Millisecond)
		s.ServeHTTP(w, r)
	}))
	place := os.Getenv("HARVEST_BENCH_DIR")
	if info, err := os.Stat("/dev/shm"); place == "" && err == nil && info.IsDir() {
		place = "/dev/shm"
	}
	round := func(temp bool) (time.Duration, int64) {
		dir, err := os.MkdirTemp(place, "mirror")
		require.NoError(b, err)
		defer os.RemoveAll(dir)
		f, err := Open(dir, Options{Fetcher: socket.Fetcher(), Mirror: true})
		require.NoError(b, err)
		defer f.Close()
		source := &destination.Source{Fetcher: f.Fetcher}
		defer source.Close()
		if temp {
			source.Temp = dir
		}
		begin, before := time.Now(), requests.Load()
		r, err := f.Harvest(context.Background(), source, s.url())
		took := time.Since(begin)
		require.NoError(b, err)
		require.Equal(b, resources, r.New)
		return took, requests.Load() - before
	}
	var packed, single time.Duration
	for b.Loop() {
		took, few := round(true)
		packed += took
		took, many := round(false)
		single += took
		require.Less(b, 100*few, many, "requests")
	}
	ratio := float64(single) / float64(packed)
	b.ReportMetric(float64(b.N*resources)/packed.Seconds(), "resources/s")
	b.ReportMetric(ratio, "×speed-of-single-requests")
	b.Logf("packed %s, single %s", packed, single)
}
