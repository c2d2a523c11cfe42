// Command checks runs the tests, and at the end lists the checks that did not run, the reasons, and the remedies. "go
// test" hides them.
//
//	go run ./internal/testkit/checks [FLAG...]    # flags of tests, as -all
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	c := exec.Command("go", append([]string{"test", "-json", "./..."}, os.Args[1:]...)...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err == nil {
		err = report(os.Stdout, out)
	}
	if waited := c.Wait(); err == nil {
		err = waited
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// event is a line of "go test -json": see "go doc test2json".
type event struct{ Action, Package, Test, Output string }

// test is one test of a package, or with no name the package itself.
type test struct{ pkg, name string }

var (
	reason = regexp.MustCompile(`^\s+\w+\.go:\d+: (NOT (?:CHECKED|RUN): .*)`)
	file   = regexp.MustCompile(`shared/[^ ]+`)
)

// report writes a line for each package, the output of failed tests, and at the end the skipped checks.
func report(w io.Writer, events io.Reader) error {
	written, reasons := map[test]*strings.Builder{}, map[string]int{}
	passed, failed := 0, 0
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("go test wrote a line that is no event: %q", lines.Text())
		}
		from := test{e.Package, e.Test}
		switch e.Action {
		case "output", "build-output":
			if e.Test == "" &&
				(e.Action != "output" || strings.HasPrefix(e.Output, "ok ") || strings.HasPrefix(e.Output, "FAIL\t")) {
				fmt.Fprint(w, e.Output)
			}
			if why := reason.FindStringSubmatch(e.Output); why != nil {
				reasons[file.ReplaceAllString(why[1], "shared/…")]++
			}
			if written[from] == nil {
				written[from] = &strings.Builder{}
			}
			written[from].WriteString(e.Output)
		case "pass", "skip", "fail":
			if e.Action == "fail" && written[from] != nil {
				failed++
				fmt.Fprint(w, written[from])
			}
			if e.Action == "pass" && e.Test != "" {
				passed++
			}
			delete(written, from)
		}
	}
	left := 0
	for _, n := range reasons {
		left += n
	}
	fmt.Fprintf(w, "\n%d checks passed, %d failed, %d did not run:\n", passed, failed, left)
	for _, why := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return reasons[b] - reasons[a] }) {
		fmt.Fprintf(w, "%5d  %s\n", reasons[why], why)
	}
	return lines.Err()
}
