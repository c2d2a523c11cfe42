package past_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// id is a source with history, besides two without.
var id = keys.Source{Number: 7, Generation: 2}

// rowKeys are keys of the tables that are remembered, with all that is hard about them: locators that begin others,
// players that begin others, keys of associations with zero bytes and the largest ones.
func rowKeys() (all [][]byte) {
	for _, l := range []string{"a", "ab", "abc", "b", "b\x7e", "é"} {
		for _, table := range []byte("til") {
			all = append(all, id.LocatorKey(table, fragment.Ref(l)))
		}
		for _, part := range fragment.Parts {
			for _, b := range []byte{0, 1, 0xFF} {
				key := fragment.AssociationKey(bytes.Repeat([]byte{b}, len(fragment.AssociationKey{})))
				all = append(all, id.AssociationKey(fragment.Ref(l), part, key))
			}
		}
	}
	return all
}

func engines(t *testing.T) iter.Seq2[string, kv.Engine] {
	return func(yield func(string, kv.Engine) bool) {
		if testenv.OnPostgreSQL() {
			e, done := stores.InDatabase(t, t.TempDir())
			yield("a database", e)
			require.NoError(t, done())
			return
		}
		f, err := badger.Lock(t.TempDir(), false)
		require.NoError(t, err)
		b, err := f.Open(badger.Options{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer b.Close()
		_ = yield("in memory", memory.New()) && yield("asked at once", &kvtest.Asked{Engine: memory.New()}) && yield("a folder", b)
	}
}

// After each of any commits, the rows are those of a database that stopped there.
func TestRowsAreReadAsTheyWereAfterEachCommit(t *testing.T) {
	for name, engine := range engines(t) {
		t.Run(name, func(t *testing.T) {
			n := 0
			testenv.Check(t, 20, 400, func(r *rapid.T) {
				n++
				require.NoError(r, engine.DeletePrefix(t.Context(), nil))
				db := txn.New(engine, func() error { return nil })
				states := []map[string]string{{}}
				numbers := []uint64{0}
				all := rowKeys()
				number, last := uint64(0), uint64(0)
				for range rapid.IntRange(1, 30).Draw(r, "commits") {
					now := maps.Clone(states[len(states)-1])
					number = last + uint64(rapid.IntRange(0, 3).Draw(r, "step"))
					if last == 0 {
						number = max(number, 1)
					}
					require.NoError(r, db.Update(t.Context(), func(tx *txn.Tx) error { return change(r, tx, all, now, number, last) }))
					if number == last { // more of the same commit
						states[len(states)-1] = now
					} else {
						states, numbers = append(states, now), append(numbers, number)
					}
					last = number
				}
				require.NoError(r, db.View(t.Context(), func(tx *txn.Tx) error {
					for i := range numbers {
						reads(r, past.AsOf(tx.Reader(), id, numbers[i]), states[i], all)
						if i > 0 { // also for a commit without changes
							for seq := numbers[i-1] + 1; seq <= numbers[i]; seq++ {
								commit, err := past.CommitOf(tx.Reader(), id, seq)
								require.NoError(r, err)
								require.Equal(r, numbers[i], commit, "the commit of entry %d", seq)
							}
						}
						if i+1 < len(numbers) {
							reads(r, past.AsOf(tx.Reader(), id, numbers[i+1]-1), states[i], all)
						}
					}
					return nil
				}))
			})
			require.Positive(t, n)
		})
	}
}

// change changes some of the rows in a commit.
func change(r *rapid.T, tx *txn.Tx, all [][]byte, now map[string]string, number, last uint64) error {
	past.Record(tx, id, last, func() (uint64, error) { return number, nil })
	other := keys.Source{Number: id.Number, Generation: id.Generation + 1}
	if err := tx.Put(other.LocatorKey(keys.TableTopic, "a"), binary.BigEndian.AppendUint64(nil, number)); err != nil {
		return err
	}
	few := rapid.Bool().Draw(r, "few")
	for range rapid.IntRange(0, 12).Draw(r, "changes") {
		key := all[rapid.IntRange(0, len(all)-1).Draw(r, "key")]
		if few { // so that one row has many values
			key = all[0]
		}
		if rapid.IntRange(0, 2).Draw(r, "how") == 0 {
			delete(now, string(key))
			if err := tx.Delete(key); err != nil {
				return err
			}
			continue
		}
		value := rapid.StringMatching("[xyz]{0,2}").Draw(r, "value")
		now[string(key)] = value
		if err := tx.Put(key, []byte(value)); err != nil {
			return err
		}
	}
	return nil
}

// reads compares all that a reader answers with the rows that it ought to have.
func reads(r *rapid.T, reader kv.Reader, want map[string]string, all [][]byte) {
	inOrder := slices.Sorted(maps.Keys(want))
	for _, key := range all {
		value, err := reader.Get(key)
		require.NoError(r, err)
		text, there := want[string(key)]
		require.Equal(r, there, value != nil, "%q", key)
		require.Equal(r, text, string(value), "%q", key)
	}
	prefixes := [][]byte{id.PlayingPrefix("a", fragment.AsPlayer), id.PlayingPrefix("ab", fragment.AsType), append(id.LocatorKey(keys.TableAssociation, "a"), 0)}
	for _, table := range []byte(keys.PastTables) {
		prefixes = append(prefixes, id.Key(table), id.LocatorKey(table, "a"), id.LocatorKey(table, "none"))
	}
	prefixes = append(prefixes, all[0], all[len(all)-1])
	for _, prefix := range prefixes {
		froms := [][]byte{nil, {0}, {0xFF}, append(bytes.Clone(prefix), 0)}
		froms = append(froms, all[rapid.IntRange(0, len(all)-1).Draw(r, "from")])
		froms = append(froms, append(bytes.Clone(froms[len(froms)-1]), 0))
		for _, from := range froms {
			for _, reverse := range []bool{false, true} {
				var expected []string
				for _, key := range inOrder {
					if strings.HasPrefix(key, string(prefix)) && (from == nil || key == string(from) || reverse == (key < string(from))) {
						expected = append(expected, key+"="+want[key])
					}
				}
				if reverse {
					slices.Reverse(expected)
				}
				var got []string
				for row, err := range reader.Range(prefix, from, reverse) {
					require.NoError(r, err)
					got = append(got, string(row.Key)+"="+string(row.Value))
				}
				require.True(r, slices.Equal(expected, got), "from %q, reverse %v, prefix %q: %q, not %q", from, reverse, prefix, got, expected)
				for row, err := range reader.Range(prefix, from, reverse) { // a reader that ends the iteration
					require.NoError(r, err)
					require.Equal(r, expected[0], string(row.Key)+"="+string(row.Value))
					break
				}
			}
		}
	}
	if many, ok := reader.(kv.ManyReader); ok {
		answered := 0
		require.NoError(r, many.ReadMany(all, prefixes, 5, func(key, value []byte) {
			answered++
			text, there := want[string(key)]
			require.Equal(r, there, value != nil)
			require.Equal(r, text, string(value))
		}, func(prefix []byte, rows []kv.Row, more bool) {
			var expected, got []string
			for _, key := range inOrder {
				if strings.HasPrefix(key, string(prefix)) {
					expected = append(expected, key+"="+want[key])
				}
			}
			for _, row := range rows {
				got = append(got, string(row.Key)+"="+string(row.Value))
			}
			require.LessOrEqual(r, len(got), len(expected))
			require.True(r, slices.Equal(expected[:len(got)], got), "%q: %q", prefix, got)
			require.True(r, more || len(got) == len(expected))
		}))
		require.Positive(r, answered)
	}
}

// Rows without history are refused, and so are those of other sources.
func TestOtherRowsAreRefused(t *testing.T) {
	e := memory.New()
	now, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	other := keys.Source{Number: id.Number, Generation: id.Generation + 1}
	refused := [][]byte{{keys.TableTopic}, {keys.TableTopic, 0, 0, 0, 7}, other.Key(keys.TableTopic), keys.Meta("format"), nil}
	for _, table := range []byte(keys.SourceTables) {
		if !strings.ContainsRune(keys.PastTables, rune(table)) {
			refused = append(refused, id.Key(table), id.LocatorKey(table, "a"))
		}
	}
	for _, reader := range []kv.Reader{past.AsOf(now, id, 3), past.AsOf(asked(t, e), id, 3)} {
		for _, key := range refused {
			_, err := reader.Get(key)
			require.ErrorIs(t, err, past.ErrNotRemembered, "%q", key)
			err = nil
			for _, e := range reader.Range(key, nil, false) {
				err = e
			}
			require.ErrorIs(t, err, past.ErrNotRemembered, "%q", key)
			if many, ok := reader.(kv.ManyReader); ok {
				require.ErrorIs(t, many.ReadMany([][]byte{key}, nil, 1, nil, nil), past.ErrNotRemembered)
				require.ErrorIs(t, many.ReadMany(nil, [][]byte{key}, 1, nil, nil), past.ErrNotRemembered)
			}
		}
		require.False(t, reader.Version().Same(reader.Version()))
	}
}

func asked(t *testing.T, e kv.Engine) kv.Reader {
	r, err := (&kvtest.Asked{Engine: e}).Snapshot(t.Context())
	require.NoError(t, err)
	return r
}

// ended reads until its context has ended.
func TestReadingEndsWithItsContext(t *testing.T) {
	e := memory.New()
	db := txn.New(e, func() error { return nil })
	for n := range uint64(3) {
		require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
			past.Record(tx, id, n, func() (uint64, error) { return n + 1, nil })
			return tx.Put(id.LocatorKey(keys.TableTopic, "a"), fmt.Append(nil, n))
		}))
	}
	why := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	now, err := e.Snapshot(ctx)
	require.NoError(t, err)
	r := past.AsOf(now, id, 1)
	cancel(why)
	_, err = r.Get(id.LocatorKey(keys.TableTopic, "a"))
	require.ErrorIs(t, err, why)
	for _, err := range r.Range(id.Key(keys.TableTopic), nil, false) {
		require.ErrorIs(t, err, why)
	}
}

// counting counts the rows that are read.
type counting struct {
	kv.Reader
	rows int
}

func (c *counting) Range(prefix, from []byte, reverse bool) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		c.Reader.Range(prefix, from, reverse)(func(r kv.Row, err error) bool {
			c.rows++
			return yield(r, err)
		})
	}
}

// The former value of a row with many old values costs no more than that of a row with few, at any time of its history.
func TestManyOldValuesArePassedOver(t *testing.T) {
	e := memory.New()
	db := txn.New(e, func() error { return nil })
	changing, still := id.LocatorKey(keys.TableTopic, "b"), id.LocatorKey(keys.TableTopic, "c")
	const commits = 3000
	for n := range uint64(commits) {
		require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
			past.Record(tx, id, n, func() (uint64, error) { return n + 1, nil })
			return errors.Join(tx.Put(changing, fmt.Append(nil, n+1)), tx.Put(still, []byte("still")), tx.Put(id.LocatorKey(keys.TableTopic, "a"), fmt.Append(nil, n%2)))
		}))
	}
	now, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	for _, commit := range []uint64{1, 2, commits / 2, commits - 1, commits} {
		for _, reverse := range []bool{false, true} {
			c := &counting{Reader: now}
			var got []string
			for row, err := range past.AsOf(c, id, commit).Range(id.Key(keys.TableTopic), nil, reverse) {
				require.NoError(t, err)
				got = append(got, string(row.Value))
			}
			want := []string{fmt.Sprint((commit - 1) % 2), fmt.Sprint(commit), "still"}
			if reverse {
				slices.Reverse(want)
			}
			require.Equal(t, want, got, "after commit %d", commit)
			require.Less(t, c.rows, 60, "after commit %d", commit)
		}
		c := &counting{Reader: now}
		value, err := past.AsOf(c, id, commit).Get(changing)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(commit), string(value))
		require.LessOrEqual(t, c.rows, 1)
	}
	for more := true; more; {
		require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) (err error) { _, more, err = past.ForgetSome(tx, id, 0, commits-10); return err }))
	}
	left, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	for table, want := range map[byte]int{keys.TableBefore: 20, keys.TableChanged: 10} {
		n := 0
		for _, err := range left.Range(id.Key(table), nil, false) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, want, n, "what the last ten commits have changed")
	}
}

// A consumer continues if the history since its position is stored, and the source has the entries that it has read.
func TestCursorsGoOnWhereNothingIsLacking(t *testing.T) {
	at := func(generation uint32, commit uint64, part uint32) past.Cursor {
		return past.Cursor{Generation: generation, Position: past.Position{Commit: commit, Part: part}}
	}
	for what, c := range map[string]struct {
		cursor, head past.Cursor
		since        uint64
		goesOn       bool
	}{
		"at the head":              {at(1, 9, 2), at(1, 9, 2), 0, true},
		"behind it":                {at(1, 7, 0), at(1, 9, 2), 7, true},
		"in the last commit":       {at(1, 9, 1), at(1, 9, 2), 0, true},
		"at the beginning":         {at(1, 0, 0), at(1, 0, 0), 0, true},
		"what it lacks is gone":    {at(1, 7, 3), at(1, 9, 2), 8, false},
		"another generation":       {at(1, 9, 2), at(2, 9, 2), 0, false},
		"nothing was read":         {past.Cursor{}, at(1, 0, 0), 0, false},
		"the source has gone back": {at(1, 9, 3), at(1, 9, 2), 0, false},
	} {
		require.Equal(t, c.goesOn, c.cursor.GoesOn(c.since, c.head), what)
	}
}
