package destination

import (
	"github.com/tmshare/tmshare/internal/follow"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// The results of reads go through files in all tests, except very small ones.
func init() { follow.ScratchMemory = 2 << 10 }
