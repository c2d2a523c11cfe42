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
)

const module = "github.com/tmshare/tmshare"

// layers is the table of docs/architecture.md, "Packages, and who may import
// whom": each package and what it may import of the project.
var layers = map[string][]string{
	"internal/iri":       {},
	"internal/xmlscan":   {},
	"internal/xmlpatch":  {"internal/xmlscan"},
	"tmdm":               {"internal/iri"},
	"tmdm/cxtm":          {"tmdm", "internal/iri"},
	"xtm":                {"tmdm", "internal/iri", "internal/xmlscan"},
	"fragment":           {"tmdm", "xtm", "internal/iri"},
	"feeds":              {"internal/iri", "internal/xmlscan"},
	"feeds/resourcesync": {"internal/iri", "internal/xmlscan"},
	"merge":              {"tmdm", "fragment"},
	"internal/store":     {"tmdm", "xtm", "fragment", "merge", "internal/xmlpatch"},
	"internal/resources": {"internal/iri", "xtm", "fragment", "feeds", "feeds/resourcesync", "internal/store", "internal/xmlpatch"},
	"internal/server": {"internal/iri", "tmdm", "tmdm/cxtm", "xtm", "fragment", "feeds", "feeds/resourcesync", "merge", "internal/store",
		"internal/resources", "internal/xmlpatch"},
	"internal/fetch":   {},
	"internal/harvest": {"feeds", "feeds/resourcesync", "internal/fetch", "internal/xmlpatch"},
	"internal/client": {"internal/iri", "tmdm", "tmdm/cxtm", "xtm", "fragment", "feeds", "feeds/resourcesync", "merge", "internal/store",
		"internal/fetch", "internal/harvest"},
	"internal/admin":   {"feeds", "internal/server"},
	"internal/mapfile": {"internal/iri", "tmdm", "tmdm/cxtm", "xtm"},
	"internal/mapdiff": {"tmdm", "tmdm/cxtm"},
	"internal/cli":     {},
	"internal/control": {},
	"internal/demo": {"tmdm", "tmdm/cxtm", "xtm", "fragment", "feeds", "merge", "internal/store", "internal/server", "internal/client",
		"testdata/xtm"},
	"cmd/tmshare-server": {"fragment", "internal/admin", "internal/cli", "internal/clientcmd", "internal/demo", "internal/server", "internal/store"},
	"internal/clientcmd": {"feeds", "tmdm", "xtm", "internal/cli", "internal/client", "internal/control", "internal/fetch", "internal/harvest", "internal/mapdiff", "internal/mapfile", "internal/store"},
	"cmd/tmshare-client": {"internal/clientcmd"},
	"testdata/xtm":       {},

	// for tests only
	"bench":                    {},
	"bench/synthetic":          {},
	"bench/generate":           {"bench/synthetic"},
	"bench/table":              {},
	"internal/testenv":         {},
	"internal/testedit":        {"tmdm"},
	"internal/store/storetest": {"tmdm", "fragment", "merge", "internal/testedit", "xtm"},
	"internal/archtest":        {},
	"internal/e2e":             {},
}

// testOnly are the packages that nothing but tests imports.
var testOnly = []string{"internal/testenv", "internal/testedit", "internal/store/storetest"}

// onlyIn are libraries that one package alone may import, and standard packages
// that do input, output or logging and are kept out of the model.
var onlyIn = map[string]string{
	"github.com/dgraph-io/badger/v4": "internal/store",
	"github.com/gorilla/mux":         "internal/server",
}

var notInModel = []string{"net/http", "os", "log", "log/slog"}

type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...", module+"/testdata/xtm").Output()
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

func TestPackagesImportWhatTheTableAllows(t *testing.T) {
	all := packages(t)
	require.GreaterOrEqual(t, len(all), 15)
	for _, p := range all {
		allowed, ok := layers[p.ImportPath]
		assert.True(t, ok, "package %s is missing from the table", p.ImportPath)
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, module+"/"); ok {
				assert.Contains(t, allowed, own, "%s must not import %s", p.ImportPath, own)
				if !slices.Contains(testOnly, p.ImportPath) {
					assert.NotContains(t, testOnly, own, "%s is for tests", own)
				}
			}
			if only, ok := onlyIn[i]; ok {
				assert.Equal(t, only, p.ImportPath, "only %s may import %s", only, i)
			}
			if slices.Contains([]string{"tmdm", "tmdm/cxtm", "merge", "fragment"}, p.ImportPath) {
				assert.NotContains(t, notInModel, i, "%s does no input, output or logging", p.ImportPath)
			}
		}
	}
}

func TestTableNamesNoPackageThatIsGone(t *testing.T) {
	var there []string
	for _, p := range packages(t) {
		there = append(there, p.ImportPath)
	}
	for name := range layers {
		assert.Contains(t, there, name)
	}
}
