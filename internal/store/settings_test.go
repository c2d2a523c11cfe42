package store

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// The settings of missing extensions are kept, byte for byte, during any other changes.
func TestSettingsOfMissingExtensionsAreKept(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "s", FragmentsFeed: "http://example.org/f", SP: sp}))
	ext := map[string]json.RawMessage{"other.list": json.RawMessage(`[1.50,"é\u003c","\u00e9",{"b":1,"a":1e3}]`), "other.none": json.RawMessage("null")}
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
		c, err := collections.Get(tx, "m")
		require.NoError(t, err)
		s, err := sources.Get(tx, "s")
		require.NoError(t, err)
		c.Ext, s.Ext = ext, ext
		require.NoError(t, sources.Put(tx, s))
		return collections.Put(tx, c)
	}))
	_, err := db.ChangeSettings(t.Context(), "m", func(s *Settings) error { s.Title = "M"; return nil })
	require.NoError(t, err)
	_, err = db.Publish(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) { return rename(0, 1, "new"), nil })
	require.NoError(t, err)
	require.NoError(t, db.UpdateSubscription(t.Context(), "s", func(s *Subscription) { s.LastError = "not there" }))
	c, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	s, err := db.Subscription(t.Context(), "s")
	require.NoError(t, err)
	assert.Equal(t, "M", c.Title)
	assert.Equal(t, "not there", s.LastError)
	assert.Equal(t, ext, c.Ext)
	assert.Equal(t, ext, s.Ext)
}

// A setting that binds makes the collection read-only for programs that do not know it.
func TestSettingsThatBind(t *testing.T) {
	plain := Setting{Extension: "acl", Name: "audit", Default: false}
	binding := Setting{Extension: "acl", Name: "hides", Default: []string(nil), Binds: true}
	o := testOptions(t.TempDir())
	for i, settings := range [][]Setting{{plain, binding}, {plain}, nil, {binding}} {
		o.Settings = settings
		db := openWith(t, o)
		if i == 0 {
			collection(t, db, "m", 3)
			_, err := db.CreateCollection(t.Context(), Collection{Name: "empty", SP: sp}, &merge.Memory{}, nil)
			require.NoError(t, err)
		}
		for _, name := range []string{"m", "empty"} {
			c, err := db.ChangeSettings(t.Context(), name, func(s *Settings) error {
				if i == 0 {
					require.NoError(t, plain.Set(s, json.RawMessage("true")))
					return binding.Set(s, json.RawMessage(`["http://example.org/a"]`))
				}
				s.Title += "x"
				return nil
			})
			require.NoError(t, err)
			assert.Equal(t, []string{"http://example.org/a"}, ValueOf[[]string](&binding, c))
			assert.True(t, ValueOf[bool](&plain, c))
		}
		_, err := db.Publish(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) { return nil, nil })
		_, filled := db.FillCollection(t.Context(), "empty", &merge.Memory{})
		if i == 0 || i == 3 {
			assert.NoError(t, err)
			assert.NoError(t, filled)
		} else {
			var readOnly *ReadOnlyError
			assert.ErrorAs(t, filled, &readOnly)
			assert.EqualError(t, err, `collection "m" needs the extension acl, which this program does not have: write it with one that has`)
		}
		require.NoError(t, db.Close())
	}
}

// A replica is published as its origin is: settings that affect this are refused, and display settings are not.
func TestSettingsOfReplicas(t *testing.T) {
	offered := Setting{Extension: "other", Name: "offered", Default: true, Publishes: true}
	size := Setting{Extension: "other", Name: "size", Default: 0}
	all := append(collections.Core(), offered, size)
	written, replica := &Collection{}, &Collection{Replica: &collections.Replica{}}
	assert.True(t, ValueOf[bool](&offered, written))
	assert.False(t, ValueOf[bool](&offered, replica))
	shown, err := replica.Shown(all)
	require.NoError(t, err)
	for i := range all {
		x, next := &all[i], replica.Settings
		require.NoError(t, x.Set(&next, shown[x.Name]))
		assert.False(t, replica.Republishes(next, all), x.Name)
		other := map[any]string{"[]": `["xtm1"]`, "false": "true", `""`: `"/x"`, "0": "1", `"0s"`: `"1s"`}[string(shown[x.Name])]
		if x.Name == "mirrors" {
			other = `["http://example.org/m"]`
		}
		require.NoError(t, x.Set(&next, json.RawMessage(other)), x.Name)
		assert.Equal(t, x.Publishes, replica.Republishes(next, all), x.Name)
	}
}
