// Package bench_test measures whole operations: reading a topic map from a file, the memory of the map, and writing it
// in every form. Each figure is the best of several rounds, in processor time, with its ratio to a named reference that
// is measured in the same run: see docs/performance.md.
package bench_test

import (
	"flag"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tmshare/tmshare/internal/testenv"
)

var (
	topics  = flag.Int("topics", 0, "topics of the synthetic map; 0 means 10,000, and 1,000 with -short")
	seconds = flag.Int("seconds", 1, "BenchmarkServing loads each server for at least so many seconds, and takes the best")
	million = flag.Bool("million", false, "BenchmarkPeakMemory, BenchmarkCleanStart, BenchmarkPost, BenchmarkResourceList, BenchmarkServingMemory and BenchmarkVerifyFull take a map of a million topics (1.2 GB)")
)

// mapSize returns the number of topics of the synthetic map.
func mapSize() int {
	switch {
	case *topics > 0:
		return *topics
	case testing.Short():
		return 1000
	}
	return 10_000
}

// rounds returns the least number of measurements. The best counts.
func rounds() int {
	if testing.Short() {
		return testenv.Rounds(1, 1)
	}
	return testenv.Rounds(3, 3)
}

func TestMain(m *testing.M) {
	if file := os.Getenv(childFile); file != "" {
		os.Exit(loadAsChild(file))
	}
	if folder := os.Getenv(childData); folder != "" {
		asChild(servePlace, folder)
	}
	if folder := os.Getenv(childBare); folder != "" {
		asChild(serveFiles, folder)
	}
	if folder := os.Getenv(childCopy); folder != "" {
		asChild(syncPlace, folder)
	}
	if folder := os.Getenv(childCompare); folder != "" {
		asChild(compareFolder, folder)
	}
	if folder := os.Getenv(childDerive); folder != "" {
		asChild(deriveFolder, folder)
	}
	os.Exit(m.Run())
}

// BenchmarkSynthetic runs all flows on the map that bench/synthetic makes.
func BenchmarkSynthetic(b *testing.B) {
	c := synthesize(b, mapSize())
	c.flows(b)
}

// BenchmarkMondial runs them on the largest real map.
func BenchmarkMondial(b *testing.B) {
	c := mondial(b)
	c.flows(b)
}

// flows runs the benchmarks one after the other. Those that need no map in memory are first, because the garbage
// collector runs less often with more live memory; fragments are last, because naming topics may add to the map.
func (c *corpus) flows(b *testing.B) {
	for i := range c.references {
		b.Run("Reference="+c.references[i].name, func(b *testing.B) { c.benchmarkReference(b, &c.references[i]) })
	}
	b.Run("Tokenize", c.benchmarkTokenize)
	b.Run("Load", c.benchmarkLoad)
	b.Run("Heap", c.benchmarkHeap)
	b.Run("CXTM", c.benchmarkCXTM)
	b.Run("Export", c.benchmarkExport)
	b.Run("Fragments", c.benchmarkFragments)
}

const never = time.Duration(math.MaxInt64)

// best returns the least processor time that one of n rounds takes.
func best(n int, round func()) time.Duration {
	shortest := never
	for range n {
		runtime.GC() // no round pays for the garbage of another
		start := testenv.CPUTime()
		round()
		shortest = min(shortest, testenv.CPUTime()-start)
	}
	return shortest
}

// bestOf runs the rounds of a benchmark: the number of -benchtime, or of -rounds if that is greater.
func bestOf(b *testing.B, round func()) time.Duration {
	shortest, done := never, 0
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		b.StartTimer()
		start := testenv.CPUTime()
		round()
		shortest = min(shortest, testenv.CPUTime()-start)
		done++
	}
	return min(shortest, best(rounds()-done, round))
}

// rate reports an amount per second of processor time.
func rate(b *testing.B, amount float64, what string, d time.Duration) {
	b.ReportMetric(amount/d.Seconds(), what+"/cpu-s")
}

// ratio reports a figure in terms of a reference. The table of bench/all knows
// ratios by their first character.
func ratio(b *testing.B, figure, reference float64, what string) {
	b.ReportMetric(figure/reference, "×"+what)
}
