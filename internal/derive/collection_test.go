package derive_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// TestDerivedCollection edits the inputs of a derived collection. It catches up, also after a restart of the store, and
// after the deletion of an input.
func TestDerivedCollection(t *testing.T) {
	dir := t.TempDir()
	open := func() *store.DB {
		db, err := store.Open(t.Context(), store.Options{Dir: dir})
		require.NoError(t, err)
		return db
	}
	db := open()
	maps := map[string]*tmdm.TopicMap{}
	editors := map[string]*testedit.Editor{}
	publish := func(name string) {
		_, err := db.Publish(t.Context(), name, func(c store.Collection, state merge.State) (*fragment.Change, error) {
			next, err := fragment.NameTopics(t.Context(), maps[name], c.SP, state)
			if err != nil {
				return nil, err
			}
			return fragment.Diff(t.Context(), state, next)
		})
		require.NoError(t, err)
	}
	var none merge.Memory
	for i, name := range []string{"one", "two"} {
		prefix := fmt.Sprintf("http://%s.example.org/", name)
		maps[name] = testedit.SmallMap(prefix)
		editors[name] = testedit.New(maps[name], prefix, uint64(i))
		_, err := db.CreateCollection(t.Context(), store.Collection{Name: name, SP: prefix}, &none, nil)
		require.NoError(t, err)
		publish(name)
	}
	_, err := db.CreateCollection(t.Context(), store.Collection{Name: "both", SP: sp, DerivedFrom: []string{"one", "two"}}, &none, nil)
	require.NoError(t, err)
	filter := &store.Filter{Types: []fragment.Ref{"http://a"}}
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "part", SP: sp, DerivedFrom: []string{"one", "two"}, Filter: filter}, &none, nil)
	require.NoError(t, err)
	compared := 0
	compareOne := func(name string, f *store.Filter) {
		c, err := derive.CatchUp(t.Context(), db, name)
		require.NoError(t, err)
		require.NoError(t, db.ReadParts(t.Context(), func(parts []store.Part) error {
			var all []merge.Part
			for _, p := range parts {
				all = append(all, merge.Part{SP: p.SP, Source: p.Source})
			}
			return db.View(t.Context(), name, func(v *store.View) error {
				if f != nil && vocabularyMerged(t, all) {
					return nil
				}
				compared++
				require.Equal(t, canonical(t, f, all...), canonical(t, nil, merge.Part{SP: sp, Source: v.Source()}))
				return nil
			})
		}))
		again, err := derive.CatchUp(t.Context(), db, name)
		require.NoError(t, err)
		require.Equal(t, c.Head, again.Head, "what has no effect publishes nothing")
	}
	compare := func() {
		compareOne("both", nil)
		compareOne("part", filter)
	}
	compare()
	names := []string{"one", "two"}
	for n := range 20 {
		name := names[n%2]
		editors[name].Edit()
		publish(name)
		if n == 9 { // a derived collection follows a renamed input
			_, err := db.RenameCollection(t.Context(), "one", "uno")
			require.NoError(t, err)
			names[0], maps["uno"], editors["uno"] = "uno", maps["one"], editors["one"]
		}
		if n%5 == 4 {
			require.NoError(t, db.Close())
			db = open()
		}
		compare()
	}
	require.Greater(t, compared, 30, "too little was compared to mean anything")
	_, err = db.Publish(t.Context(), "both", func(store.Collection, merge.State) (*fragment.Change, error) { return nil, nil })
	var refused *store.ReadOnlyError
	require.ErrorAs(t, err, &refused)
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "more", SP: sp, DerivedFrom: []string{"both"}}, &none, nil)
	require.ErrorContains(t, err, "derive from its inputs instead")
	require.NoError(t, db.DeleteCollection(t.Context(), "two", ""))
	deriveAgain(t, db, "both", "uno")
	deriveAgain(t, db, "part", "uno")
	compare()
	require.NoError(t, db.DeleteCollection(t.Context(), "both", ""))
	require.NoError(t, db.DeleteCollection(t.Context(), "part", ""))
	editors["uno"].Edit()
	publish("uno")
	require.NoError(t, db.Close())
}
