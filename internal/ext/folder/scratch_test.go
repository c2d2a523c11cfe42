package folder_test

import (
	"testing"

	"github.com/tmshare/tmshare/internal/follow"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// usualMemory is the memory that the programs have for the results of a read.
var usualMemory = follow.ScratchMemory

// The results of reads go through files in all tests, except very small ones.
func init() { follow.ScratchMemory = 2 << 10 }

// useUsualMemory lets a benchmark have as much memory for what looks bring as the programs have.
func useUsualMemory(b *testing.B) {
	little := follow.ScratchMemory
	follow.ScratchMemory = usualMemory
	b.Cleanup(func() { follow.ScratchMemory = little })
}
