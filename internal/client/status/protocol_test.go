package status_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
)

// A subscription with an unknown protocol is reported, before any round, whatever its state was before.
func TestStatusNamesAProtocolThatIsMissing(t *testing.T) {
	for _, c := range []struct{ has, lacks []string }{{nil, nil}, {[]string{"some"}, []string{"b"}}, {[]string{"some", "other"}, nil}, {[]string{}, []string{"a", "b"}}} {
		db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Engine: memory.New(), Protocols: c.has})
		require.NoError(t, err)
		for _, s := range []store.Subscription{
			{Name: "a", Protocol: "some"}, {Name: "b", Protocol: "other", LastError: "x", State: &sources.Progress{}}, {Name: "c"},
		} {
			require.NoError(t, db.AddSubscription(t.Context(), s))
		}
		list, err := status.Named(t.Context(), db, time.Now())
		require.NoError(t, err)
		var missing []string
		for _, st := range list {
			if assert.Equal(t, st.Missing != "", st.State == status.ProtocolMissing); st.Missing != "" {
				missing = append(missing, st.Name)
				assert.Equal(t, "needs an extension with the protocol "+st.Protocol+", which this program does not have", st.Missing)
			}
		}
		assert.Equal(t, c.lacks, missing)
		require.NoError(t, db.Close())
	}
}
