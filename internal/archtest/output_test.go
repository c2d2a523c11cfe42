package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Commands print only to the output of their cobra.Command: package cli checks there whether it could be written.
// Package control has the standard output of the process for it.
func TestNothingPrintsPastTheOutputOfItsCommand(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range goFiles(t) {
		name := filepath.ToSlash(strings.TrimPrefix(filepath.ToSlash(p), "../../"))
		if strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "packaging/") || name == "internal/testkit/checks/main.go" || name == "internal/control/request.go" {
			continue
		}
		f, err := parser.ParseFile(fset, p, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				pkg, _ := s.X.(*ast.Ident)
				past := pkg != nil && (pkg.Name == "os" && s.Sel.Name == "Stdout" || pkg.Name == "fmt" && slices.Contains([]string{"Print", "Printf", "Println"}, s.Sel.Name))
				assert.False(t, past, "%s prints past the output of its command", fset.Position(s.Pos()))
			}
			return true
		})
	}
}
