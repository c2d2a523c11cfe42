// Command all runs all benchmarks of docs/performance.md, one after the other, each with its flags, and writes a table
// of their figures and goals to standard output. Progress, and the output of a failed benchmark, go to standard error.
//
//	go run ./bench/all > table.md
//	go run ./bench/all -only 'Serving|Apply' -quick
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	only   = flag.String("only", "", "run those benchmarks alone whose row this regular expression matches")
	quick  = flag.Bool("quick", false, "small maps and one round, to see that all benchmarks run; the figures mean little")
	topics = flag.Int("topics", 100_000, "topics of the synthetic map")
)

// limit is the time that one benchmark may take.
const limit = "15m"

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := all(ctx, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "all:", err)
		os.Exit(1)
	}
	if len(failed) > 0 {
		fmt.Fprintln(os.Stderr, "failed:", strings.Join(failed, "; "))
		os.Exit(1)
	}
}

// all runs the chosen benchmarks and returns the rows of those that failed. A failure does not stop the others.
func all(ctx context.Context, w io.Writer) (failed []string, err error) {
	chosen, err := choose(*only)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	root := strings.TrimSpace(string(out))
	built, err := os.MkdirTemp("", "bench-all")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(built)
	fmt.Fprint(w, machine(ctx), "\n", tableHead) // before the builds, which are load too
	t := table{w: w}
	begin := time.Now()
	for i, r := range chosen {
		fmt.Fprintf(os.Stderr, "%3d/%d  %6s  %s\n", i+1, len(chosen), time.Since(begin).Round(time.Second), r.row(r.name))
		output, err := r.execute(ctx, root, built)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		before := t.rows
		if e := t.add(&r, bytes.NewReader(output)); e != nil {
			return nil, e
		}
		if err == nil && t.rows == before && !bytes.Contains(output, []byte("NOT CHECKED")) {
			err = fmt.Errorf("it has no figures")
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s\n%s: %v\n", output, r.row(r.name), err)
			failed = append(failed, r.row(r.name))
		}
	}
	fmt.Fprintf(os.Stderr, "         %6s  done\n", time.Since(begin).Round(time.Second))
	t.end()
	for _, name := range failed {
		fmt.Fprintf(w, "\nFAILED: %s\n", name)
	}
	return failed, nil
}

// choose returns the runs whose rows match the expression.
func choose(expression string) (chosen []run, err error) {
	matching, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if matching.MatchString(r.row(r.name)) && (!*quick || !r.million) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no benchmark matches %q", expression)
	}
	return chosen, nil
}

// execute runs the benchmark, and builds the tests of its package if necessary.
func (r *run) execute(ctx context.Context, root, built string) (output []byte, err error) {
	folder := filepath.Join(root, filepath.FromSlash(r.in))
	program := filepath.Join(built, strings.ReplaceAll(r.in, "/", "-"))
	if _, err := os.Stat(program); err != nil {
		build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, ".")
		build.Dir = folder
		if output, err := build.CombinedOutput(); err != nil {
			return output, err
		}
	}
	cmd := exec.CommandContext(ctx, program, r.arguments()...)
	cmd.Dir = folder // as go test does
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

func (r *run) arguments() []string {
	args := []string{"-test.run", "^$", "-test.bench", "^Benchmark" + r.name + "$", "-test.benchtime", "1x",
		"-test.timeout", limit}
	if r.database {
		args = append(args, "-engine", "postgres")
	}
	if *quick {
		return append(args, "-test.short")
	}
	if r.topics {
		args = append(args, "-topics", strconv.Itoa(*topics))
	}
	if r.million {
		args = append(args, "-million")
	}
	return append(args, r.flags...)
}
