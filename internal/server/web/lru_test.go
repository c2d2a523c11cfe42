package web

import (
	"bytes"
	"fmt"
	"testing"

	_ "github.com/tmshare/tmshare/internal/testenv"

	"github.com/stretchr/testify/assert"
)

func TestRecentBytesStayWithinTheirLimitAndKeepWhatIsUsed(t *testing.T) {
	t.Parallel()
	const each = 1000
	c := newRecentBytes(10 * (each + 2 + perDocument))
	for i := range 30 {
		c.put(fmt.Sprintf("%02d", i), bytes.Repeat([]byte{byte(i)}, each))
		assert.NotNil(t, c.get("00"), "what is asked for all the time stays")
		assert.LessOrEqual(t, c.used, c.limit)
	}
	kept := 0
	for i := range 30 {
		if b := c.get(fmt.Sprintf("%02d", i)); b != nil {
			kept++
			assert.Equal(t, bytes.Repeat([]byte{byte(i)}, each), b)
			assert.True(t, i == 0 || i > 20, "%d is one of the last", i)
		}
	}
	assert.Equal(t, 10, kept)
	assert.Equal(t, kept, c.order.Len())
	c.put("huge", make([]byte, c.limit/2))
	assert.Nil(t, c.get("huge"), "one must not push out the others")
	c.put("29", nil)
	assert.Len(t, c.get("29"), each, "one name stands for one content")
}
