package bench_test

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reference is another reader of XML, and the time that it takes to split the
// file into tokens.
type reference struct {
	name    string
	measure func(*testing.B, *corpus) (time.Duration, error)

	time    time.Duration // 0: not measured
	missing error         // why it cannot be measured here
}

// timeFor measures the reference when it is first needed. If it is missing, it prints a line to the output, because go
// test shows the log of a skipped benchmark only with -v.
func (r *reference) timeFor(b *testing.B, c *corpus) (d time.Duration, ok bool) {
	if r.time == 0 && r.missing == nil {
		r.time, r.missing = r.measure(b, c)
		if r.missing != nil {
			fmt.Printf("NOT CHECKED: no ratios to %s: %v\n", r.name, r.missing)
		}
	}
	return r.time, r.missing == nil
}

func (c *corpus) benchmarkReference(b *testing.B, r *reference) {
	d, ok := r.timeFor(b, c)
	if !ok {
		b.Skip(r.missing)
	}
	for b.Loop() { // it is measured already
	}
	b.ReportMetric(0, "ns/op") // which go test then leaves out
	rate(b, c.size/1e6, "MB", d)
}

// compare reports the speed relative to each reference.
func (c *corpus) compare(b *testing.B, own time.Duration) {
	for i := range c.references {
		r := &c.references[i]
		if d, ok := r.timeFor(b, c); ok {
			ratio(b, d.Seconds(), own.Seconds(), "speed-of-"+r.name)
		}
	}
}

// rawToken is encoding/xml without its checks of names and tags.
func rawToken(b *testing.B, c *corpus) (time.Duration, error) {
	return best(rounds(), func() {
		f := c.open(b)
		defer f.Close()
		c.sameElements(b, rawTokens(b, bufio.NewReaderSize(f, 64<<10)))
	}), nil
}

func rawTokens(b *testing.B, r io.Reader) (elements int64) {
	for d := xml.NewDecoder(r); ; {
		t, err := d.RawToken()
		if err == io.EOF {
			return elements
		}
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := t.(xml.StartElement); ok {
			elements++
		}
	}
}

// xmllint is the streaming reader of libxml2, with the start of its process.
func xmllint(b *testing.B, c *corpus) (time.Duration, error) {
	path, err := exec.LookPath("xmllint")
	if err != nil {
		return 0, errors.New("xmllint is not installed")
	}
	shortest := never
	c.clockOfXmllint = never
	for range rounds() {
		cmd := exec.Command(path, "--stream", "--noout", "--nonet", c.file)
		start := time.Now()
		out, err := cmd.CombinedOutput()
		c.clockOfXmllint = min(c.clockOfXmllint, time.Since(start))
		require.NoError(b, err, "%s", out)
		require.Empty(b, out)
		shortest = min(shortest, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return shortest, nil
}

// saxOfJDK is the SAX parser of the JDK, in a virtual machine that has warmed up. testdata/SAXParse.java describes what
// is timed.
func saxOfJDK(b *testing.B, c *corpus) (time.Duration, error) {
	path, err := exec.LookPath("java")
	if err != nil {
		return 0, errors.New("java is not installed")
	}
	warm := max(5, int(250e6/c.size))
	cmd := exec.Command(path, "testdata/SAXParse.java", c.file, fmt.Sprint(warm))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil { // a JRE, for example, cannot run a source file
		return 0, fmt.Errorf("java cannot run testdata/SAXParse.java: %v: %s", err, strings.TrimSpace(complaint.String()))
	}
	var nanoseconds, elements int64
	_, err = fmt.Sscan(string(out), &nanoseconds, &elements)
	require.NoError(b, err, "%s", out)
	require.Positive(b, nanoseconds)
	c.sameElements(b, elements)
	return time.Duration(nanoseconds), nil
}
