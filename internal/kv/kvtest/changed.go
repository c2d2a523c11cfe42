package kvtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/testenv"
)

// Changed checks that the keyspaces which differ between two states are known, however commits of several engines on
// one store run beside each other. open opens them on a store without rows.
func Changed(t *testing.T, open func(t *testing.T) []kv.Engine) {
	const spaces = 6
	type state struct {
		version kv.Version
		rows    [spaces]string
	}
	for seed := range uint64(testenv.Rounds(9, 200)) {
		random := rand.New(rand.NewPCG(seed+testenv.Seed()*10000, 7))
		engines := open(t)
		put := func(e kv.Engine, space uint32, size int) error {
			return Update(t.Context(), e, func(r kv.Reader, w kv.Writer) error {
				before, err := r.Get([]byte(in(space, "x")))
				return errors.Join(err, w.Put([]byte(in(space, "x")), append(before[:len(before):len(before)], 'y')),
					writeMany(w, in(space, "r"), size, 1, "y"), w.Narrow(r, []uint32{space}))
			})
		}
		seen := make([][]state, len(engines))
		for step := range 12 {
			for i, e := range engines {
				at, s := fmt.Sprintf("seed %d, engine %d, step %d", seed, i, step), state{}
				if random.IntN(2) == 0 { // it is known before the rows are read
					v := version(t, e)
					for _, before := range seen[i] {
						require.NotNil(t, e.Changed(before.version, v), at)
					}
				}
				r := snapshot(t, e)
				s.version = r.Version()
				for space := range uint32(spaces) {
					value, err := r.Get([]byte(in(space, "x")))
					require.NoError(t, err)
					s.rows[space] = string(value)
				}
				r.Close()
				for _, before := range seen[i] {
					changed := e.Changed(before.version, s.version)
					require.NotNil(t, changed, at)
					require.Equal(t, before.version.Same(s.version), e.Changed(s.version, before.version) != nil, at)
					for space := range uint32(spaces) {
						require.Equal(t, s.rows[space] != before.rows[space], changed[space], at)
					}
				}
				seen[i] = append(seen[i], s)
			}
			var all sync.WaitGroup
			failed := make([]error, 3)
			for n, space := range random.Perm(spaces)[:1+random.IntN(3)] {
				e, size := engines[random.IntN(len(engines))], 1
				if random.IntN(20) == 0 {
					size = many
				}
				all.Go(func() { failed[n] = put(e, uint32(space), size) })
			}
			all.Wait()
			require.NoError(t, errors.Join(failed...))
		}
		for _, e := range engines {
			require.NoError(t, e.Close())
		}
	}
}
