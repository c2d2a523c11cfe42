package storetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

// memory is merge.Memory as a backend.
type memory struct{ state merge.Memory }

func (m *memory) Update(f func(merge.State) error) error { return f(&m.state) }

func openMemory(*testing.T) storetest.Backend { return &memory{} }

func TestMemoryKeepsTheRules(t *testing.T) { storetest.Run(t, openMemory) }

// Memory is the reference for the other backends. It has the records of the maps themselves: when a publisher writes
// the difference of two versions, and when a subscriber applies its fragments.
func TestMemoryHasTheRecordsOfTheMaps(t *testing.T) {
	for n := range uint64(testenv.Rounds(10, 50)) {
		seed := testenv.Seed() + n
		editor := storetest.NewEditor(t, seed)
		var publisher, subscriber merge.Memory
		first := editor.Version(nil)
		require.NoError(t, publisher.Load(first))
		require.NoError(t, subscriber.Load(first))
		for version := range 10 {
			next := editor.Version(&publisher)
			change, err := fragment.Diff(t.Context(), &publisher, next)
			require.NoError(t, err)
			storetest.Write(t, &publisher, change)
			for _, f := range storetest.Fragments(t, &publisher, change) {
				require.NoError(t, merge.Apply(&subscriber, f))
			}
			want := storetest.Dump(t, next)
			require.Equal(t, want, storetest.Dump(t, &publisher), "seed %d, version %d: %q", seed, version, editor.Edits)
			require.Equal(t, want, storetest.Dump(t, &subscriber), "seed %d, version %d: %q", seed, version, editor.Edits)
		}
	}
}
