package archtest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layer is a row of the table of layers in docs/architecture.md.
type layer struct {
	name  string
	paths []string // of packages, or of folders followed by "…"
}

// layersOf reads the table, from the ground up.
func layersOf(t *testing.T) (all []layer) {
	b, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(b), "| layer | packages | what it is |\n| --- | --- | --- |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		require.Len(t, cells, 5, line)
		l := layer{name: strings.TrimSpace(cells[1])}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			l.paths = append(l.paths, m[1])
		}
		require.NotEmpty(t, l.paths, line)
		all = append(all, l)
	}
	require.LessOrEqual(t, len(all), 35, "a newcomer reads it first")
	return all
}

// layerOf returns the number of the layer of a package: of the row that names it, or the longest folder of it.
func layerOf(all []layer, pkg string) (at int, ok bool) {
	longest := -1
	for i, l := range all {
		for _, p := range l.paths {
			folder, below := strings.CutSuffix(p, "…")
			if n := len(p); n > longest && (p == pkg || below && strings.HasPrefix(pkg, folder)) {
				at, longest, ok = i, n, true
				if !below {
					return i, true
				}
			}
		}
	}
	return at, ok
}

func TestPackagesImportLayersBelow(t *testing.T) {
	layers := layersOf(t)
	all := packages(t)
	require.GreaterOrEqual(t, len(all), 15)
	at := map[string]int{}
	used := map[string]bool{}
	for _, p := range all {
		i, ok := layerOf(layers, p.ImportPath)
		assert.True(t, ok, "%s is in no layer", p.ImportPath)
		at[p.ImportPath] = i
		for _, path := range layers[i].paths {
			folder, below := strings.CutSuffix(path, "…")
			used[path] = used[path] || path == p.ImportPath || below && strings.HasPrefix(p.ImportPath, folder)
		}
	}
	for _, l := range layers {
		for _, path := range l.paths {
			assert.True(t, used[path], "the layer %q names %s, which is no package", l.name, path)
		}
	}
	tests := len(layers) - 1
	for _, p := range all {
		for _, i := range p.Imports {
			own, ok := strings.CutPrefix(i, module+"/")
			if !ok {
				continue
			}
			assert.LessOrEqual(t, at[own], at[p.ImportPath], "%s (%s) must not import %s (%s)", p.ImportPath, layers[at[p.ImportPath]].name, own, layers[at[own]].name)
			if from, to := extensionOf(p.ImportPath), extensionOf(own); from != "" && to != "" && from != to {
				assert.Contains(t, betweenExtensions, from+" → "+to, "an extension imports another")
			}
			if at[p.ImportPath] < tests {
				assert.Less(t, at[own], tests, "%s is for tests, and %s is not", own, p.ImportPath)
			}
		}
	}
}

// extensionOf returns the extension of a package, or "".
func extensionOf(pkg string) string {
	below, ok := strings.CutPrefix(pkg, "internal/ext/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return name
}

// The longest path decides, and of two rows that name a folder the one with the longer path.
func TestLayerOf(t *testing.T) {
	all := []layer{{"ground", []string{"a", "a/x/…"}}, {"rest", []string{"a/…"}}}
	for pkg, want := range map[string]int{"a": 0, "a/x/y": 0, "a/x": 1, "a/b": 1} {
		i, ok := layerOf(all, pkg)
		assert.True(t, ok, pkg)
		assert.Equal(t, want, i, pkg)
	}
	_, ok := layerOf(all, "b")
	assert.False(t, ok)
}

// betweenExtensions are the imports from one extension to another that decision 0041 allows.
var betweenExtensions = []string{"editing → pages", "editing → search", "pages → search", "pages → since", "folder → atompmh", "folder → resourcesync", "resourcesync → pages",
	"sparql → rdf", "changes → rdf", "ldes → rdf"}
