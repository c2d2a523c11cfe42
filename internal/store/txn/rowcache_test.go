package txn

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an update remembers of the database must not hide what it changes itself.
func TestUpdatesSeeTheirOwnChangesInWhatTheyHaveReadBefore(t *testing.T) {
	for _, n := range []int{0, 3, FewRows - 1, FewRows, FewRows + 1, 3 * FewRows} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			db := open(t)
			key := func(i int) []byte { return fmt.Appendf(nil, "mtest-%04d", i) }
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
				assert.Equal(t, n, count(tx))
				absent, err := tx.Get(key(1))
				assert.Nil(t, absent)
				put := tx.Put(key(1), []byte{2})
				there, err2 := tx.Get(key(1))
				assert.Equal(t, []byte{2}, there)
				assert.Equal(t, n+1, count(tx))
				deleted := tx.Delete(key(0))
				assert.Equal(t, max(n, 1), count(tx), "with the new one and without the first")
				return errors.Join(err, err2, put, deleted)
			}))
			require.NoError(t, db.View(t.Context(), func(tx *Tx) error {
				assert.Equal(t, max(n, 1), count(tx))
				return nil
			}))
		})
	}
}
