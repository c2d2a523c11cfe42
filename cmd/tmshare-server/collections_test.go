package main

import (
	"encoding/json"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
)

// What "collections set" can change is all that the server lets change.
func TestEverySettingHasAFlag(t *testing.T) {
	var all server.CollectionSettings
	require.NoError(t, json.Unmarshal([]byte(`{"title":"","summary":"","documentSize":1,"omitInstances":true,"snapshotEvery":1,
		"snapshotAfter":"1s","snapshotsKept":1,"keepEntries":1,"keepFor":"1s"}`), &all))
	b, err := json.Marshal(all)
	require.NoError(t, err)
	var settings map[string]any
	require.NoError(t, json.Unmarshal(b, &settings))
	flags := map[string]bool{}
	setCollection().Flags().VisitAll(func(f *pflag.Flag) { flags[camelCase(f.Name)] = true })
	require.Len(t, settings, 9)
	for name := range settings {
		assert.Contains(t, flags, name)
	}
}
