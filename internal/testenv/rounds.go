package testenv

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Every test package links this package, so that "go test ./..." takes these
// flags: a test in internal/archtest holds that.
var (
	all = flag.Bool("all", false,
		"run all kinds of tests: also those that need PostgreSQL, a browser or Debian's tools, and those that kill processes")
	long   = flag.Bool("long", false, "run the long forms: more random histories, kills and faults")
	rounds = flag.Int("rounds", 0, "run random tests this many times, whatever the form")
	seed   = flag.Uint64("seed", 1, "what random tests begin from")
	engine = flag.String("engine", "",
		"where the stores of tests are that can be anywhere: in memory, with \"badger\" in folders, with \"postgres\" "+
			"in a database")
)

// OnPostgreSQL reports whether the command line asks for stores in a database.
func OnPostgreSQL() bool { return *engine == "postgres" }

// OnBadger reports whether the command line asks for stores in folders.
func OnBadger() bool { return *engine == "badger" }

// Long reports whether the command line asks for the long forms of the tests.
func Long() bool { return *long }

// All reports whether the command line asks for all kinds of tests, as the long forms have them.
func All() bool { return *all || Long() }

// OnlyWithAll skips an expensive test, with the reason, unless the command line has -all.
func OnlyWithAll(t testing.TB, why string) {
	t.Helper()
	if _, benchmark := t.(*testing.B); !benchmark && !All() {
		t.Skipf("NOT RUN: %s: it runs with -all", why)
	}
}

// InParallel has more tests at a time than there are processors, for tests that mostly wait for programs. It is called
// before the command line is read, whose -parallel counts more.
func InParallel() {
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}

// Condition answers "[all]" in scripts: all kinds of tests are asked for. It reports an error for other conditions.
func Condition(name string) (bool, error) {
	if name != "all" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	return All(), nil
}

// Usual returns a number of rounds for Rounds and Check, where few of them do each kind of thing: few, and the usual
// number where all kinds of tests are asked for.
func Usual(few, usual int) int {
	if All() {
		return usual
	}
	return few
}

// Rounds returns how often a random test repeats itself: short with -all, long with -long, and n with "-rounds n". By
// default it is a third of short. Under the race detector it is a tenth: each round runs the same goroutines at
// once.
func Rounds(short, long int) int {
	n := short
	if Long() {
		n = long
	}
	switch {
	case *rounds > 0:
		return *rounds
	case Race:
		return (n + 9) / 10
	case !All():
		return (n + 2) / 3
	}
	return n
}

// Seed returns the number that random tests begin from. It is always the same
// number unless the command line has "-seed".
func Seed() uint64 { return *seed }

// Rand returns a source of random numbers that depends on Seed and on the test's
// own number.
func Rand(own uint64) *rand.Rand { return rand.New(rand.NewPCG(Seed(), own)) }

// properties is held while rapid runs, because its settings are global.
var properties sync.Mutex

// onCommandLine holds the flags that the command line sets.
var onCommandLine = sync.OnceValue(func() map[string]bool {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
})

// Check runs rapid.Check with Rounds(short, long) checks that begin from Seed,
// unless -rapid.checks and -rapid.seed say otherwise. Of several properties that
// run in parallel, one runs at a time.
func Check(t *testing.T, short, long int, property func(*rapid.T)) {
	t.Helper()
	properties.Lock()
	defer properties.Unlock()
	given := onCommandLine()
	for name, value := range map[string]string{
		"rapid.checks": strconv.Itoa(Rounds(short, long)),
		"rapid.seed":   strconv.FormatUint(Seed(), 10),
	} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, property)
}
