// Package archtest holds the code to docs/architecture.md.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

const module = "github.com/tmshare/tmshare"

// onlyIn are libraries that one package alone may import, and standard packages
// that do input, output or logging and are kept out of the model.
var onlyIn = map[string]string{
	"github.com/dgraph-io/badger/v4": "internal/kv/badger",
	"github.com/jackc/pgx/v5":        "internal/ext/postgres/pg",
	"github.com/gorilla/mux":         "internal/server/web",
}

var notInModel = []string{"net/http", "os", "log", "log/slog"}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []listed {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...", module+"/testdata/xtm").Output()
	require.NoError(t, err)
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module+"/")
		all = append(all, p)
	}
}

func TestLibrariesHaveOneImporter(t *testing.T) {
	all := packages(t)
	for _, p := range all {
		for _, i := range p.Imports {
			if slices.Contains([]string{"tmdm", "tmdm/cxtm", "merge", "fragment", "fragment/stream"}, p.ImportPath) {
				assert.NotContains(t, notInModel, i, "%s does no input, output or logging", p.ImportPath)
			}
		}
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for library, only := range onlyIn {
				if i == library || strings.HasPrefix(i, library+"/") {
					assert.Equal(t, only, p.ImportPath, "only %s may import %s, in tests too", only, i)
				}
			}
		}
	}
}

// Each package with tests takes the flags of internal/testenv: "go test ./... -all" gives them to all.
func TestAllTestPackagesTakeTheFlags(t *testing.T) {
	const testenv = module + "/internal/testenv"
	out, err := exec.Command("go", "list", "-test", "-json=ImportPath,ForTest,Deps", module+"/...").Output()
	require.NoError(t, err)
	checked := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			require.NoError(t, err)
		}
		if strings.HasSuffix(p.ImportPath, ".test") {
			checked++
			takes := slices.ContainsFunc(p.Deps, func(d string) bool { return d == testenv || strings.HasPrefix(d, testenv+" ") })
			assert.True(t, takes, "the tests of %s do not import internal/testenv", p.ImportPath)
		}
	}
	require.Greater(t, checked, 60)
}
