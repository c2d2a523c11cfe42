// Command table turns the output of go test -bench, which it reads from standard
// input, into the table of docs/performance.md.
//
//	go test ./bench -run xxx -bench . | go run ./bench/table
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := convert(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// processors is what go test puts behind the name of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

// convert writes a row for each benchmark, and below the table what could not be
// measured. A pipe hides the exit code of go test, so a failure there is an error
// here.
func convert(w io.Writer, r io.Reader) error {
	out := bufio.NewWriter(w)
	var missing []string
	rows, failed := 0, false
	fmt.Fprint(out, "| benchmark | figures | ratios |\n| --- | --- | --- |\n")
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "--- FAIL"), strings.HasPrefix(line, "FAIL"), strings.HasPrefix(line, "panic:"):
			failed = true
		case strings.HasPrefix(line, "Benchmark") && len(fields) >= 4:
			row(out, fields)
			rows++
		case strings.HasPrefix(line, "NOT CHECKED") && !slices.Contains(missing, line):
			missing = append(missing, line)
		}
	}
	for _, s := range missing {
		fmt.Fprintf(out, "\n%s\n", s)
	}
	if err := errors.Join(lines.Err(), out.Flush()); err != nil {
		return err
	}
	switch {
	case failed:
		return errors.New("a benchmark has failed")
	case rows == 0:
		return errors.New("no benchmark has run")
	}
	return nil
}

// row writes one benchmark, given the fields of its line: its name, how often it
// has run, then values and units in turn. Wall-clock time is left out.
func row(w io.Writer, fields []string) {
	var figures, ratios []string
	for pair := range slices.Chunk(fields[2:], 2) {
		if len(pair) < 2 || pair[1] == "ns/op" {
			continue
		}
		if of, ok := strings.CutPrefix(pair[1], "×"); ok {
			ratios = append(ratios, pair[0]+" × "+strings.ReplaceAll(of, "-of-", " of "))
		} else {
			figures = append(figures, pair[0]+" "+pair[1])
		}
	}
	name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
	fmt.Fprintf(w, "| %s | %s | %s |\n", name, strings.Join(figures, ", "), strings.Join(ratios, ", "))
}
