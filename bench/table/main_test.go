package main

import (
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
BenchmarkMap/Tokenize-2    	       1	  18509966 ns/op	       534.1 MB/cpu-s	         3.904 ×speed-of-JDK-SAX	  134448 B/op
NOT CHECKED: no ratios to xmllint: it is not installed
PASS
ok  	example.org/bench	16.329s
`

func TestConvert(t *testing.T) {
	var b strings.Builder
	require.NoError(t, convert(&b, strings.NewReader(output)))
	assert.Equal(t, `| benchmark | figures | ratios |
| --- | --- | --- |
| Map/Reference=JDK-SAX | 136.8 MB/cpu-s |  |
| Map/Tokenize | 534.1 MB/cpu-s, 134448 B/op | 3.904 × speed of JDK-SAX |

NOT CHECKED: no ratios to xmllint: it is not installed
`, b.String())
}

func TestConvertReportsFailures(t *testing.T) {
	for _, line := range []string{"--- FAIL: BenchmarkMap/Load", "FAIL	example.org/bench	1s", "panic: index out of range"} {
		assert.ErrorContains(t, convert(&strings.Builder{}, strings.NewReader(output+line+"\n")), "failed", line)
	}
	assert.ErrorContains(t, convert(&strings.Builder{}, strings.NewReader("PASS\n")), "no benchmark")
}
