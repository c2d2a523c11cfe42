package storetest_test

import (
	"testing"

	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/merge"
)

// memory is merge.Memory as a backend.
type memory struct{ state merge.Memory }

func (m *memory) Update(f func(merge.State) error) error { return f(&m.state) }

func openMemory(*testing.T) storetest.Backend { return &memory{} }

func TestMemoryKeepsTheRules(t *testing.T) { storetest.Run(t, openMemory) }

func TestMemoryAgreesWithItself(t *testing.T) { storetest.Histories(t, openMemory, 10, 1) }
