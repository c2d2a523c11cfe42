// Command executed prints the number of lines and packages that run for one PUT of a changed map and for one sync of a
// follower, as a measure of the code to read. Run it in the folder of the module.
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

// kits are the folders of packages for tests only.
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
	before, err := counts(ctx, "TestBeforeOnePutAndOneSync")
	if err != nil {
		return err
	}
	all, err := counts(ctx, "TestOnePutAndOneSync")
	if err != nil {
		return err
	}
	lines := map[string]map[int]bool{}
	for b, n := range all {
		if n <= before[b] || slices.ContainsFunc(kits, func(kit string) bool { return strings.HasPrefix(b.file, kit) }) {
			continue
		}
		if lines[b.file] == nil {
			lines[b.file] = map[int]bool{}
		}
		for line := b.from; line <= b.to; line++ {
			lines[b.file][line] = true
		}
	}
	return print(w, lines, files)
}

// block is a block of statements, by the lines that it begins and ends on.
type block struct {
	file                           string
	from, fromColumn, to, toColumn int
}

// counts returns the number of executions of each block in a test.
func counts(ctx context.Context, test string) (map[block]int, error) {
	dir, err := os.MkdirTemp("", "executed-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	profile := filepath.Join(dir, "profile")
	run := exec.CommandContext(ctx, "go", "test", "./internal/e2e", "-run", "^"+test+"$", "-count=1",
		"-engine", "badger", "-coverpkg="+module+"...", "-covermode=atomic", "-coverprofile="+profile)
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f)
}

// read reads a profile.
func read(profile io.Reader) (map[block]int, error) {
	all := map[block]int{}
	s := bufio.NewScanner(profile)
	for n := 1; s.Scan(); n++ {
		if strings.HasPrefix(s.Text(), "mode:") {
			continue
		}
		file, at, found := strings.Cut(s.Text(), ".go:")
		b := block{file: strings.TrimPrefix(file, module) + ".go"}
		var statements, count int
		_, err := fmt.Sscanf(at, "%d.%d,%d.%d %d %d", &b.from, &b.fromColumn, &b.to, &b.toColumn, &statements, &count)
		if !found || err != nil {
			return nil, fmt.Errorf("line %d of the profile is not that of a block: %q", n, s.Text())
		}
		all[b] += count
	}
	return all, s.Err()
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
