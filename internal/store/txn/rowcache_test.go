package txn

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/testenv"
)

// openAsked returns a database over an engine of which each question takes its time.
func openAsked() (*DB, *kvtest.Asked) {
	e := &kvtest.Asked{Engine: memory.New()}
	return New(e, func() error { return nil }), e
}

// An update's cache of rows must not hide its own changes.
func TestUpdatesSeeTheirOwnChangesInWhatTheyHaveReadBefore(t *testing.T) {
	key := func(i int) []byte { return fmt.Appendf(nil, "mtest-%04d", i) }
	nothing := func(*Tx) error { return nil }
	expect := func(tx *Tx) error {
		return tx.Expect([][]byte{key(0), key(1), key(2), key(0)}, [][]byte{[]byte("mtest-"), []byte("mtest-0"), []byte("none")})
	}
	for name, expected := range map[string]func(*Tx) error{"read": nothing, "expected": expect} {
		for _, n := range []int{0, 3, FewRows - 1, FewRows, FewRows + 1, 3 * FewRows} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				db := open(t)
				if name == "expected" {
					db, _ = openAsked()
				}
				count := func(tx *Tx) (rows int) {
					for _, err := range tx.Scan([]byte("mtest-"), nil) {
						require.NoError(t, err)
						rows++
					}
					return rows
				}
				require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
					for i := range n {
						require.NoError(t, tx.Put(key(2*i), []byte{1}))
					}
					return nil
				}))
				require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
					before := expected(tx)
					assert.Equal(t, n, count(tx))
					absent, err := tx.Get(key(1))
					assert.Nil(t, absent)
					put := tx.Put(key(1), []byte{2})
					again := expected(tx)
					has, err2 := tx.Get(key(1))
					assert.Equal(t, []byte{2}, has)
					assert.Equal(t, n+1, count(tx))
					deleted := tx.Delete(key(0))
					assert.Equal(t, max(n, 1), count(tx), "with the new one and without the first")
					return errors.Join(before, again, err, err2, put, deleted)
				}))
				require.NoError(t, db.View(t.Context(), func(tx *Tx) error {
					assert.NoError(t, expected(tx))
					assert.Equal(t, max(n, 1), count(tx))
					return nil
				}))
			})
		}
	}
}

// For any expected rows, an update reads the present ones.
func TestWhatIsExpectedIsWhatIsThere(t *testing.T) {
	db, e := openAsked()
	value := func(i int) string { return strings.Repeat(fmt.Sprint(i, " "), i%400) }
	key := func(i int) []byte { return fmt.Appendf(nil, "m%03d/%02d", i/100, i%100) }
	const n = 20_000
	var there []int
	require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
		for i := range n {
			if i%3 > 0 {
				there = append(there, i)
				require.NoError(t, tx.Put(key(i), []byte(value(i))))
			}
		}
		return nil
	}))
	rng := rand.New(rand.NewPCG(uint64(testenv.Seed()), 1))
	require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
		tx.reads.most = 300_000 // much is forgotten
		for range testenv.Rounds(300, 3000) {
			var keys, prefixes [][]byte
			for range rng.IntN(60) {
				keys = append(keys, key(rng.IntN(n)))
				prefixes = append(prefixes, key(rng.IntN(n))[:rng.IntN(5)+1])
			}
			before := e.Questions.Load()
			following := []byte("/0123456789\xff")[rng.IntN(12):]
			require.NoError(t, tx.Expect(keys, prefixes, following...))
			require.LessOrEqual(t, e.Questions.Load()-before, int64(1))
			for range 5 {
				i := rng.IntN(n)
				got, err := tx.Get(key(i))
				require.NoError(t, err)
				if i%3 > 0 {
					require.NotNil(t, got)
					require.Equal(t, value(i), string(got))
				} else {
					require.Nil(t, got)
				}
			}
			for _, prefix := range prefixes[:min(len(prefixes), 3)] {
				if rng.IntN(3) > 0 {
					prefix = append(bytes.Clone(prefix), following[rng.IntN(len(following))])
				}
				i, n := 0, 0
				next := func() bool {
					for ; i < len(there) && !bytes.HasPrefix(key(there[i]), prefix); i++ {
					}
					return i < len(there)
				}
				for r, err := range tx.Scan(prefix, nil) {
					require.NoError(t, err)
					require.True(t, next(), "%q", r.Key)
					require.Equal(t, string(key(there[i])), string(r.Key), "%s", prefix)
					require.Equal(t, value(there[i]), string(r.Value))
					i++
					if n++; n == 3*FewRows {
						break
					}
				}
				require.True(t, n == 3*FewRows || !next(), "%q lacks rows", prefix)
			}
		}
		return nil
	}))
}

// A commit reads the former rows in one request, if they are few.
func TestCommitsAskFewQuestions(t *testing.T) {
	db, e := openAsked()
	for _, n := range []int{1, 10, AtOnce, 5 * AtOnce} {
		before := e.Questions.Load()
		require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
			for i := range n {
				require.NoError(t, tx.Put(fmt.Appendf(nil, "m%06d", i), fmt.Append(nil, n)))
			}
			return nil
		}))
		assert.LessOrEqual(t, int(e.Questions.Load()-before), 3+n/AtOnce, "%d rows: the state, what was there, the commit", n)
	}
}
