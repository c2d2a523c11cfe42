package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func setOmitInstances(t testing.TB, db *DB, name string, omit bool) {
	t.Helper()
	_, err := db.ChangeSettings(t.Context(), name, func(s *Settings) error { s.OmitInstances = omit; return nil })
	require.NoError(t, err)
}

// The fragment of a class is without its instances where these are to be
// omitted; theirs have the class.
func TestFragmentsOfClassesWithoutInstances(t *testing.T) {
	db := openDB(t, t.TempDir())
	build := func(name string) *fragment.Map {
		return version(t, func(tm *tmdm.TopicMap) {
			class := tm.CreateTopicBySubjectIdentifier("http://class")
			class.AddName(name, nil)
			class.AddType(tm.CreateTopicBySubjectIdentifier("http://metaclass"))
			for _, si := range []tmdm.Locator{"http://one", "http://two"} {
				topic := tm.CreateTopicBySubjectIdentifier(si)
				topic.AddName(name, nil)
				topic.AddType(class)
			}
		})
	}
	collectionOf(t, db, "m", build("first"))
	for _, c := range []struct {
		name string
		omit bool
	}{{"second", false}, {"third", true}, {"fourth", false}} {
		setOmitInstances(t, db, "m", c.omit)
		publishMap(t, db, "m", build(c.name))
		view(t, db, "m", func(v *View) {
			for i, form := range stored(t, v, last(t, v, "http://class")) {
				require.Contains(t, form, "http://metaclass", "XTM %s: what it is an instance of", Forms[i])
				require.Equal(t, !c.omit, strings.Contains(form, "http://one"), "XTM %s, omit %t", Forms[i], c.omit)
			}
			for i, form := range stored(t, v, last(t, v, "http://one")) {
				require.Contains(t, form, "http://class", "XTM %s", Forms[i])
				require.NotContains(t, form, "http://two")
			}
		})
	}
}

// A client that applies fragments without instances, and some with them, ends
// with the map, wherever it has begun.
func TestFragmentsWithoutInstancesLeadToTheMap(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	typings := 0
	for seed := range uint64(8) {
		db := openUnsynced(t, t.TempDir())
		editor := storetest.NewEditor(t, 200+seed)
		collectionOf(t, db, "m", editor.Version(nil))
		setOmitInstances(t, db, "m", true)
		var clients []*merge.Memory // the i-th has begun with the i-th version
		marks := []uint64{}
		for turn := range 12 {
			if turn == 8 {
				setOmitInstances(t, db, "m", false)
			}
			if turn > 0 {
				var next *fragment.Map
				view(t, db, "m", func(v *View) { next = editor.Version(v.Source()) })
				publishMap(t, db, "m", next)
			}
			view(t, db, "m", func(v *View) {
				for i, client := range clients {
					some, err := fragments(v, marks[i]+1)
					require.NoError(t, err)
					for _, f := range some {
						require.NoError(t, merge.Apply(client, f))
					}
					marks[i] = v.Head
					require.Equal(t, storetest.Dump(t, v.Source()), storetest.Dump(t, client), "seed %d, turn %d, client of version %d: %q", 200+seed, turn, i, editor.Said)
				}
				client := &merge.Memory{}
				if turn > 0 { // the first walks the whole feed
					require.NoError(t, client.Load(v.Source()))
					marks = append(marks, v.Head)
				} else {
					marks = append(marks, 0)
				}
				clients = append(clients, client)
				for a, err := range v.Source().Associations() {
					require.NoError(t, err)
					if _, _, ok := a.TypeInstance(); ok {
						typings++
					}
				}
				if turn == 7 { // all fragments so far are without instances
					for _, topic := range topicsOf(t, v.Source()) {
						e := last(t, v, topic.TopicSI())
						forms := renderedNow(t, v, e)
						f, err := fragment.Read(t.Context(), strings.NewReader(forms[1]), xtm.Options{Base: sp}, topic.TopicSI())
						require.NoError(t, err)
						for _, a := range f.Associations {
							require.NotEqual(t, fragment.AsType, a.Part(topic.TopicSI()), "%s is a class here", topic.TopicSI())
						}
					}
				}
			})
		}
		require.NoError(t, db.Close())
	}
	require.Greater(t, typings, 100, "too few classes to mean anything")
}
