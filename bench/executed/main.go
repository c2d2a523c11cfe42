// Command executed prints how many lines, in how many packages, run for one PUT of a changed map and for one sync of a
// follower: what somebody reads who follows a change through the code. Run it in the folder of the module.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/tmshare/tmshare/"

// kits are the folders whose packages no program has.
var kits = []string{"internal/test", "internal/e2e", "internal/follow/followtest", "bench"}

func main() {
	files := flag.Bool("files", false, "list the files as well")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *files); err != nil {
		fmt.Fprintln(os.Stderr, "executed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, files bool) error {
	dir, err := os.MkdirTemp("", "executed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	profile := filepath.Join(dir, "profile")
	test := exec.CommandContext(ctx, "go", "test", "./internal/e2e", "-run", "^TestOnePutAndOneSync$", "-count=1",
		"-engine", "badger", "-coverpkg="+module+"...", "-covermode=atomic", "-coverprofile="+profile)
	if out, err := test.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	f, err := os.Open(profile)
	if err != nil {
		return err
	}
	defer f.Close()
	lines, err := executed(f)
	if err != nil {
		return err
	}
	return print(w, lines, files)
}

// executed returns the lines that a profile says were executed, by the file.
func executed(profile io.Reader) (map[string]map[int]bool, error) {
	lines := map[string]map[int]bool{}
	s := bufio.NewScanner(profile)
	for n := 1; s.Scan(); n++ {
		if strings.HasPrefix(s.Text(), "mode:") {
			continue
		}
		at := strings.LastIndex(s.Text(), ":")
		var from, fromColumn, to, toColumn, statements, count int
		if at < 0 {
			return nil, fmt.Errorf("line %d of the profile names no file: %q", n, s.Text())
		}
		if _, err := fmt.Sscanf(s.Text()[at+1:], "%d.%d,%d.%d %d %d", &from, &fromColumn, &to, &toColumn, &statements, &count); err != nil {
			return nil, fmt.Errorf("line %d of the profile, %q: %w", n, s.Text(), err)
		}
		file := strings.TrimPrefix(s.Text()[:at], module)
		if count == 0 || slices.ContainsFunc(kits, func(kit string) bool { return strings.HasPrefix(file, kit) }) {
			continue
		}
		if lines[file] == nil {
			lines[file] = map[int]bool{}
		}
		for line := from; line <= to; line++ {
			lines[file][line] = true
		}
	}
	return lines, s.Err()
}

// print prints the lines by the package, the most first.
func print(w io.Writer, lines map[string]map[int]bool, files bool) error {
	packages, total := map[string]int{}, 0
	for file, executed := range lines {
		packages[path.Dir(file)] += len(executed)
		total += len(executed)
	}
	most := func(a, b string) int { return packages[b] - packages[a] }
	names := slices.Sorted(maps.Keys(packages))
	slices.SortStableFunc(names, most)
	for _, name := range names {
		fmt.Fprintf(w, "%6d  %s\n", packages[name], name)
		if !files {
			continue
		}
		for _, file := range slices.Sorted(maps.Keys(lines)) {
			if path.Dir(file) == name {
				fmt.Fprintf(w, "        %6d  %s\n", len(lines[file]), path.Base(file))
			}
		}
	}
	_, err := fmt.Fprintf(w, "%6d  lines in %d packages\n", total, len(packages))
	return err
}
