package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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

// recordOf returns the record form of an entry, in each form.
func recordOf(t tester, v *View, e *Entry) (forms []string) {
	t.Helper()
	for _, version := range Forms {
		var b bytes.Buffer
		require.NoError(t, v.WriteRecord(&b, e, version))
		forms = append(forms, b.String())
	}
	return forms
}

// long returns a subject identifier such that 150 make a large fragment.
func long(i int) tmdm.Locator {
	return tmdm.Locator(fmt.Sprint("http://long/", strings.Repeat("long-", 200), i))
}

// withHubs adds to a map a class with varying instances, and a hub that is too large as a whole: its associations keep
// all but their item identifiers, and the players gain identifiers.
func withHubs(t *testing.T, m *fragment.Map, prior fragment.Source, random *rand.Rand, turn int) *fragment.Map {
	tm := m.TopicMap()
	class, hub := tm.CreateTopicBySubjectIdentifier("http://class"), tm.CreateTopicBySubjectIdentifier("http://hub")
	class.AddType(tm.CreateTopicBySubjectIdentifier("http://metaclass"))
	hub.AddName(fmt.Sprint("turn ", turn/3), nil)
	for i := range 150 {
		player := tm.CreateTopicBySubjectIdentifier(long(i))
		a := tm.CreateAssociation(class)
		a.AddRole(class, hub)
		a.AddRole(hub, player)
		if i < 10 {
			require.NoError(t, tmdm.AddItemIdentifier(a, tmdm.Locator(fmt.Sprint(sp, "#a", i, "-", turn))))
			if random.IntN(4) == 0 {
				require.NoError(t, player.AddSubjectIdentifier(tmdm.Locator(fmt.Sprint("http://short/", i))))
			}
			if random.IntN(4) == 0 {
				continue
			}
		}
		player.AddType(class)
	}
	next, err := fragment.NameTopics(t.Context(), tm, sp, prior)
	require.NoError(t, err)
	return next
}

// The bytes of a record change exactly when an entry for it is published: not with its instances, nor with other
// changes of the mentioned topics. They describe the topic without its instances.
func TestRecordsChangeOnlyWithTheirEntries(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	histories, turns := uint64(testenv.Rounds(1, 4)), 8
	var changed, unchanged int
	for seed := range histories {
		random := rand.New(rand.NewPCG(seed, 21))
		db := openUnsynced(t, t.TempDir())
		editor := storetest.NewEditor(t, 500+seed)
		first := collectionOf(t, db, "m", withHubs(t, editor.Version(nil), nil, random, 0))
		type record struct {
			seq   uint64
			forms []string
		}
		was := map[fragment.Ref]record{}
		check := func(what string) {
			view(t, db, "m", func(v *View) {
				src := v.Source()
				for e, err := range v.Records() {
					require.NoError(t, err)
					r := record{e.Seq, recordOf(t, v, &e)}
					if prior, ok := was[e.TopicSI]; ok && prior.seq == e.Seq {
						unchanged++
						require.Equal(t, prior.forms, r.forms, "seed %d, %s: %s: %q", seed, what, e.TopicSI, editor.Edits)
						continue
					}
					was[e.TopicSI] = r
					if e.Seq > first.Head {
						changed++
					}
					topic, err := src.Topic(e.TopicSI)
					require.NoError(t, err)
					f, err := fragment.Read(t.Context(), strings.NewReader(r.forms[1]), xtm.Options{Base: sp}, e.TopicSI)
					require.NoError(t, err)
					require.True(t, fragment.SameTopic(topic, f.Topic), "%s", e.TopicSI)
					stated := map[fragment.AssociationKey]bool{}
					for _, a := range f.Associations {
						require.NotEqual(t, fragment.AsType, a.Part(e.TopicSI), "%s is a class here", e.TopicSI)
						stated[a.Key()] = true
					}
					for _, part := range []fragment.Part{fragment.AsInstance, fragment.AsPlayer} {
						for a, err := range src.AssociationsOf(e.TopicSI, part) {
							require.NoError(t, err)
							require.True(t, stated[a.Key()], "%s of %s", a.Type, e.TopicSI)
							delete(stated, a.Key())
						}
					}
					require.Empty(t, stated, "%s", e.TopicSI)
				}
			})
		}
		check("the first version")
		for turn := 1; turn <= turns; turn++ {
			var next *fragment.Map
			view(t, db, "m", func(v *View) { next = withHubs(t, editor.Version(v.Source()), v.Source(), random, turn) })
			publishMap(t, db, "m", next)
			check("a version")
			switch random.IntN(5) {
			case 0, 1:
				db = reopen(t, db)
				check("opened again")
			case 2:
				setOmitInstances(t, db, "m", turn%2 == 0)
			case 3:
				offer(t, db, [][]xtm.Version{onlyOld, onlyNew, Forms[:]}[random.IntN(3)])
				restate(t, db)
				check("published again")
			case 4:
				takeSnapshot(t, db, "m", 1)
				_, err := db.Prune(t.Context(), "m", Retention{Entries: 100})
				require.NoError(t, err)
				check("pruned")
			}
		}
		require.NoError(t, db.Close())
	}
	t.Logf("%d records as before, %d that have changed", unchanged, changed)
	require.Greater(t, unchanged, 500)
	require.Greater(t, changed, 50)
}

func setOmitInstances(t testing.TB, db *DB, name string, omit bool) {
	t.Helper()
	set(t, db, name, func(s *Settings) { s.OmitInstances = omit })
}

// The fragment of a class has no instances if they are to be omitted; theirs have the class.
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
			for i, form := range shown(t, v, last(t, v, "http://class")) {
				require.Contains(t, form, "http://metaclass", "XTM %s: what it is an instance of", Forms[i])
				require.Equal(t, !c.omit, strings.Contains(form, "http://one"), "XTM %s, omit %t", Forms[i], c.omit)
			}
			for i, form := range shown(t, v, last(t, v, "http://one")) {
				require.Contains(t, form, "http://class", "XTM %s", Forms[i])
				require.NotContains(t, form, "http://two")
			}
		})
	}
}

// A client that applies fragments without instances, and some with them, gets the map, from any beginning.
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
					require.Equal(t, storetest.Dump(t, v.Source()), storetest.Dump(t, client), "seed %d, turn %d, client of version %d: %q", 200+seed, turn, i, editor.Edits)
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
						forms := shown(t, v, e)
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
