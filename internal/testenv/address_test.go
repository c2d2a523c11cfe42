package testenv_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// An address without a listener is not given out twice.
func TestAddressesAreGivenOutOnce(t *testing.T) {
	given := map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				address, err := testenv.FreeAddress()
				mu.Lock()
				require.NoError(t, err)
				require.False(t, given[address], address)
				given[address] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
}
