package store

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// What is kept is what was rendered before, with its digests; it stays when others change.
func TestFragmentsAreKept(t *testing.T) {
	db := openDB(t, t.TempDir())
	topics := collection(t, db, "m", 450).Topics // more than two commits
	read := func() (all []string) {
		view(t, db, "m", func(v *View) {
			for e, err := range v.Records() {
				require.NoError(t, err)
				for i, form := range Forms {
					var b bytes.Buffer
					if e.Stored {
						data, err := v.StoredFragment(&e, form)
						require.NoError(t, err)
						b.WriteString(unzip(t, data))
						require.Equal(t, rendered.DigestOf(b.Bytes()), e.Digests[i])
					} else {
						require.NoError(t, v.RenderFragment(&b, &e, form))
					}
					all = append(all, fmt.Sprint(e.Seq, form, b.String()))
				}
			}
		})
		return all
	}
	before := read()
	require.Len(t, before, 2*topics)
	n, err := db.MaterializeFragments(t.Context(), "m")
	require.NoError(t, err)
	require.Equal(t, topics, n)
	require.True(t, slices.Equal(before, read()), "the same fragments")
	view(t, db, "m", func(v *View) {
		for e := range v.Records() {
			require.True(t, e.kept())
		}
	})
	n, err = db.MaterializeFragments(t.Context(), "m")
	require.NoError(t, err)
	require.Zero(t, n, "there is nothing left to do")

	// Those of versions that knew no digests get them.
	require.NoError(t, db.rows.Update(t.Context(), func(x *txn.Tx) error {
		c, err := getCollection(x, "m")
		require.NoError(t, err)
		v := &View{Collection: *c, db: db, tx: x}
		e, err := v.entry(7)
		require.NoError(t, err)
		e.Digests = nil
		return x.PutJSON(keys.Sequence(keys.TableLog, c.Number, 7), e)
	}))
	n, err = db.MaterializeFragments(t.Context(), "m")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.True(t, slices.Equal(before, read()), "the same fragments")
	_, err = db.MaterializeFragments(t.Context(), "none")
	require.ErrorIs(t, err, ErrNotFound)
}
