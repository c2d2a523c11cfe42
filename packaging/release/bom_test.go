package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bill of materials names each module that is in the programs, as advisories do, and is the same each time.
func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	modules, err := listed()
	require.NoError(t, err)
	r := &release{source: "../..", version: "0.2.0", time: time.Unix(1e9, 0).UTC(), listed: modules}
	var first, second bytes.Buffer
	require.NoError(t, r.bom(t.Context(), &first))
	require.NoError(t, r.bom(t.Context(), &second))
	assert.Equal(t, first.String(), second.String())
	var bill struct {
		BOMFormat, SpecVersion string
		Components             []component
	}
	require.NoError(t, json.Unmarshal(first.Bytes(), &bill))
	assert.Equal(t, "CycloneDX", bill.BOMFormat)
	assert.Contains(t, first.String(), `"purl": "pkg:golang/github.com/tmshare/tmshare@v0.2.0"`)
	require.Len(t, bill.Components, len(modules))
	assert.Contains(t, first.String(), `"purl": "pkg:golang/github.com/dgraph-io/badger/v4@v4.`)
	assert.Contains(t, first.String(), `"name": "github.com/inconshreveable/mousetrap"`, "what only programs for Windows have")
}
