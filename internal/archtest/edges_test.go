package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// source is a package of the project, as "go list" states it.
type source struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// checker resolves names with the type checker. It reads packages of the project from their source, and others from the
// export data of the compiler.
type checker struct {
	fset    *token.FileSet
	root    string
	sources map[string]*source
	checked map[string]*types.Package
	exports map[string]string // the file of each package of others
	others  types.Importer
	refs    []reference
}

// reference is one use of a name that is declared in another file.
type reference struct{ from, to, name string }

func newChecker(t *testing.T) *checker {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	c := &checker{fset: token.NewFileSet(), root: root, sources: map[string]*source{}, checked: map[string]*types.Package{}, exports: map[string]string{}}
	foreign := map[string]bool{}
	list(t, func(p *source) {
		c.sources[p.ImportPath] = p
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if !strings.HasPrefix(i, module) && i != "C" && i != "unsafe" {
				foreign[i] = true
			}
		}
	}, "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", module+"/...", module+"/testdata/xtm")
	args := append([]string{"-export", "-deps", "-json=ImportPath,Export"}, slices.Sorted(maps.Keys(foreign))...)
	list(t, func(p *struct{ ImportPath, Export string }) { c.exports[p.ImportPath] = p.Export }, args...)
	c.others = importer.ForCompiler(c.fset, "gc", func(p string) (io.ReadCloser, error) { return os.Open(c.exports[p]) })
	return c
}

func list[T any](t *testing.T, each func(*T), args ...string) {
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one T
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		each(&one)
	}
}

// Import implements [types.Importer].
func (c *checker) Import(p string) (*types.Package, error) {
	s := c.sources[p]
	if s == nil {
		return c.others.Import(p)
	}
	if c.checked[p] == nil {
		pkg, err := c.check(s.ImportPath, s, s.GoFiles, "", nil)
		if err != nil {
			return nil, err
		}
		c.checked[p] = pkg
	}
	return c.checked[p], nil
}

// check checks the files of one package. It keeps the references of files that end in suffix. Tests may see two
// packages of one path, with and without its tests: for them, errors are no reason to stop.
func (c *checker) check(name string, s *source, files []string, suffix string, tested *types.Package) (*types.Package, error) {
	var parsed []*ast.File
	for _, f := range files {
		file, err := parser.ParseFile(c.fset, filepath.Join(s.Dir, f), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: c}
	if tested != nil {
		config.Importer = instead{c, tested}
	}
	if suffix != "" {
		config.Error = func(error) {}
	}
	pkg, err := config.Check(name, c.fset, parsed, info)
	if err != nil && suffix == "" {
		return nil, err
	}
	for id, o := range info.Uses {
		_, isPackage := o.(*types.PkgName)
		if isPackage || o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), module) || !o.Pos().IsValid() {
			continue
		}
		r := reference{c.file(id.Pos()), c.file(o.Pos()), o.Pkg().Name() + "." + o.Name()}
		if r.from != r.to && strings.HasSuffix(r.from, suffix) {
			c.refs = append(c.refs, r)
		}
	}
	for _, file := range parsed {
		for _, i := range file.Imports {
			own, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/")
			if ok && i.Name != nil && i.Name.Name == "_" && strings.HasSuffix(c.file(i.Pos()), suffix) {
				c.refs = append(c.refs, reference{c.file(i.Pos()), own, "import _"})
			}
		}
	}
	return pkg, nil
}

// instead imports the tested package with the additions of its own tests.
type instead struct {
	*checker
	tested *types.Package
}

func (i instead) Import(p string) (*types.Package, error) {
	if p == i.tested.Path() {
		return i.tested, nil
	}
	return i.checker.Import(p)
}

func (c *checker) file(p token.Pos) string {
	rel, err := filepath.Rel(c.root, c.fset.Position(p).Filename)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(rel)
}

// references returns all uses of names of other files, first those in code, then those in tests.
func (c *checker) references(t *testing.T) []reference {
	for _, p := range slices.Sorted(maps.Keys(c.sources)) {
		s := c.sources[p]
		pkg, err := c.Import(p)
		require.NoError(t, err, p)
		if len(s.TestGoFiles) > 0 {
			pkg, err = c.check(p, s, slices.Concat(s.GoFiles, s.TestGoFiles), "_test.go", nil)
			require.NoError(t, err, p)
		}
		if len(s.XTestGoFiles) > 0 {
			_, err = c.check(p+"_test", s, s.XTestGoFiles, "_test.go", pkg)
			require.NoError(t, err, p)
		}
	}
	return c.refs
}

// The core does not know its extensions. How often it still names something of one may only fall. With -v each place is
// printed.
func TestTheCoreNamesNoExtensionMoreOftenThanBefore(t *testing.T) {
	h := readHouse(t)
	inCode, inTests := map[string]int{}, map[string]int{}
	refs := newChecker(t).references(t)
	require.Greater(t, len(refs), 50_000, "the type checker has not seen the project")
	each := map[reference]int{}
	for _, r := range refs {
		from, to := h.areaOf(r.from), h.areaOf(r.to)
		if to.kind != "extension" || from.kind != "core" && from.kind != "library" {
			continue
		}
		each[r]++
		if strings.HasSuffix(r.from, "_test.go") {
			inTests[to.name]++
		} else {
			assert.Equal(t, "core", from.kind, "%s: a library needs no extension, but uses %s of %s", r.from, r.name, r.to)
			inCode[to.name]++
		}
	}
	places := slices.SortedFunc(maps.Keys(each), func(a, b reference) int {
		return strings.Compare(h.areaOf(a.to).name+" "+a.from+" "+a.name, h.areaOf(b.to).name+" "+b.from+" "+b.name)
	})
	for _, r := range places {
		t.Logf("%-12s %s: %s of %s (%d)", h.areaOf(r.to).name, r.from, r.name, r.to, each[r])
	}
	t.Logf("the core names extensions %d times, and %d times in its tests", sum(inCode), sum(inTests))
	h.holds(t, "edges", inCode, "the core names something of this extension more often than before; let the extension use the core")
	h.holds(t, "test-edges", inTests, "tests of the core use this extension more often than before; the test may belong to the extension")
}

func sum(counts map[string]int) (n int) {
	for _, one := range counts {
		n += one
	}
	return n
}
