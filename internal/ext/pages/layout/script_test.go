package layout

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
)

// Pages have one small script at most, and none within them: neither an element, nor an attribute that is one.
func TestPagesHaveOneSmallScript(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, len(Script), 5<<10)
	scripts, templates := 0, 0
	require.NoError(t, fs.WalkDir(texts.Pages, ".", func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) != ".html" {
			return err
		}
		source, err := fs.ReadFile(texts.Pages, file)
		require.NoError(t, err)
		templates++
		scripts += strings.Count(strings.ToLower(string(source)), "<script")
		assert.NotRegexp(t, `(?i)\son[a-z]+ *=|javascript:`, string(source), file)
		return nil
	}))
	assert.Greater(t, templates, 20)
	assert.Equal(t, 1, scripts, "that of the frame, which leads to the file")
	files, err := filepath.Glob("../*/*.js")
	require.NoError(t, err)
	assert.Len(t, files, 1)
}
