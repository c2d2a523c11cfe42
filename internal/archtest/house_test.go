package archtest

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var lower = flag.Bool("lower", false, "write into house.txt what has become less; nothing is raised")

const houseFile = "house.txt"

// house is the content of house.txt: the areas of files, and the numbers that may only decrease.
type house struct {
	lines   []string // of the file
	areas   map[string]area
	budgets []budget
	ratchet map[string]int // "edges rdf 12" is 12 under "edges rdf"
}

type area struct{ kind, name string }

// budget is the maximum number of lines of an area, and the number of the decision that allows them.
type budget struct {
	area
	lines    int
	decision string
}

// ratchets are the kinds of lines of house.txt that end in a number that may only fall.
var ratchets = []string{"edges", "test-edges", "long", "wide", "small", "beside"}

func readHouse(t *testing.T) *house {
	content, err := os.ReadFile(houseFile)
	require.NoError(t, err)
	return parseHouse(t, string(content))
}

func parseHouse(t *testing.T, content string) *house {
	h := &house{areas: map[string]area{}, ratchet: map[string]int{}}
	for s := bufio.NewScanner(strings.NewReader(content)); s.Scan(); {
		h.lines = append(h.lines, s.Text())
		f := strings.Fields(s.Text())
		at := fmt.Sprintf("%s:%d: %s", houseFile, len(h.lines), s.Text())
		switch {
		case len(f) == 0 || strings.HasPrefix(f[0], "#"):
		case f[0] == "area" && len(f) > 3:
			for _, p := range f[3:] {
				require.NotContains(t, h.areas, p, "%s: twice", at)
				h.areas[p] = area{f[1], f[2]}
			}
		case f[0] == "budget" && len(f) == 5:
			n, err := strconv.Atoi(f[3])
			require.NoError(t, err, at)
			h.budgets = append(h.budgets, budget{area{f[1], f[2]}, n, f[4]})
		case slices.Contains(ratchets, f[0]) && len(f) > 2:
			key, n := splitRatchet(t, s.Text())
			require.NotContains(t, h.ratchet, key, "%s: twice", at)
			h.ratchet[key] = n
		default:
			require.Fail(t, "no such line", at)
		}
	}
	return h
}

func splitRatchet(t *testing.T, line string) (key string, n int) {
	f := strings.Fields(line)
	n, err := strconv.Atoi(f[len(f)-1])
	require.NoError(t, err, line)
	return strings.Join(f[:len(f)-1], " "), n
}

// areaOf returns the area of a file, by its path from the root of the project.
func (h *house) areaOf(file string) area {
	for p := file; p != "."; p = path.Dir(p) {
		if a, ok := h.areas[p]; ok {
			return a
		}
		if path.Dir(p) == "internal/ext" {
			return area{"extension", path.Base(p)}
		}
	}
	return area{}
}

// holds fails for numbers above those of house.txt, and for lower ones: -lower writes those.
func (h *house) holds(t *testing.T, kind string, counted map[string]int, rule string) {
	more, less := h.compare(kind, counted)
	for _, key := range more {
		assert.Fail(t, rule, "%s is %d, and was %d", key, counted[strings.TrimPrefix(key, kind+" ")], h.ratchet[key])
	}
	if *lower {
		h.lower(t, kind, counted, less)
		h.write(t)
		return
	}
	if len(less) > 0 {
		assert.Fail(t, "there is less now, which is good", "%v: run go test ./internal/archtest -lower", less)
	}
}

// compare returns the keys of a kind with numbers above those of house.txt, and those with lower ones.
func (h *house) compare(kind string, counted map[string]int) (more, less []string) {
	for key, n := range counted {
		if n > h.ratchet[kind+" "+key] {
			more = append(more, kind+" "+key)
		}
	}
	for key, n := range h.ratchet {
		if short, ok := strings.CutPrefix(key, kind+" "); ok && counted[short] < n {
			less = append(less, key)
		}
	}
	slices.Sort(more)
	slices.Sort(less)
	return more, less
}

// lower writes the counted numbers into the lines of some keys. It removes lines with zero.
func (h *house) lower(t *testing.T, kind string, counted map[string]int, keys []string) {
	for _, key := range keys {
		i := slices.IndexFunc(h.lines, func(line string) bool { return isRatchet(t, line, key) })
		if n := counted[strings.TrimPrefix(key, kind+" ")]; n > 0 {
			h.lines[i] = fmt.Sprintf("%s %d", key, n)
		} else {
			h.lines = slices.Delete(h.lines, i, i+1)
		}
	}
}

func isRatchet(t *testing.T, line, key string) bool {
	if !strings.HasPrefix(line, key+" ") {
		return false
	}
	k, _ := splitRatchet(t, line)
	return k == key
}

func (h *house) write(t *testing.T) {
	require.NoError(t, os.WriteFile(houseFile, []byte(strings.Join(h.lines, "\n")+"\n"), 0o644))
}

// fromRoot returns the path of a file from the root of the project.
func fromRoot(file string) string {
	return strings.TrimPrefix(filepath.ToSlash(file), "../../")
}

func TestEachFileBelongsToAnArea(t *testing.T) {
	h := readHouse(t)
	kinds := []string{"core", "library", "extension", "program", "tests", "tooling"}
	for _, file := range goFiles(t) {
		assert.Contains(t, kinds, h.areaOf(fromRoot(file)).kind, "%s: %s has no area for it", file, houseFile)
	}
	for i, line := range h.lines {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "area" {
			continue
		}
		there := slices.DeleteFunc(slices.Clone(f[3:]), func(p string) bool {
			_, err := os.Stat(filepath.Join("../..", p))
			return err != nil
		})
		if *lower {
			h.lines[i] = strings.Join(append(f[:3:3], there...), " ")
			continue
		}
		assert.Equal(t, f[3:], there, "%s:%d names files that are gone. Run: go test ./internal/archtest -lower", houseFile, i+1)
	}
	if *lower {
		h.lines = slices.DeleteFunc(h.lines, func(line string) bool {
			return strings.HasPrefix(line, "area ") && len(strings.Fields(line)) == 3
		})
		h.write(t)
	}
}

// New features must not add lines in total: others are removed, or a decision allows them.
func TestAreasKeepToTheirBudget(t *testing.T) {
	h := readHouse(t)
	have := map[area]int{}
	for _, file := range goFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		have[h.areaOf(fromRoot(file))] += strings.Count(string(content), "\n")
	}
	for _, b := range h.budgets {
		t.Logf("%-36s %6d of %6d lines", b.kind+" "+b.name, have[b.area], b.lines)
		assert.LessOrEqual(t, have[b.area], b.lines, "%s %s has too many lines. "+
			"Remove some in it. Or write a decision that allows more, and name it in %s", b.kind, b.name, houseFile)
		assert.LessOrEqual(t, b.lines, allowed(t, b), "decision %s does not allow that many lines for %s %s", b.decision, b.kind, b.name)
		delete(have, b.area)
	}
	for a := range have {
		assert.Contains(t, []string{"program", "tests", "tooling"}, a.kind, "%s %s has no budget in %s", a.kind, a.name, houseFile)
	}
}

// allowed returns the number of lines that a decision allows: it has a row "| core node | 47,000 |".
func allowed(t *testing.T, b budget) int {
	files, err := filepath.Glob("../../docs/decisions/" + b.decision + "-*.md")
	require.NoError(t, err)
	require.Len(t, files, 1, "the decision %s", b.decision)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, "| "+b.kind+" "+b.name+" |"); ok {
			n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(strings.Trim(strings.TrimSpace(rest), "|")), ",", ""))
			require.NoError(t, err, line)
			return n
		}
	}
	return 0
}

func TestARatchetTellsMoreAndLessAndIsLoweredAlone(t *testing.T) {
	h := parseHouse(t, "area core node internal\narea extension a internal/a internal/x/a.go\nedges a 3\nedges ab 2\nedges gone 1\nlong x.F 120")
	counted := map[string]int{"a": 4, "ab": 1, "new": 1}
	more, less := h.compare("edges", counted)
	assert.Equal(t, []string{"edges a", "edges new"}, more)
	assert.Equal(t, []string{"edges ab", "edges gone"}, less)
	h.lower(t, "edges", counted, less)
	assert.Equal(t, []string{"edges a 3", "edges ab 1", "long x.F 120"}, h.lines[2:])

	assert.Equal(t, area{"core", "node"}, h.areaOf("internal/x/b.go"))
	assert.Equal(t, area{"extension", "a"}, h.areaOf("internal/x/a.go"))
	assert.Equal(t, area{"extension", "feeds"}, h.areaOf("internal/ext/feeds/deep/b.go"))
	assert.Zero(t, h.areaOf("elsewhere/b.go"))
}
