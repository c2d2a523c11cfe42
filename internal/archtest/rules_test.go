package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The rules of docs/architecture.md, "Rules in place of caps". What breaks one is listed in house.txt.
const (
	maxFunctionLines   = 100
	maxColumns         = 120
	minLinesOfOneUse   = 300
	longRule           = "a function has at most 100 lines"
	wideRule           = "a line has at most 120 columns; wrap some. -run Wide -v lists them"
	smallRule          = "a package of less than 300 lines that one package alone imports belongs in that package"
	besideRule         = "a file x.go does not stand beside the package x; put it there, or give it the name of what it does"
	programsAndTooling = "program tests tooling"
)

func TestFunctionsAreShort(t *testing.T) {
	h, fset, long := readHouse(t), token.NewFileSet(), map[string]int{}
	functions := 0
	for _, file := range goFiles(t) {
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			functions++
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
				long[path.Dir(fromRoot(file))+"."+fn.Name.Name] += n
			}
		}
	}
	require.Greater(t, functions, 3000)
	h.holds(t, "long", long, longRule)
}

func TestLinesAreNotWide(t *testing.T) {
	h, wide := readHouse(t), map[string]int{}
	for _, file := range goFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		n := 0
		for line := range strings.Lines(string(content)) {
			n++
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) <= maxColumns {
				continue
			}
			wide["lines"]++
			if testing.Verbose() {
				t.Logf("%s:%d", fromRoot(file), n)
			}
		}
	}
	t.Logf("%d lines are wide", wide["lines"])
	// Many changes make some lines longer or shorter: they are counted in fifties.
	wide["lines"] = (wide["lines"] + 49) / 50 * 50
	h.holds(t, "wide", wide, wideRule)
}

// A name describes its content.
func TestNoNameIsAFiller(t *testing.T) {
	names := 0
	for _, file := range goFiles(t) {
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names++
				assert.NotContains(t, []string{"of", "said", "told", "room"}, id.Name, "%v", positions.Position(id.Pos()))
			}
			return true
		})
	}
	require.Greater(t, names, 100_000)
}

func TestNoPackageIsASplinter(t *testing.T) {
	h, small := readHouse(t), map[string]int{}
	importers, lines := map[string][]string{}, map[string]int{}
	for _, p := range packages(t) {
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, module+"/"); ok {
				importers[own] = append(importers[own], p.ImportPath)
			}
		}
	}
	files := goFiles(t)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		lines[path.Dir(fromRoot(file))] += strings.Count(string(content), "\n")
	}
	for p, n := range lines {
		kind := h.areaOf(p).kind
		exempt := kind == "extension" || strings.Contains(programsAndTooling, kind) || strings.HasPrefix(p, "cmd/")
		if !exempt && n < minLinesOfOneUse && len(importers[p]) == 1 {
			small[p] = 1
			t.Logf("%4d lines of %s, which %s imports", n, p, importers[p][0])
		}
	}
	h.holds(t, "small", small, smallRule)
}

func TestNoFileStandsBesideAPackageOfItsName(t *testing.T) {
	h, beside := readHouse(t), map[string]int{}
	files := goFiles(t)
	for _, file := range files {
		folder := strings.TrimSuffix(file, ".go") + "/"
		if slices.ContainsFunc(files, func(other string) bool { return path.Dir(other)+"/" == folder }) {
			beside[fromRoot(file)] = 1
		}
	}
	h.holds(t, "beside", beside, besideRule)
}
