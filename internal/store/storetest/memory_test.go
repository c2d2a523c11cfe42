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

// Memory is what the other backends are compared with. It has the records of the
// maps themselves: where a publisher writes what differs between two versions, and
// where a subscriber applies the fragments of that.
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
