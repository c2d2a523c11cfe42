package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

func TestWritesThatChangeNothingDoNotTouchTheDisk(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	subscribe(t, db, "s", mapOf(t, 3))
	before := committed(t, db)
	for name, write := range map[string]func() error{
		"a row as it is": func() error {
			return db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put(keys.Meta("format"), fmt.Append(nil, keys.FormatVersion)) })
		},
		"a row that comes and goes": func() error {
			return db.rows.Update(t.Context(), func(tx *txn.Tx) error { return errors.Join(tx.Put([]byte("x"), []byte("y")), tx.Delete([]byte("x"))) })
		},
		"a row that goes and comes": func() error {
			return db.rows.Update(t.Context(), func(tx *txn.Tx) error {
				return errors.Join(tx.Delete(keys.Meta("format")), tx.Put(keys.Meta("format"), fmt.Append(nil, keys.FormatVersion)))
			})
		},
		"deleting what is not there": func() error {
			return db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Delete([]byte("x")) })
		},
		"publishing nothing": func() error {
			_, err := db.Publish(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) { return &fragment.Change{}, nil })
			return err
		},
		"applying what is there": func() error {
			return db.ApplyEntries(t.Context(), "s", func(s *Applying) error {
				return errors.Join(s.DeleteTopic(named(ref(1), "first")), s.PutTopic(named(ref(1), "first")))
			})
		},
		"updating nothing": func() error { return db.UpdateSubscription(t.Context(), "s", func(*Subscription) {}) },
	} {
		require.NoError(t, write(), name)
		require.Equal(t, before, committed(t, db), name)
	}
	db = reopen(t, db)
	before = committed(t, db)
	require.Equal(t, kv.Version(1), before, "opening again commits nothing")
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put([]byte("x"), []byte("y")) }))
	require.Greater(t, committed(t, db), before, "the measure is right")
}

// A change is one commit: everything that it writes is in it, and nothing else is written.
func TestAChangeIsOneCommit(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 20)
	before := committed(t, db)
	var written Recording
	written.Record(db)
	publish(t, db, "m", rename(3, 9, "second"))
	require.Equal(t, before+1, committed(t, db))
	tables := map[byte]int{}
	for _, r := range written.last.changes {
		tables[r.Key[0]]++
	}
	require.Equal(t, map[byte]int{
		keys.TableCollection: 1, keys.TableTopic: 6, keys.TableKey: 6,
		keys.TableFragment: 12, // the first fragments of the six, and the new ones
		keys.TableLog:      12, // likewise: those of the first ones are marked as stored
	}, tables)
}

func TestAViewCannotWrite(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	a := &fragment.Association{Type: ref(0), Roles: []fragment.Role{{Type: ref(0), Player: ref(1)}}}
	view(t, db, "m", func(v *View) {
		s := v.Source().(merge.State)
		require.ErrorIs(t, s.PutTopic(named(ref(9), "new")), txn.ErrReadOnly)
		require.ErrorIs(t, s.DeleteTopic(named(ref(1), "")), txn.ErrReadOnly)
		require.ErrorIs(t, s.PutAssociation(a), txn.ErrReadOnly)
	})
}

// Damaged rows are errors, whatever asks for them.
func TestDamagedRowsAreErrors(t *testing.T) {
	a := &fragment.Association{Type: ref(0), Roles: []fragment.Role{{Type: ref(0), Player: ref(1)}, {Type: ref(0), Player: ref(2)}}}
	large := &fragment.Association{Type: ref(0)}
	for i := range records.InlinePlayers + 2 {
		large.Roles = append(large.Roles, fragment.Role{Type: ref(0), Player: ref(i)})
	}
	topic := named(ref(7), "identified")
	topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, "http://other")
	topic.SubjectLocators = append(topic.SubjectLocators, "http://locator")
	db := openDB(t, t.TempDir())
	src := mapOf(t, 6)
	require.NoError(t, errors.Join(src.PutAssociation(a), src.PutAssociation(large), src.PutTopic(topic)))
	subscribe(t, db, "s", src)
	s := subscription(t, db, "s")
	notKept := errors.New("the damage is not kept")
	for _, table := range []byte(keys.RecordTables) {
		for _, damage := range [][]byte{{}, {0}, {1}, {2}, {0xFF, 0xFF}, bytes.Repeat([]byte{0xFF}, 20), []byte("http://example.org/")} {
			require.ErrorIs(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
				damaged := 0
				for r, err := range tx.Scan([]byte{table}, nil) {
					require.NoError(t, err)
					require.NoError(t, tx.Put(r.Key, damage))
					damaged++
				}
				require.Positive(t, damaged, "table %c has rows", table)
				err := askEverything(records.Of(tx, s.Source(s.State)), topic, a, large)
				if table != keys.TableIdentifier && table != keys.TableLocator { // a reference that leads nowhere finds nothing
					require.Error(t, err, "table %c, damage %q", table, damage)
				}
				return notKept
			}), notKept)
		}
	}
	subscribedTo(t, db, func(_ Subscription, now fragment.Source) {
		require.NoError(t, askEverything(now.(records.State), topic))
		require.Equal(t, all(t, src), all(t, now.(merge.State)))
	})
}

// askEverything asks a state everything about some records, and then, where it
// can be changed, writes and deletes them. It returns the errors.
func askEverything(s records.State, topic *fragment.Topic, associations ...*fragment.Association) error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	for i := range 8 {
		_, err := s.Topic(ref(i))
		note(err)
		for _, part := range fragment.Parts {
			for _, err := range s.AssociationsOf(ref(i), part) {
				note(err)
			}
		}
		_, err = s.Mentions(ref(i))
		note(err)
	}
	for _, si := range topic.SubjectIdentifiers {
		_, err := s.Topic(si)
		note(err)
	}
	for _, sl := range topic.SubjectLocators {
		_, err := s.TopicBySubjectLocator(sl)
		note(err)
	}
	for _, err := range s.Topics() {
		note(err)
	}
	for _, err := range s.Associations() {
		note(err)
	}
	if len(associations) > 0 {
		for _, a := range associations {
			note(s.DeleteAssociation(a))
		}
		note(s.PutTopic(topic))
		note(s.DeleteTopic(topic))
	}
	return errors.Join(errs...)
}
