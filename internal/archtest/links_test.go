package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// names are the targets of links in comments of other packages: functions, types, variables, constants, and methods and
// fields as Type.Name.
type names map[string]bool

var (
	docLink = regexp.MustCompile(`(?:^|[\s(])\[\*?((?:[a-z]\w*\.)?[A-Z]\w*(?:\.\w+)?)\](?:[\s).,:;]|$)`)
	docFile = regexp.MustCompile(`\bdocs/[\w/.-]+\.(?:md|svg)\b`)
)

// Links in comments lead to names, and to documents, that are there.
func TestLinksInCommentsLeadSomewhere(t *testing.T) {
	files := map[string]*ast.File{}
	byPackage := map[string]names{}
	fset := token.NewFileSet()
	for _, p := range goFiles(t) {
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		require.NoError(t, err)
		files[p] = f
		dir := filepath.ToSlash(filepath.Dir(p))
		if byPackage[dir] == nil {
			byPackage[dir] = names{}
		}
		byPackage[dir].add(f)
	}
	links := 0
	for p, f := range files {
		here := filepath.ToSlash(filepath.Dir(p))
		known := map[string]string{path.Base(here): here}
		for _, i := range f.Imports {
			if own, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/"); ok {
				known[path.Base(own)] = "../../" + own
			} else {
				known[path.Base(strings.Trim(i.Path.Value, `"`))] = ""
			}
		}
		for _, group := range f.Comments {
			for _, file := range docFile.FindAllString(group.Text(), -1) {
				assert.FileExists(t, filepath.Join("../..", file), fset.Position(group.Pos()).String())
			}
			for _, link := range docLink.FindAllStringSubmatch(group.Text(), -1) {
				links++
				pkg, name := here, link[1]
				if before, after, ok := strings.Cut(name, "."); ok && !ast.IsExported(before) {
					name = after
					if pkg, ok = known[before]; !ok {
						pkg = sibling(byPackage, before)
					}
				}
				if pkg != "" { // of other modules nothing is known
					assert.True(t, byPackage[pkg].has(name), "%s: nothing is called %s", fset.Position(group.Pos()), link[1])
				}
			}
		}
	}
	assert.Greater(t, links, 200)
}

// sibling returns the only package of a name, for links to packages that the file does not import.
func sibling(all map[string]names, name string) (found string) {
	for dir := range all {
		if path.Base(dir) == name {
			found = dir
		}
	}
	return found
}

// has reports whether a name is there. What a type embeds is not looked into.
func (n names) has(name string) bool {
	typ, _, nested := strings.Cut(name, ".")
	return n[name] || nested && n[typ+" embeds"]
}

func (n names) add(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			n[name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, v := range s.Names {
						n[v.Name] = true
					}
				case *ast.TypeSpec:
					n[s.Name.Name] = true
					n.addMembers(s)
				}
			}
		}
	}
}

func (n names) addMembers(s *ast.TypeSpec) {
	var fields *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			n[s.Name.Name+"."+name.Name] = true
		}
		if len(field.Names) == 0 {
			n[s.Name.Name+" embeds"] = true
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// goFiles returns all Go files of the project but those of tests.
func goFiles(t *testing.T) (all []string) {
	err := filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == ".git" {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			all = append(all, path)
		}
		return err
	})
	require.NoError(t, err)
	return all
}
