package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

const output = `goos: linux
cpu: Some CPU
BenchmarkMap/Reference=JDK-SAX-2  	       1	       136.8 MB/cpu-s
NOT CHECKED: no ratios to xmllint: it is not installed
BenchmarkMondial/Tokenize-2    	       1	  18509966 ns/op	       534.1 MB/cpu-s	         3.904 ×speed-of-JDK-SAX	  134448 B/op
BenchmarkServing/Archive/304-2    	       1	         0.7100 ×requests/cpu-s-of-nginx
NOT CHECKED: no ratios to xmllint: it is not installed
PASS
ok  	example.org/bench	16.329s
`

func TestTable(t *testing.T) {
	var b strings.Builder
	table := table{w: &b}
	require.NoError(t, table.add(&run{}, strings.NewReader(output)))
	require.NoError(t, table.add(&run{million: true}, strings.NewReader("BenchmarkCleanStart-2 1 61 s/clean-start 450 peak-MB")))
	table.end()
	assert.Equal(t, `| Map/Reference=JDK-SAX | 136.8 MB/cpu-s |  |
| Mondial/Tokenize | 534.1 MB/cpu-s, 134448 B/op | 3.904 × speed of JDK SAX (**≥ 4: missed**) |
| Serving/Archive/304 |  | 0.7100 × requests/cpu-s of nginx (≥ 0.7: met) |
| CleanStart, a million topics | 61 s/clean-start (**≤ 60: missed**), 450 peak-MB (≤ 500: met) |  |

NOT CHECKED: no ratios to xmllint: it is not installed

Missed in this run:

- Mondial/Tokenize, 3.904 × speed of JDK SAX
- CleanStart, a million topics, 61 s/clean-start
`, b.String())
}

func TestGoalsOfOneSizeComeFirst(t *testing.T) {
	assert.Equal(t, "≤ 200 peak-MB", goalOf("CleanStart", "peak-MB").String())
	assert.Equal(t, "≤ 500 peak-MB with a million topics", goalOf("CleanStart"+aMillion, "peak-MB").String())
	assert.Nil(t, goalOf("CleanStart", "s/clean-start"))
	assert.Equal(t, "≤ 300 RssAnon-MB in a database", goalOf("ServingMemory"+inDatabase, "RssAnon-MB").String())
	assert.Equal(t, "≤ 500 RssAnon-MB", goalOf("ServingMemory", "RssAnon-MB").String())
	assert.Nil(t, goalOf("CleanStart"+inDatabase, "peak-MB"))
	assert.Nil(t, goalOf("Serving/Archive/plain", "×requests/s-of-nginx"))
}

// The sources have the benchmarks of the runs, and the units of the goals.
func TestBenchmarksAndUnitsExist(t *testing.T) {
	for _, r := range runs {
		assert.Contains(t, sources(t, r.in), "func Benchmark"+r.name+"(b *testing.B)")
	}
	for _, g := range goals {
		benchmark, _, _ := strings.Cut(g.row, "/")
		at := slices.IndexFunc(runs, func(r run) bool { return r.name == benchmark && r.database == g.database })
		require.GreaterOrEqual(t, at, 0, "%s is not run", g.row)
		unit := strings.TrimPrefix(g.unit, "×")
		text := sources(t, runs[at].in)
		beginning, _, _ := strings.Cut(unit, "-of-") // the rest may be a variable
		assert.True(t, strings.Contains(text, unit+`"`) || strings.Contains(text, beginning+`-of-"`) || strings.Contains(text, `"-of-1k-topics"`),
			"%s reports no %s", g.row, g.unit)
		if _, row, ok := strings.Cut(g.row, "/"); ok {
			assert.Contains(t, text, `b.Run("`+row+`"`)
		}
	}
}

// sources are the test files of a package.
func sources(t *testing.T, in string) string {
	files, err := filepath.Glob(filepath.Join("..", "..", in, "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

var firstName = regexp.MustCompile("^`([^`]+)`")

// bench/README.md describes exactly the benchmarks that are run, and those with goals.
func TestDocumentDescribesAllBenchmarks(t *testing.T) {
	document, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	rows, described := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(document)) {
		if strings.HasPrefix(line, "| `") {
			row := firstName.FindStringSubmatch(strings.TrimPrefix(line, "| "))[1]
			rows[row] = true
			benchmark, _, _ := strings.Cut(row, "/")
			described[benchmark] = true
		}
	}
	for _, g := range goals {
		assert.True(t, rows[g.row], "%s is not described", g.row)
	}
	for _, r := range runs {
		assert.True(t, described[r.name], "%s is not described", r.name)
	}
	for _, r := range runs {
		delete(described, r.name)
	}
	assert.Empty(t, described, "these are described, but not run")
}
