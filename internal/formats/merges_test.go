package formats

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"
)

func TestMayMerge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.xtm")
	says := func(content string) bool {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		may, err := MayMerge(path)
		require.NoError(t, err)
		return may
	}
	const tag = `<mergeMap xlink:href="other.xtm"/>`
	assert.False(t, says(""))
	assert.False(t, says(strings.Repeat("<topic/>", 20_000)))
	for _, before := range []int{0, 1, 64<<10 - 15, 64<<10 - 20, 64 << 10, 64<<10 + 1, 200_000} {
		assert.True(t, says(strings.Repeat(" ", before)+tag), before)
	}
	for _, order := range []unicode.Endianness{unicode.BigEndian, unicode.LittleEndian} {
		wide, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(strings.Repeat(" ", 32_760) + tag)
		require.NoError(t, err)
		assert.True(t, says(wide))
	}
	_, err := MayMerge(filepath.Join(t.TempDir(), "missing"))
	assert.ErrorContains(t, err, "no such file")
}
