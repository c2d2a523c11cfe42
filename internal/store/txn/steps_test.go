package txn

import (
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/testenv"
)

// The keyspaces that differ between two states are known if they are, however own commits run beside each other, and
// never if another process has committed between the states.
func TestChangedKeyspaces(t *testing.T) {
	key := func(space byte) []byte { return []byte{0, 0, 0, space, 'x'} }
	for seed := range uint64(testenv.Rounds(100, 2000)) {
		seed += testenv.Seed() * 10000
		random := rand.New(rand.NewPCG(seed, 7))
		engine := memory.New()
		this, other := New(engine, always), New(engine, always)
		put := func(db *DB, space byte) {
			require.NoError(t, db.UpdateOf(t.Context(), string(space), func(tx *Tx) error {
				tx.DependOn(uint32(space))
				before, err := tx.Get(key(space))
				require.NoError(t, err)
				if space == 15 { // without the row before
					return tx.PutUnread(key(space), append(before, 'y'))
				}
				return tx.Put(key(space), append(before[:len(before):len(before)], 'y'))
			}))
		}
		type state struct {
			version kv.Version
			rows    map[byte]string
			others  int // how often other processes have committed
		}
		states, others := []state{}, 0
		for range 12 {
			s := state{others: others, rows: map[byte]string{}}
			require.NoError(t, this.View(t.Context(), func(tx *Tx) error {
				s.version = tx.Version()
				for space := byte(10); space < 16; space++ {
					value, err := tx.Get(key(space))
					require.NoError(t, err)
					s.rows[space] = string(value)
				}
				return nil
			}))
			for i, before := range states {
				spaces := this.Changed(before.version, s.version)
				require.Equal(t, before.others == s.others, spaces != nil, "seed %d, states %d and %d", seed, i, len(states))
				differing := map[uint32]bool{}
				for space := range s.rows {
					if s.rows[space] != before.rows[space] {
						differing[uint32(space)] = true
					}
				}
				if spaces != nil {
					require.True(t, maps.Equal(differing, spaces), "seed %d: %v, not %v", seed, spaces, differing)
					require.Equal(t, before.version.Same(s.version), this.Changed(s.version, before.version) != nil)
				}
			}
			states = append(states, s)
			switch n := random.IntN(10); {
			case n == 0:
				put(other, byte(10+random.IntN(6)))
				others++
			case n < 4:
				var all sync.WaitGroup
				for _, space := range random.Perm(6)[:3] {
					all.Go(func() { put(this, byte(10+space)) })
				}
				all.Wait()
			default:
				put(this, byte(10+random.IntN(6)))
			}
		}
		require.True(t, this.Close())
		require.True(t, other.Close())
		require.NoError(t, engine.Close())
	}
}
