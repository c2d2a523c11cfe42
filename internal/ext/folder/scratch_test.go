package folder_test

import (
	"testing"

	"github.com/tmshare/tmshare/internal/follow"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// usualMemory is what the programs have for what looks bring.
var usualMemory = follow.ScratchMemory

// What looks bring goes through files in all tests, but where there is very little of it.
func init() { follow.ScratchMemory = 2 << 10 }

// useUsualMemory lets a benchmark have as much memory for what looks bring as the programs have.
func useUsualMemory(b *testing.B) {
	little := follow.ScratchMemory
	follow.ScratchMemory = usualMemory
	b.Cleanup(func() { follow.ScratchMemory = little })
}
