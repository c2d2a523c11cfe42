package derive_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
)

// rowsOf returns the rows of a keyspace, those of some tables where any are named.
func rowsOf(t *testing.T, db *store.DB, number uint32, tables ...byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, db.Dump(t.Context(), func(d *store.Dump) error {
		for r, err := range d.Rows() {
			if err != nil {
				return err
			}
			if keys.SourceOf(r.Key).Number != number {
				continue
			}
			for _, table := range tables {
				if keys.Table(r.Key) == table {
					all[string(r.Key)] = string(r.Value)
				}
			}
			if len(tables) == 0 {
				all[string(r.Key)] = string(r.Value)
			}
		}
		return nil
	}))
	return all
}

// rename gives the followed topic another name, with its entry.
func rename(t *testing.T, db *store.DB, to string) {
	require.NoError(t, db.ApplyEntries(t.Context(), "two", func(a *store.Applying) error {
		a.From("http://psi.example.org/two", "http://two.example.org/"+to)
		return a.PutTopic(&fragment.Topic{
			Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{"http://psi.example.org/two"}},
			Names:    []fragment.Name{{Value: to, Type: tmdm.PSIDefaultNameType}},
		})
	}))
}

// Commits of inputs write no rows of derived collections.
func TestInputsWriteNothingForWhatIsDerived(t *testing.T) {
	db := openSmall(t, t.TempDir())
	defer db.Close()
	fromTwo(t, db)
	c := catchUp(t, db, "all")
	before := rowsOf(t, db, c.Number)
	require.NotEmpty(t, before)
	src := testedit.SmallMap("http://one.example.org/")
	editor := testedit.New(src, "http://one.example.org/", 1)
	for range 10 {
		editor.Edit()
		publishMap(t, db, "one", src)
	}
	rename(t, db, "Renamed")
	load(t, db, "two", "Loaded again")
	require.NoError(t, db.RemoveSubscription(t.Context(), "two"))
	require.Equal(t, before, rowsOf(t, db, c.Number))
}

// What a source has changed is remembered where something is derived from it, and only until that has read it.
func TestSourcesRememberUntilAllHaveRead(t *testing.T) {
	db := openSmall(t, t.TempDir())
	defer db.Close()
	follow(t, db, "two", "urn:uuid:00000000-0000-0000-0000-000000000002", "Two")
	s, err := db.Subscription(t.Context(), "two")
	require.NoError(t, err)
	remembered := func() int { return len(rowsOf(t, db, s.Number, keys.TableBefore, keys.TableChanged, keys.TableVia)) }
	rename(t, db, "1")
	require.Zero(t, remembered(), "nobody wants it")

	create(t, db, store.Collection{Name: "all", DerivedFrom: []string{"two"}}, tmdm.New())
	create(t, db, store.Collection{Name: "late", DerivedFrom: []string{"two"}}, tmdm.New())
	catchUp(t, db, "all")
	catchUp(t, db, "late")
	var most int
	for i := range 40 {
		rename(t, db, fmt.Sprint("both ", i))
		catchUp(t, db, "all")
		catchUp(t, db, "late")
		require.Equal(t, []string{fmt.Sprint("both ", i)}, derivedNames(t, db))
		most = max(most, remembered())
	}
	require.Positive(t, most)
	require.LessOrEqual(t, most, 6, "of the last commit and of the one before")
	require.NoError(t, db.View(t.Context(), "all", func(v *store.View) error {
		e, err := v.Entry(v.Head)
		require.Equal(t, []string{"http://two.example.org/both 39"}, e.Via)
		return err
	}))

	for i := range 20 { // one of them does not read
		rename(t, db, fmt.Sprint("one ", i))
		catchUp(t, db, "all")
	}
	require.GreaterOrEqual(t, remembered(), 3*20)
	catchUp(t, db, "late")
	require.NoError(t, db.DeleteCollection(t.Context(), "all", ""))
	require.NoError(t, db.DeleteCollection(t.Context(), "late", ""))
	for range 5 {
		rename(t, db, "nobody reads")
	}
	require.Zero(t, remembered())
}

// A statement that its source has deleted is no longer derived, even if all its statements are read again at the same
// time, because a claim is rejected or restored.
func TestWhatIsDeletedWhileClaimsAreRejected(t *testing.T) {
	const si = "http://psi.example.org/other"
	change := func(t *testing.T, db *store.DB, f func(a *store.Applying, topic *fragment.Topic) error) {
		require.NoError(t, db.ApplyEntries(t.Context(), "two", func(a *store.Applying) error {
			return f(a, &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{si}}})
		}))
	}
	claim := rejections.OfName("http://psi.example.org/two", &fragment.Name{Value: "Two", Type: tmdm.PSIDefaultNameType})
	steps := map[string]func(t *testing.T, db *store.DB){
		"deleted": func(t *testing.T, db *store.DB) {
			change(t, db, func(a *store.Applying, topic *fragment.Topic) error { return a.DeleteTopic(topic) })
		},
		"rejected":    func(t *testing.T, db *store.DB) { require.NoError(t, db.Reject(t.Context(), "two", "because", claim)) },
		"shown again": func(t *testing.T, db *store.DB) { require.NoError(t, db.Unreject(t.Context(), "two", claim)) },
	}
	for _, order := range [][]string{{"deleted", "rejected"}, {"rejected", "deleted"}, {"rejected", "deleted", "shown again"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			db := openSmall(t, t.TempDir())
			defer db.Close()
			follow(t, db, "two", "urn:uuid:00000000-0000-0000-0000-000000000002", "Two")
			change(t, db, func(a *store.Applying, topic *fragment.Topic) error { return a.PutTopic(topic) })
			create(t, db, store.Collection{Name: "all", DerivedFrom: []string{"two"}}, tmdm.New())
			there := func() (is bool) {
				catchUp(t, db, "all")
				require.NoError(t, db.View(t.Context(), "all", func(v *store.View) error {
					topic, err := v.Source().Topic(si)
					is = topic != nil
					return err
				}))
				return is
			}
			require.True(t, there())
			for _, step := range order {
				steps[step](t, db)
			}
			require.False(t, there())
		})
	}
}

// whileOneIsEdited calls f with the stores of fromTwo, and with a function that publishes another version of "one".
func whileOneIsEdited(t *testing.T, f func(db *store.DB, edit func())) {
	for seed := range uint64(testenv.Rounds(5, 50)) {
		db := openSmall(t, t.TempDir())
		fromTwo(t, db)
		catchUp(t, db, "all")
		src := testedit.SmallMap("http://one.example.org/")
		editor := testedit.New(src, "http://one.example.org/", seed)
		f(db, func() {
			editor.Edit()
			publishMap(t, db, "one", src)
		})
		require.NoError(t, db.Close())
	}
}

// A collection reads the whole input if changes that it has not read are no longer stored.
func TestWhatIsForgottenIsReadAsAWhole(t *testing.T) {
	whileOneIsEdited(t, func(db *store.DB, edit func()) {
		read, behind := uint64(0), 0
		for i := range 12 {
			edit()
			if i%4 == 1 {
				_, err := db.TakeSnapshot(t.Context(), "one", 1)
				require.NoError(t, err)
				_, err = db.Prune(t.Context(), "one", store.Retention{Entries: 1})
				require.NoError(t, err)
			}
			if i%3 == 2 {
				catchUp(t, db, "all")
				requireDerived(t, db, []string{"one", "two"}, "edit %d", i)
				one, err := db.Latest(t.Context(), "one")
				require.NoError(t, err)
				if one.Horizon > read+1 {
					behind++
				}
				read = one.Head
			}
		}
		require.GreaterOrEqual(t, behind, 2, "what it has not read is forgotten")
		head := catchUp(t, db, "all").Head
		require.Equal(t, head, catchUp(t, db, "all").Head)
	})
}

// The changes of an input are applied some topics at a time, after any other changes.
func TestChangesAreTakenSomeAtATime(t *testing.T) {
	whileOneIsEdited(t, func(db *store.DB, edit func()) {
		left := false
		for i := range 30 {
			edit()
			if i%3 > 0 {
				continue
			}
			_, more, err := db.Derive(t.Context(), "all", 1, derive.OneCommit(t.Context()))
			require.NoError(t, err)
			left = left || more
		}
		require.True(t, left)
		catchUp(t, db, "all")
		requireDerived(t, db, []string{"one", "two"})
	})
}
