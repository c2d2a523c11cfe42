package destination

import (
	"github.com/tmshare/tmshare/internal/follow"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// What looks bring goes through files in all tests, but where there is very little of it.
func init() { follow.ScratchMemory = 2 << 10 }
