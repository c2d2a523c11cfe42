package xtm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// Kept bytes stay as they are, whatever is kept or appended after them.
func TestWhatIsKeptStays(t *testing.T) {
	var lists listArena[int]
	var texts textArena
	var kept [][]int
	var strs []string
	for n := range 300 {
		list, tail := make([]int, n), []byte(strings.Repeat("x", 7*n))
		for i := range list {
			list[i] = n
		}
		kept, strs = append(kept, lists.Keep(list...)), append(strs, texts.String("head ", tail))
		clear(list)
		clear(tail)
	}
	for n, list := range kept {
		_ = append(list, -1)
		assert.Len(t, list, n)
		assert.Equal(t, "head "+strings.Repeat("x", 7*n), strs[n])
	}
	for n, list := range kept {
		for _, i := range list {
			assert.Equal(t, n, i)
		}
	}
	assert.Nil(t, lists.Keep())
	before := lists.Keep(1, 2)
	lists.Reuse()
	assert.Equal(t, []int{3, 4, 5}, lists.Keep(3, 4, 5))
	assert.Len(t, before, 2)
}
