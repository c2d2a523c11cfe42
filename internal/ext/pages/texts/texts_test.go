package texts_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// elsewhere are functions whose texts are not of pages: answers that programs get as well, errors, and lines of the
// log.
var elsewhere = map[string]bool{"Problemf": true, "Errorf": true, "New": true, "panic": true, "Info": true, "Warn": true, "Error": true, "Missing": true, "InTurn": true, "Key": true}

// The packages that make pages have no texts of their own: a string with two words there is a text of this package.
func TestCodeHasNoTexts(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`[A-Za-z]{2,} [A-Za-z]{2,}`)
	files := 0
	for _, folder := range []string{"..", "../../editing"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if path == "../texts" {
				return filepath.SkipDir
			}
			assert.NotEqual(t, ".html", filepath.Ext(path), "%s belongs into internal/ext/pages/texts", path)
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "command.go" { // of a terminal
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			require.NoError(t, err)
			files++
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					return !elsewhere[nameOf(n.Fun)]
				case *ast.BasicLit:
					if n.Kind == token.STRING && words.MatchString(n.Value) && !strings.Contains(n.Value, "realm=") {
						assert.Fail(t, "a text of a page belongs into internal/ext/pages/texts", "%s: %s", set.Position(n.Pos()), n.Value)
					}
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, files, 30)
}

// nameOf returns the last part of what names a function.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
