package store

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// merkleTreeHash is that of RFC 6962 §2.1, word for word.
func merkleTreeHash(leaves [][]byte) [sha256.Size]byte {
	switch n := len(leaves); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, leaves[0]...))
	default:
		k := 1
		for 2*k < n {
			k *= 2
		}
		left, right := merkleTreeHash(leaves[:k]), merkleTreeHash(leaves[k:])
		return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
	}
}

// sign notes the leaves that the tree gains where the log is signed now: that of an entry which is not there any more
// has no bytes.
func (h *history) sign() {
	last := h.last()
	for i := len(h.leaves); i < len(h.log); i++ {
		e := &h.log[i]
		if e.Seq <= h.horizon && last[e.TopicSI].Seq != e.Seq {
			h.leaves = append(h.leaves, nil)
			continue
		}
		h.leaves = append(h.leaves, e.Leaf())
	}
}

// checkTree compares the tree of the log, and proves that the log continues each of its earlier checkpoints.
func (h *history) checkTree(t tester, v *View) {
	t.Helper()
	if v.Sign == "" {
		return
	}
	h.sign()
	now, err := v.Checkpoint()
	require.NoError(t, err)
	require.Equal(t, &checkpoint.Checkpoint{Origin: sp, Size: int64(v.Head), Root: merkleTreeHash(h.leaves), Digest: now.Digest}, now)
	for _, earlier := range h.checkpoints {
		proof, err := v.ProveLog(earlier.Size, now.Size)
		require.NoError(t, err)
		require.NoError(t, now.Follows(earlier, proof))
	}
	if n := len(h.checkpoints); n == 0 || h.checkpoints[n-1].Size < now.Size {
		h.checkpoints = append(h.checkpoints, now)
	}
	_, err = v.ProveLog(1, now.Size+1)
	require.ErrorIs(t, err, ErrNotFound)
}

// A log that is signed from its beginning, or later, or not for a while, is one tree.
func TestTreeOfTheLog(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := Collection{Name: "m", SP: sp, Settings: Settings{Sign: "/key"}}
	_, err := db.CreateCollection(t.Context(), c, mapOf(t, 5), nil)
	require.NoError(t, err)
	h := &history{cut: cut{size: 100}}
	next := func() {
		t.Helper()
		view(t, db, "m", func(v *View) {
			h.read(t, v)
			h.checkTree(t, v)
		})
	}
	next()
	publish(t, db, "m", rename(1, 4, "second"))
	next()
	db = reopen(t, db)
	publish(t, db, "m", deletion(2, 3))
	next()
	set(t, db, "m", func(s *Settings) { s.Sign = "" })
	publish(t, db, "m", rename(1, 2, "unsigned"))
	publish(t, db, "m", rename(3, 4, "unsigned"))
	view(t, db, "m", func(v *View) {
		require.Less(t, v.Hashed, v.Head)
		h.read(t, v)
	})
	set(t, db, "m", func(s *Settings) { s.Sign = "/key" })
	next()
	require.Greater(t, len(h.checkpoints), 3)
	require.Equal(t, digestNow(t, db, "m"), h.checkpoints[len(h.checkpoints)-1].Digest)
}

// All writers of an entry add its leaf to the tree: loading, publishing, and republishing.
// (TestSignedSourceThatOffersRecordsOtherwise of package client checks replicas.)
func TestEachWriterGivesTheTreeItsLeaves(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := Collection{Name: "m", SP: sp, Settings: Settings{Sign: "/key"}}
	_, err := db.CreateCollection(t.Context(), c, &merge.Memory{}, nil)
	require.NoError(t, err)
	h := &history{cut: cut{size: 100}}
	whole := func() {
		t.Helper()
		view(t, db, "m", func(v *View) {
			require.Equal(t, v.Head, v.Hashed)
			h.read(t, v)
			h.checkTree(t, v)
		})
		require.Empty(t, checked(t, db, false))
	}
	_, err = db.FillCollection(t.Context(), "m", mapOf(t, 70))
	require.NoError(t, err)
	whole()
	publish(t, db, "m", rename(1, 4, "second"))
	whole()
	for _, forms := range [][]xtm.Version{onlyOld, onlyNew} {
		offer(t, db, forms)
		require.Positive(t, restate(t, db))
		whole()
		publish(t, db, "m", rename(2, 9, fmt.Sprint("after ", forms)))
		whole()
	}
}

// A repair completes a tree without the leaves of the last entries, and continues the signed one. A publication also
// completes it.
func TestTreeThatLacksLeaves(t *testing.T) {
	was := hashesAtOnce
	hashesAtOnce = 20
	t.Cleanup(func() { hashesAtOnce = was })
	for name, mend := range map[string]func(*DB){
		"repair": func(db *DB) {
			found := checked(t, db, true)
			require.Len(t, found, 1)
			require.True(t, found[0].Repaired)
		},
		"publishing": func(db *DB) { publish(t, db, "m", rename(1, 4, "third")) },
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, t.TempDir())
			c := collectionOf(t, db, "m", mapOf(t, 50))
			set(t, db, "m", func(s *Settings) { s.Sign = "/key" })
			var signed *checkpoint.Checkpoint
			view(t, db, "m", func(v *View) {
				var err error
				signed, err = v.Checkpoint()
				require.NoError(t, err)
			})
			publish(t, db, "m", rename(1, 45, "second"))
			cutTree(t, db, c.Head)
			found := checked(t, db, false)
			require.Len(t, found, 1)
			require.Contains(t, found[0].What, fmt.Sprintf("the tree of the log lacks the leaves of 44 entries, from entry %d on", c.Head+1))
			require.True(t, found[0].Repairable)
			mend(db)
			require.Empty(t, checked(t, db, false))
			view(t, db, "m", func(v *View) {
				require.Equal(t, v.Head, v.Hashed)
				h := &history{cut: cut{size: 100}, checkpoints: []*checkpoint.Checkpoint{signed}}
				h.read(t, v)
				h.checkTree(t, v)
			})
		})
	}
}

// cutTree takes away from the tree of a log all leaves but the first n.
func cutTree(t *testing.T, db *DB, n uint64) {
	require.NoError(t, db.rows.Update(t.Context(), func(x *txn.Tx) error {
		c, err := collections.Get(x, "m")
		require.NoError(t, err)
		for i := tlog.StoredHashIndex(0, int64(n)); i < tlog.StoredHashIndex(0, int64(c.Hashed)); i++ {
			require.NoError(t, x.Delete(c.Log().Numbered(keys.TableLogHash, uint64(i))))
		}
		c.Hashed = n
		return collections.Put(x, c)
	}))
}

// A tree that was signed with misplaced leaves cannot be repaired: one with the right leaves does not continue it.
func TestTreeThatWasSignedWithLeavesInWrongPlaces(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collectionOf(t, db, "m", mapOf(t, 5))
	set(t, db, "m", func(s *Settings) { s.Sign = "/key" })
	publish(t, db, "m", rename(1, 4, "second"))
	cutTree(t, db, c.Head)
	require.NoError(t, db.rows.Update(t.Context(), func(x *txn.Tx) error {
		now, err := collections.Get(x, "m")
		require.NoError(t, err)
		e, err := (&View{Collection: *now, db: db, tx: x}).Entry(now.Head)
		require.NoError(t, err)
		w := collections.LogWriter{LogTree: collections.LogTree{Tx: x, Log: now.Log()}, Put: x.Put}
		require.NoError(t, w.Append(now.Hashed, e.Leaf()))
		now.Hashed++
		return collections.Put(x, now)
	}))
	for _, repair := range []bool{false, true} {
		found := checked(t, db, repair)
		require.NotEmpty(t, found)
		require.Contains(t, found[0].What, fmt.Sprintf("the tree of the log is another one than that of the entries, at entry %d", c.Head+1))
		require.False(t, found[0].Repairable)
		for _, advice := range []string{"restore", "import", "tmshare-client trust NAME --accept"} {
			require.Contains(t, found[0].Remedy, advice)
		}
	}
}

func digestNow(t *testing.T, db *DB, name string) (digest string) {
	view(t, db, name, func(v *View) { digest = digestOf(t, v.Source()) })
	return digest
}

// A large log gets its tree commit by commit; the first publication in an empty collection is in it.
func TestTreeOfALargeLog(t *testing.T) {
	db := openDB(t, t.TempDir())
	was := hashesAtOnce
	hashesAtOnce = 20
	t.Cleanup(func() { hashesAtOnce = was })
	for name, signed := range map[string]bool{"signed": true, "later": false} {
		c := Collection{Name: name, SP: sp}
		if signed {
			c.Sign = "/key"
		}
		nothing := &merge.Memory{}
		_, err := db.CreateCollection(t.Context(), c, nothing, nil)
		require.NoError(t, err)
		_, err = db.FillCollection(t.Context(), name, mapOf(t, 90))
		require.NoError(t, err)
		set(t, db, name, func(s *Settings) { s.Sign = "/key" })
		view(t, db, name, func(v *View) {
			h := &history{cut: cut{size: 100}}
			h.read(t, v)
			require.Len(t, h.log, int(v.Topics))
			h.checkTree(t, v)
		})
	}
}

// A store with lost hashes of a tree reports it, and signs nothing else instead.
func TestTreeThatIsDamaged(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collectionOf(t, db, "m", mapOf(t, 5))
	set(t, db, "m", func(s *Settings) { s.Sign = "/key" })
	require.Empty(t, checked(t, db, false))
	change := func(index int64, hash []byte) {
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
			return tx.Put(c.Log().Numbered(keys.TableLogHash, uint64(index)), hash)
		}))
	}
	index := tlog.StoredHashIndex(2, 0)
	was := rowAt(t, db, c.Log().Numbered(keys.TableLogHash, uint64(index)))
	change(index, make([]byte, 32))
	require.Contains(t, checked(t, db, false)[0].What, "tree of the log")
	change(index, nil)
	view(t, db, "m", func(v *View) {
		_, err := v.Checkpoint()
		require.ErrorIs(t, err, collections.ErrHashMissing)
	})
	change(index, was)
	require.Empty(t, checked(t, db, false))
	change(tlog.StoredHashIndex(0, 4), make([]byte, 32))
	require.Contains(t, checked(t, db, false)[0].What, "tree of the log")
}
