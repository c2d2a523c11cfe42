package status_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/merge"
)

// The overview of a node shows that a derived collection is being filled, and its missing inputs.
func TestNodeShowsHowDerivedCollectionsAre(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Badger: badger.Small})
	require.NoError(t, err)
	defer db.Close()
	for _, name := range []string{"egov", "more"} {
		_, err := db.CreateCollection(t.Context(), store.Collection{Name: name, SP: "http://" + name + ".example.org/"}, &merge.Memory{}, nil)
		require.NoError(t, err)
	}
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "all", SP: "http://all.example.org/", DerivedFrom: []string{"egov", "more"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	shown := func() status.Published {
		n, err := status.OfNode(t.Context(), db, time.Now(), nil)
		require.NoError(t, err)
		require.Equal(t, "all", n.Publishes[0].Name)
		require.Empty(t, n.Publishes[1].Advice)
		return n.Publishes[0]
	}
	assert.True(t, shown().BeingFilled)
	_, err = derive.CatchUp(t.Context(), db, "all")
	require.NoError(t, err)
	assert.False(t, shown().BeingFilled)
	assert.Empty(t, shown().MissingInputs)

	require.NoError(t, db.DeleteCollection(t.Context(), "more", ""))
	p := shown()
	assert.Equal(t, []status.MissingInput{{Name: "more", Reason: "gone"}}, p.MissingInputs)
	assert.Contains(t, p.Advice, `"tmshare-server derive all --from egov" goes on without`)
	b, err := json.Marshal(p)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"missingInputs":[{"name":"more","reason":"gone"}]`)
	assert.NotContains(t, string(b), "beingFilled")
}
