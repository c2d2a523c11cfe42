package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const tableHead = "| benchmark | figures | ratios |\n| --- | --- | --- |\n"

// processors matches the number of processors, which go test appends to the name of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

// table turns the output of benchmarks into rows, and writes each at once.
type table struct {
	w       io.Writer
	rows    int
	missed  []string // goals
	missing []string // lines for skipped measurements
}

// add writes a row for each benchmark in the output of go test -bench. It keeps lines with "NOT CHECKED" for the end.
func (t *table) add(r *run, output io.Reader) error {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "Benchmark") && len(fields) >= 4:
			name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
			if err := t.row(r.row(name), fields[2:]); err != nil {
				return err
			}
		case strings.HasPrefix(line, "NOT CHECKED") && !slices.Contains(t.missing, line):
			t.missing = append(t.missing, line)
		}
	}
	return lines.Err()
}

// row writes one benchmark, given its figures: values and units in turn. Wall-clock time is left out.
func (t *table) row(name string, fields []string) error {
	var figures, ratios []string
	for pair := range slices.Chunk(fields, 2) {
		if len(pair) < 2 || pair[1] == "ns/op" {
			continue
		}
		text := pair[0] + " " + words(pair[1]) + t.judge(name, pair[0], pair[1])
		if strings.HasPrefix(pair[1], "×") {
			ratios = append(ratios, text)
		} else {
			figures = append(figures, text)
		}
	}
	t.rows++
	_, err := fmt.Fprintf(t.w, "| %s | %s | %s |\n", name, strings.Join(figures, ", "), strings.Join(ratios, ", "))
	return err
}

// judge returns, in brackets, the goal of a figure and whether it is met, or "".
func (t *table) judge(row, figure, unit string) string {
	g := goalOf(row, unit)
	f, err := strconv.ParseFloat(figure, 64)
	if g == nil || err != nil {
		return ""
	}
	if g.met(f) {
		return " (" + g.bound() + ": met)"
	}
	t.missed = append(t.missed, fmt.Sprintf("%s, %s %s", row, figure, words(unit)))
	return " (**" + g.bound() + ": missed**)"
}

// end writes the lines below the table: skipped measurements, and missed goals.
func (t *table) end() {
	for _, line := range t.missing {
		fmt.Fprintf(t.w, "\n%s\n", line)
	}
	if len(t.missed) == 0 {
		fmt.Fprintf(t.w, "\nAll goals of this run are met.\n")
		return
	}
	fmt.Fprintf(t.w, "\nMissed in this run:\n\n")
	for _, m := range t.missed {
		fmt.Fprintf(t.w, "- %s\n", m)
	}
}
