package resourcesync

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// lint validates documents against a schema of shared/schemas/resourcesync.
func lint(t *testing.T, schema string, files ...string) error {
	folder, xmllint := testenv.Shared(t, "schemas/resourcesync"), testenv.Command(t, "xmllint")
	args := append([]string{"--noout", "--nonet", "--schema", filepath.Join(folder, schema+".xsd")}, files...)
	out, err := exec.Command(xmllint, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// All that is written satisfies the schemas of its version: the examples, and
// documents drawn at random.
func TestWrittenDocumentsSatisfyTheSchemas(t *testing.T) {
	folder := t.TempDir()
	files := map[string][]string{} // by schema
	put := func(version10 bool, d Document, items []Item) {
		schema := "joint-sitemap"
		if d.Index {
			schema = "joint-siteindex"
		}
		if !version10 {
			schema += "11"
		}
		var b bytes.Buffer
		require.NoError(t, writeAll(&b, d, items, Options{Version10: version10}))
		file := filepath.Join(folder, fmt.Sprintf("%s-%d.xml", schema, len(files[schema])))
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
		files[schema] = append(files[schema], file)
	}
	for _, version10 := range []bool{true, false} {
		for _, e := range examples {
			if e.number != 27 { // its hashes are not hexadecimal
				d, items := readExample(t, e.number)
				put(version10, d, items)
			}
		}
		type document struct {
			head  Document
			items []Item
		}
		draw := rapid.Custom(func(t *rapid.T) document {
			d, items := drawDocument(t, version10)
			return document{d, items}
		})
		for seed := range 200 {
			one := draw.Example(seed)
			put(version10, one.head, one.items)
		}
	}
	for _, schema := range []string{"joint-sitemap", "joint-siteindex", "joint-sitemap11", "joint-siteindex11"} {
		require.Greater(t, len(files[schema]), 20, schema)
		assert.NoError(t, lint(t, schema, files[schema]...), schema)
	}
	for _, file := range files["joint-sitemap11"] {
		document, err := os.ReadFile(file)
		require.NoError(t, err)
		if bytes.Contains(document, []byte("datetime=")) {
			// The check itself must be able to fail.
			assert.Error(t, lint(t, "joint-sitemap", file))
			return
		}
	}
	assert.Fail(t, "no document has a datetime")
}
