package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/xtm"
)

// childFile names, in the environment of a child process, the file that it loads.
const childFile = "TMSHARE_BENCH_CHILD_FILE"

// BenchmarkPeakMemory loads the synthetic map in a process of its own and reports the peak of anonymous memory: for the
// map, the reader, and garbage. The map has as many topics as in other benchmarks, or a million.
func BenchmarkPeakMemory(b *testing.B) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		fmt.Println("NOT CHECKED: no peak memory: there is no /proc to read it from")
		b.SkipNow()
	}
	n := mapSize()
	if *million {
		n = 1_000_000
	}
	c := synthesize(b, n)
	var peak float64
	var d time.Duration
	for b.Loop() {
		peak, d = c.loadInChild(b)
	}
	require.Greater(b, peak, c.size/10, "less memory than the file has names")
	b.ReportMetric(peak/1e6, "peak-MB")
	b.ReportMetric(peak/float64(c.topics), "peak-B/topic")
	ratio(b, peak, c.size, "size-of-file")
	rate(b, c.size/1e6, "MB", d)
	rate(b, float64(c.topics), "topics", d)
}

// loadInChild returns the peak of the child's memory in bytes, and its processor time.
func (c *corpus) loadInChild(b *testing.B) (peak float64, d time.Duration) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+c.file)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	peak, err := sampled(b, cmd)
	require.NoError(b, err, "%s", out.String())
	require.Equal(b, strconv.Itoa(c.topics), strings.TrimSpace(out.String()), "topics that the child has loaded")
	return peak, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// sampled runs a process and returns the peak of its anonymous memory in bytes, and how it ended.
func sampled(b *testing.B, cmd *exec.Cmd) (peak float64, err error) {
	require.NoError(b, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	samples := time.NewTicker(5 * time.Millisecond)
	defer samples.Stop()
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-samples.C:
			peak = max(peak, anonymous(cmd.Process.Pid))
		}
	}
}

// anonymous returns the anonymous resident memory of a process in bytes, 0 when
// it has ended.
func anonymous(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		// "RssAnon:	    1234 kB"
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "RssAnon:" {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb * 1024
		}
	}
	return 0
}

// loadAsChild is the work of the child process. It returns its exit code.
func loadAsChild(file string) int {
	f, err := os.Open(file)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer f.Close()
	tm, err := xtm.Read(context.Background(), f, xtm.Options{Base: synthetic.Base})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(count(tm.Topics()))
	return 0
}
