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

// layers is the table of docs/architecture.md, "Packages, and who may import
// whom": each package and what it may import of the project.
var layers = map[string][]string{
	"internal/iri":                {},
	"internal/xml/scan":           {},
	"internal/xml/patch":          {"internal/xml/scan"},
	"internal/xml/read":           {"internal/otherformat", "internal/xml/scan"},
	"internal/xml/write":          {},
	"internal/xml/c14n":           {"internal/xml/scan", "internal/xml/write"},
	"internal/ahead":              {},
	"internal/otherformat":        {},
	"tmdm":                        {"internal/iri"},
	"tmdm/cxtm":                   {"internal/xml/write", "tmdm"},
	"xtm":                         {"internal/ahead", "internal/iri", "internal/otherformat", "internal/xml/c14n", "internal/xml/scan", "internal/xml/write", "tmdm"},
	"fragment":                    {"internal/ahead", "internal/iri", "tmdm", "xtm"},
	"fragment/stream":             {"fragment", "tmdm", "xtm"},
	"fragment/losses":             {"fragment"},
	"feeds":                       {"internal/iri", "internal/otherformat", "internal/xml/read", "internal/xml/scan", "internal/xml/write"},
	"feeds/resourcesync":          {"internal/iri", "internal/otherformat", "internal/xml/read", "internal/xml/scan", "internal/xml/write"},
	"merge":                       {"fragment", "tmdm"},
	"internal/extsort":            {},
	"internal/pairs":              {},
	"internal/durable":            {},
	"internal/locks":              {},
	"internal/filestate":          {},
	"internal/rdf":                {},
	"internal/rdf/turtle":         {"internal/iri", "internal/rdf"},
	"internal/rdf/rdfxml":         {"internal/iri", "internal/rdf", "internal/xml/c14n", "internal/xml/scan", "internal/xml/write"},
	"internal/rdf/jsonld":         {"internal/rdf"},
	"internal/ext/rdf/mapping":    {"fragment", "internal/iri", "internal/rdf", "tmdm", "xtm"},
	"internal/kv":                 {},
	"internal/kv/memory":          {"internal/kv"},
	"internal/kv/badger":          {"internal/durable", "internal/kv"},
	"internal/ext/postgres/pg":    {"internal/kv"},
	"internal/store/txn":          {"internal/kv", "fragment", "internal/store/keys"},
	"internal/checkpoint":         {},
	"internal/store/leases":       {"internal/store/keys", "internal/store/txn"},
	"internal/store/loads":        {"internal/kv", "internal/store/keys", "internal/store/records", "internal/store/txn"},
	"internal/statedigest":        {"fragment", "internal/extsort", "internal/fetch", "internal/pairs"},
	"internal/store/keys":         {"fragment", "tmdm"},
	"internal/ext/search":         {"internal/ext/search/words", "internal/extension", "internal/store/txn", "fragment", "internal/cli", "internal/client/merged", "internal/fetch", "internal/store", "internal/store/records", "merge"},
	"internal/ext/search/words":   {"fragment", "internal/kv", "internal/pairs", "internal/store/keys", "internal/store/txn", "internal/store/records", "tmdm"},
	"internal/store/agree":        {"internal/extsort", "internal/kv", "internal/pairs", "internal/store/txn"},
	"internal/store/records":      {"fragment", "internal/ahead", "internal/extsort", "internal/kv", "internal/statedigest", "internal/store/agree", "internal/store/keys", "internal/store/past", "internal/store/txn", "tmdm"},
	"internal/store/replicas":     {"fragment", "internal/checkpoint", "internal/kv", "internal/store/collections", "internal/store/keys", "internal/store/records", "internal/store/rendered", "internal/store/sources", "internal/store/txn", "merge", "tmdm", "xtm"},
	"internal/store/collections":  {"fragment", "internal/checkpoint", "internal/kv", "internal/store/keys", "internal/store/records", "internal/store/rendered", "internal/store/txn", "tmdm", "xtm"},
	"internal/store/rendered":     {"internal/kv", "internal/store/txn", "xtm"},
	"internal/store/rejections":   {"fragment", "internal/store/keys", "internal/store/txn", "merge", "tmdm"},
	"internal/store/sources":      {"fragment", "fragment/losses", "internal/statedigest", "internal/store/derived", "internal/store/keys", "internal/store/loads", "internal/store/past", "internal/store/records", "internal/store/rejections", "internal/store/txn", "merge"},
	"internal/store/datafolder":   {"internal/durable", "internal/kv", "internal/kv/badger", "internal/store/keys"},
	"internal/store/files":        {"internal/durable", "internal/kv", "internal/store/keys"},
	"internal/store/moving":       {"internal/kv", "internal/store/keys", "internal/store/txn"},
	"internal/store":              {"fragment", "internal/checkpoint", "internal/durable", "internal/kv", "internal/kv/badger", "internal/statedigest", "internal/store/agree", "internal/store/collections", "internal/store/datafolder", "internal/store/derived", "internal/store/files", "internal/store/inputs", "internal/store/keys", "internal/store/leases", "internal/store/loads", "internal/store/moving", "internal/store/past", "internal/store/records", "internal/store/rejections", "internal/store/rendered", "internal/store/replicas", "internal/store/sources", "internal/store/txn", "merge", "xtm"},
	"internal/derive":             {"fragment", "internal/store", "merge", "tmdm", "xtm"},
	"internal/store/inputs":       {"fragment", "internal/kv", "internal/store/collections", "internal/store/derived", "internal/store/keys", "internal/store/records", "internal/store/sources", "internal/store/txn", "merge"},
	"internal/store/derived":      {"fragment", "internal/kv", "internal/store/keys", "internal/store/past", "internal/store/records", "internal/store/txn", "merge", "tmdm"},
	"internal/store/past":         {"internal/kv", "internal/pairs", "internal/store/agree", "internal/store/keys", "internal/store/txn"},
	"internal/history":            {"feeds", "fragment", "fragment/losses", "internal/extsort", "internal/formats/mapdiff", "internal/store", "internal/store/records", "merge", "tmdm", "xtm"},
	"internal/ext/backup":         {"feeds", "internal/cli", "internal/client", "internal/durable", "internal/extension", "internal/kv", "internal/store", "internal/store/datafolder", "internal/store/files", "internal/store/moving"},
	"internal/publish":            {"feeds", "fragment", "fragment/losses", "internal/filestate", "internal/formats", "internal/store", "merge", "tmdm", "xtm"},
	"internal/server":             {"feeds", "fragment", "fragment/losses", "fragment/stream", "internal/checkpoint", "internal/derive", "internal/durable", "internal/filestate", "internal/formats", "internal/history", "internal/iri", "internal/publish", "internal/server/addresses", "internal/server/inputs", "internal/server/problems", "internal/server/renderings", "internal/server/upkeep", "internal/server/waiting", "internal/server/web", "internal/statedigest", "internal/store", "internal/store/files", "internal/store/rendered", "merge", "tmdm", "xtm"},
	"internal/extension":          {"internal/formats", "fragment/losses", "internal/cli", "internal/client", "internal/client/watch", "internal/control", "internal/fetch", "internal/follow", "internal/kv", "internal/locks", "internal/server", "internal/store", "internal/store/txn"},
	"internal/ext/websub":         {"feeds", "internal/extension", "internal/fetch", "internal/server", "internal/store"},
	"internal/ext/folder":         {"feeds", "fragment/losses", "internal/cli", "internal/client", "internal/client/discover", "internal/ext/atompmh", "internal/extension", "internal/fetch", "feeds/resourcesync", "internal/iri", "internal/xml/patch", "internal/follow", "internal/ext/resourcesync/destination"},
	"internal/ext/postgres":       {"internal/cli", "internal/extension", "internal/kv", "internal/ext/postgres/pg", "internal/server", "internal/store"},
	"internal/ext":                {"internal/ext/atompmh", "internal/ext/backup", "internal/ext/demo", "internal/ext/editing", "internal/ext/files", "internal/ext/folder", "internal/ext/pages", "internal/ext/postgres", "internal/ext/resourcesync", "internal/ext/search", "internal/ext/since", "internal/ext/websub", "internal/extension", "internal/follow", "internal/formats", "internal/ext/rdf", "internal/server", "internal/store/txn"},
	"internal/ext/since":          {"feeds", "internal/ext/since/position", "internal/extension", "internal/server", "internal/server/web", "internal/store"},
	"internal/ext/since/position": {"internal/history", "internal/server/web"},
	"internal/ext/resourcesync":   {"feeds", "feeds/resourcesync", "internal/ext/resourcesync/resources", "internal/extension", "internal/follow", "internal/ext/resourcesync/destination", "internal/iri", "internal/server", "internal/server/addresses", "internal/server/problems", "internal/server/upkeep", "internal/server/web", "internal/store", "internal/xml/patch", "xtm"},
	"internal/server/web":         {},
	"internal/ext/pages/texts":    {},
	"internal/ext/pages/layout":   {"feeds", "internal/ext/pages/plot", "internal/ext/pages/texts"},
	"internal/ext/pages/plot":     {"internal/ext/pages/texts"},
	"internal/server/addresses":   {"fragment", "internal/store"},
	"internal/ext/pages":          {"feeds", "fragment", "internal/client/watch", "internal/derive", "internal/ext/pages/layout", "internal/ext/pages/nodepages", "internal/ext/pages/plot", "internal/ext/pages/texts", "internal/ext/search/words", "internal/ext/since/position", "internal/extension", "internal/formats", "internal/formats/mapdiff", "internal/history", "internal/iri", "internal/server", "internal/server/addresses", "internal/server/inputs", "internal/server/web", "internal/store", "internal/store/records", "merge", "tmdm"},
	"internal/ext/editing":        {"fragment", "internal/ext/pages", "internal/ext/pages/layout", "internal/ext/pages/texts", "internal/extension", "internal/formats", "internal/history", "internal/iri", "internal/publish", "internal/server", "internal/server/web", "internal/store", "merge", "tmdm", "xtm"},
	"internal/server/inputs":      {"feeds", "fragment", "internal/server/web", "internal/store"},
	"internal/server/problems":    {"fragment", "fragment/losses", "internal/durable", "internal/formats", "internal/history", "internal/publish", "internal/server/web", "internal/store", "xtm"},
	"internal/server/renderings":  {"internal/durable", "internal/server/web"},
	"internal/server/waiting":     {"internal/server/web", "internal/store"},
	"internal/server/upkeep":      {"fragment", "internal/derive", "internal/durable", "internal/locks", "internal/store", "merge"},

	"internal/fetch":                        {"feeds", "internal/iri", "internal/tokenfile"},
	"internal/tokenfile":                    {},
	"internal/follow":                       {"feeds", "feeds/resourcesync", "internal/extsort", "internal/fetch", "internal/iri"},
	"internal/ext/resourcesync/destination": {"feeds", "feeds/resourcesync", "internal/extsort", "internal/fetch", "internal/follow", "internal/iri", "internal/xml/patch"},
	"internal/follow/tmshare":               {"feeds", "internal/fetch", "internal/follow"},
	"internal/client/discover":              {"feeds", "fragment", "internal/fetch", "internal/follow", "internal/iri", "internal/store"},
	"internal/client":                       {"feeds", "fragment", "fragment/losses", "fragment/stream", "internal/checkpoint", "internal/client/discover", "internal/client/local", "internal/fetch", "internal/follow", "internal/follow/tmshare", "internal/formats", "internal/iri", "internal/locks", "internal/statedigest", "internal/store", "internal/store/replicas", "merge", "tmdm", "xtm"},
	"internal/client/local":                 {"fragment", "fragment/losses", "internal/store", "merge", "tmdm"},
	"internal/client/reject":                {"fragment", "internal/store", "internal/store/rejections", "merge", "tmdm"},
	"internal/client/expand":                {"internal/client", "internal/client/discover", "internal/store"},
	"internal/client/merged":                {"fragment", "internal/client", "internal/formats", "internal/store", "internal/store/rejections", "merge", "tmdm", "xtm"},
	"internal/client/status":                {"fragment", "internal/checkpoint", "internal/client", "internal/follow", "internal/store"},
	"internal/ext/pages/nodepages":          {"internal/cli", "internal/client/merged", "internal/client/status", "internal/client/watch", "internal/control", "internal/ext/pages/layout", "internal/ext/pages/plot", "internal/ext/pages/texts", "internal/extension", "internal/store", "internal/store/rejections", "tmdm"},
	"internal/client/watch":                 {"internal/client", "internal/client/status", "internal/fetch", "internal/follow", "internal/store"},
	"internal/admin":                        {"feeds", "fragment/losses", "internal/formats", "internal/history", "internal/publish", "internal/server", "internal/server/problems"},
	"internal/ext/rdf":                      {"fragment", "internal/cli", "internal/ext/rdf/mapping", "internal/extension", "internal/formats", "internal/otherformat", "internal/rdf", "internal/rdf/jsonld", "internal/rdf/rdfxml", "internal/rdf/turtle", "internal/xml/scan", "merge", "tmdm", "xtm"},
	"internal/formats":                      {"feeds", "fragment", "internal/iri", "internal/otherformat", "merge", "tmdm", "tmdm/cxtm", "xtm"},
	"internal/formats/mapdiff":              {"fragment", "tmdm", "tmdm/cxtm"},
	"internal/cli":                          {},
	"internal/systemd":                      {},
	"internal/doctor":                       {"internal/client/status", "internal/control", "internal/fetch", "internal/kv", "internal/kv/badger", "internal/store", "internal/store/datafolder", "internal/store/keys", "internal/tokenfile"},
	"internal/control":                      {},
	"internal/ext/demo":                     {"feeds", "fragment", "internal/cli", "internal/client", "internal/client/merged", "internal/extension", "internal/publish", "internal/server", "internal/store", "testdata/xtm", "tmdm", "tmdm/cxtm", "xtm", "internal/store/txn"},
	"cmd/tmshare-server":                    {"fragment", "fragment/losses", "internal/admin", "internal/checkpoint", "internal/cli", "internal/client", "internal/client/watch", "internal/clientcmd", "internal/control", "internal/doctor", "internal/ext", "internal/extension", "internal/filestate", "internal/formats", "internal/history", "internal/publish", "internal/server", "internal/server/web", "internal/store", "internal/systemd", "internal/tokenfile", "tmdm", "xtm"},
	"internal/ext/files":                    {"fragment", "fragment/losses", "internal/cli", "internal/client", "internal/extension", "internal/formats", "internal/formats/mapdiff", "tmdm", "xtm"},
	"internal/clientcmd":                    {"feeds", "fragment/losses", "internal/checkpoint", "internal/cli", "internal/client", "internal/client/expand", "internal/client/local", "internal/client/merged", "internal/client/reject", "internal/client/status", "internal/client/watch", "internal/control", "internal/doctor", "internal/extension", "internal/follow", "internal/formats", "internal/history", "internal/statedigest", "internal/store", "internal/store/keys", "internal/store/rejections", "internal/systemd", "tmdm", "xtm"},
	"cmd/tmshare-client":                    {"internal/clientcmd", "internal/ext"},
	"testdata/xtm":                          {},

	// for tests only
	"bench":                               {},
	"bench/synthetic":                     {},
	"bench/generate":                      {"bench/synthetic"},
	"bench/all":                           {},
	"internal/testenv":                    {},
	"internal/testedit":                   {"tmdm"},
	"internal/testhostile":                {},
	"internal/testkit/kill":               {},
	"internal/testkit/faults":             {},
	"internal/testkit/checks":             {},
	"internal/testkit/node":               {"fragment", "internal/checkpoint", "internal/ext", "internal/extension", "internal/kv/badger", "internal/publish", "internal/server", "internal/server/upkeep", "internal/store", "internal/testkit/faults", "internal/testkit/stores", "internal/store/txn"},
	"internal/testkit/served":             {"feeds", "feeds/resourcesync", "fragment", "internal/ext", "internal/kv/badger", "internal/publish", "internal/server", "internal/store", "internal/testenv", "internal/testkit/stores", "internal/testkit/webpage", "internal/xml/scan", "tmdm", "tmdm/cxtm", "xtm"},
	"internal/testkit/stores":             {"internal/kv", "internal/kv/badger", "internal/kv/memory", "internal/ext/postgres/pg", "internal/store", "internal/store/datafolder", "internal/testenv", "internal/testkit/pgserver"},
	"internal/testkit/docs":               {"fragment", "tmdm", "tmdm/cxtm", "xtm"},
	"packaging":                           {},
	"packaging/release":                   {},
	"internal/testkit/nginx":              {"internal/testenv"},
	"internal/testkit/anyhost":            {"internal/fetch"},
	"internal/testkit/browser":            {"internal/testenv"},
	"internal/testkit/pgserver":           {"internal/ext/postgres/pg", "internal/testenv"},
	"internal/testkit/w3c":                {"internal/rdf", "internal/rdf/turtle"},
	"internal/testkit/webpage":            {"internal/ext/pages/layout"},
	"internal/follow/followtest":          {"feeds", "fragment", "internal/follow", "internal/server", "internal/store", "internal/testedit", "internal/testenv", "internal/testkit/docs", "internal/testkit/faults", "internal/testkit/kill", "internal/testkit/node", "tmdm", "xtm"},
	"internal/kv/kvtest":                  {"internal/kv", "internal/testenv"},
	"internal/store/storetest":            {"fragment", "internal/testedit", "merge", "tmdm", "xtm", "internal/kv", "internal/store/keys", "internal/store/txn"},
	"internal/store/files/filestest":      {"internal/store/files", "internal/testenv"},
	"internal/archtest":                   {},
	"internal/e2e":                        {},
	"internal/sim":                        {},
	"internal/ext/atompmh":                {"feeds", "internal/extension", "internal/fetch", "internal/follow"},
	"internal/ext/resourcesync/resources": {"feeds", "feeds/resourcesync", "fragment", "internal/durable", "internal/formats", "internal/iri", "internal/kv", "internal/store", "internal/store/files", "internal/store/past", "internal/store/rendered", "internal/store/txn", "internal/xml/patch", "xtm"},
}

// testOnly are the packages that nothing but tests imports.
var testOnly = []string{"internal/testenv", "internal/testedit", "internal/testhostile", "internal/testkit/kill", "internal/testkit/docs", "internal/testkit/anyhost", "internal/testkit/browser", "internal/testkit/pgserver", "internal/testkit/stores", "internal/testkit/w3c", "internal/testkit/webpage", "internal/testkit/faults", "internal/testkit/node", "internal/testkit/served", "internal/follow/followtest", "internal/kv/kvtest", "internal/store/storetest", "internal/store/files/filestest", "internal/testkit/nginx"}

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

func TestTableNamesNoPackageThatIsGone(t *testing.T) {
	var there []string
	for _, p := range packages(t) {
		there = append(there, p.ImportPath)
	}
	for name := range layers {
		assert.Contains(t, there, name)
	}
}

// "go test ./... -long" fails in a package that does not know the flag, so every
// package with tests imports the one that defines it.
func TestEveryTestPackageTakesTheFlags(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,TestGoFiles,XTestGoFiles,TestImports,XTestImports", module+"/...").Output()
	require.NoError(t, err)
	tested := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath                string
			TestGoFiles, XTestGoFiles []string
			TestImports, XTestImports []string
		}
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		tested++
		assert.Contains(t, slices.Concat(p.TestImports, p.XTestImports), module+"/internal/testenv", "%s: import it in a test, as _ if need be", p.ImportPath)
	}
	assert.Greater(t, tested, 25)
}
