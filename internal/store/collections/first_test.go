package collections_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
)

func openRows(t testing.TB) *txn.DB {
	t.Helper()
	engine := memory.New()
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return txn.New(engine, func() error { return nil })
}

// load begins the log of a collection.
func load(t require.TestingT, db *txn.DB, c *collections.Collection, now time.Time, refs []fragment.Ref) {
	require.NoError(t, db.Update(context.Background(), func(tx *txn.Tx) error {
		log := &collections.Appender{
			C: c, Put: tx.Put, Author: "author", Note: "note",
			Now: func() time.Time { return now }, Run: func() uint32 { return 7 }, Digest: func() (string, error) { return "digest", nil },
		}
		return log.Load(len(refs), func(yield func(fragment.Ref, error) bool) {
			for _, si := range refs {
				if !yield(si, nil) {
					return
				}
			}
		})
	}))
}

// For any topics at the beginning of a log, and any removals: present entries are found, one by one and in a row, and
// no others are.
func TestFirstEntriesAreFound(t *testing.T) {
	db := openRows(t)
	number := uint32(keys.FirstNumber)
	testenv.Check(t, 100, 1000, func(t *rapid.T) {
		number++
		c := &collections.Collection{Name: "m", Number: number, Updated: time.Unix(1000, 0).UTC()}
		long := rapid.SampledFrom([]int{0, 0, 10, 2000}).Draw(t, "length")
		n := rapid.IntRange(0, 600).Draw(t, "topics")
		refs := make([]fragment.Ref, n)
		for i := range refs {
			refs[i] = fragment.Ref(fmt.Sprintf("http://%c.example.org/%s%d", 'a'+rune(i%3), strings.Repeat(string(rune('a'+i%26)), long), i))
		}
		if rapid.Bool().Draw(t, "in order") {
			slices.Sort(refs)
		}
		now := time.Unix(rapid.Int64Range(0, 2000).Draw(t, "now"), 0).UTC()
		load(t, db, c, now, refs)
		require.EqualValues(t, n, c.Head)
		if n == 0 {
			require.Nil(t, c.Beginning)
			return
		}
		first := c.Updated.Add(-time.Duration(n-1) * time.Microsecond)
		require.True(t, first.After(time.Unix(1000, 0)), "the first is later than what was before")
		if now.Unix() > 1000 {
			require.Equal(t, now.Add(-time.Microsecond), c.Updated, "the last is not later than the clock")
		}
		want := map[uint64]collections.Entry{}
		for i, si := range refs {
			want[uint64(i+1)] = collections.Entry{
				Seq: uint64(i + 1), Run: 7, Updated: first.Add(time.Duration(i) * time.Microsecond), TopicSI: si, Author: "author", Note: "note", Untitled: true,
			}
		}
		last := want[c.Head]
		last.Digest = "digest"
		want[c.Head] = last
		check := func() {
			t.Helper()
			require.NoError(t, db.View(context.Background(), func(tx *txn.Tx) error {
				in := slices.Sorted(maps.Keys(want))
				from := rapid.Uint64Range(1, c.Head+1).Draw(t, "from")
				var kept, rest []uint64
				for e, err := range collections.Kept(tx, c, from) {
					require.NoError(t, err)
					require.Equal(t, want[e.Seq], e)
					kept = append(kept, e.Seq)
				}
				before := uint64(0)
				for _, seq := range in {
					if seq >= from {
						rest = append(rest, seq)
					} else {
						before = seq
					}
				}
				require.Equal(t, rest, kept)
				got, err := collections.Before(tx, c, from)
				require.NoError(t, err)
				require.Equal(t, before, got)
				for seq := range c.Head + 2 {
					e, err := collections.At(tx, c, seq)
					require.NoError(t, err)
					if w, ok := want[seq]; ok {
						require.Equal(t, &w, e)
					} else {
						require.Nil(t, e)
					}
				}
				return nil
			}))
		}
		check()
		superseded := map[fragment.Ref]bool{}
		for c.Horizon < c.Head && rapid.Bool().Draw(t, "prune") {
			to := rapid.Uint64Range(c.Horizon+1, c.Head).Draw(t, "to")
			share := rapid.IntRange(0, 10).Draw(t, "superseded")
			require.NoError(t, db.Update(context.Background(), func(tx *txn.Tx) error {
				for i, si := range refs[c.Horizon:to] {
					if i%10 < share {
						superseded[si] = true
						require.NoError(t, tx.Put(collections.TopicKey(c, si), collections.LastRow(c.Head+uint64(i)+1)))
						delete(want, c.Horizon+uint64(i)+1)
					}
				}
				return collections.Prune(tx, c, to)
			}))
			require.Equal(t, to, c.Horizon)
			require.Equal(t, first.Add(time.Duration(to-1)*time.Microsecond), c.HorizonTime)
			check()
		}
		require.NoError(t, db.View(context.Background(), func(tx *txn.Tx) error {
			for _, si := range refs {
				e, err := collections.Last(tx, c, fragment.Key(si))
				if superseded[si] {
					require.ErrorIs(t, err, txn.ErrNotFound, "the entry to which the key leads was never written here")
					continue
				}
				require.NoError(t, err)
				require.Equal(t, si, e.TopicSI)
			}
			for _, key := range []string{"", "x", strings.ToUpper(fragment.Key(refs[0])), fragment.Key(refs[0]) + "a", fragment.Key(refs[0])[:25] + "\n"} {
				e, err := collections.Last(tx, c, key)
				require.NoError(t, err)
				require.Nil(t, e, "%q is no key", key)
			}
			bytes := 0
			for r, err := range tx.Scan(c.Log().Key(keys.TableFirst), nil) {
				require.NoError(t, err)
				require.Less(t, len(r.Value), 1<<17)
				bytes += len(r.Value)
			}
			if len(want) == 0 {
				require.Zero(t, bytes, "nothing stays of blocks without entries")
			}
			return nil
		}))
	})
}

// Each read of a damaged block is an error, and never another entry.
func TestDamagedBlocksAreErrors(t *testing.T) {
	db := openRows(t)
	c := &collections.Collection{Name: "m", Number: keys.FirstNumber, Updated: time.Unix(0, 0).UTC()}
	var refs []fragment.Ref
	for i := range 20 {
		refs = append(refs, fragment.Ref(fmt.Sprint("http://example.org/", i)))
	}
	load(t, db, c, time.Unix(10, 0), refs)
	key := c.Log().Numbered(keys.TableFirst, 1)
	var whole []byte
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) (err error) { whole, err = tx.Get(key); return err }))
	for name, value := range map[string][]byte{
		"empty": {}, "cut off": whole[:len(whole)-1], "longer": append(slices.Clone(whole), 0), "for none": {0}, "for too many": {0xFF, 0xFF, 3}, "for more than there are": {42},
		"no bits": {41}, "shares too much": {40, 9, 1, 'x'}, "an empty one": {40, 0, 0},
	} {
		require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put(key, value) }))
		require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
			_, err := collections.At(tx, c, c.Head)
			if name != "longer" { // it is found before the end
				require.ErrorIs(t, err, kv.ErrDamaged, name)
			}
			var failed error
			for _, err := range collections.Kept(tx, c, 1) {
				failed = errors.Join(failed, err)
			}
			require.ErrorIs(t, failed, kv.ErrDamaged, name)
			_, err = collections.Before(tx, c, c.Head+1)
			require.ErrorIs(t, err, kv.ErrDamaged, name)
			return nil
		}))
	}
}

// A source that fails ends the load with its error.
func TestALoadOfALogFails(t *testing.T) {
	db := openRows(t)
	c := &collections.Collection{Name: "m", Number: keys.FirstNumber}
	broken := errors.New("broken")
	var topics iter.Seq2[fragment.Ref, error] = func(yield func(fragment.Ref, error) bool) {
		_ = yield("http://example.org/1", nil) && yield("", broken)
	}
	require.ErrorIs(t, db.Update(t.Context(), func(tx *txn.Tx) error {
		log := &collections.Appender{C: c, Put: tx.Put, Now: time.Now, Run: func() uint32 { return 1 }}
		return log.Load(2, topics)
	}), broken)
}
