package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Limits of what one can keep in mind, tests aside.
const (
	maxFiles     = 25   // of a package
	maxLines     = 4000 // of a package
	maxFileLines = 400
)

// tooLarge are packages that are above a limit since before there was one, with the most files and
// lines that each may have. A package may shrink and leave this list, not grow: lower the figures
// when it has shrunk.
var tooLarge = map[string]struct{ files, lines int }{}

// slack is how many lines the figures of tooLarge may be above those of the package.
const slack = 150

func TestPackagesAndFilesAreSmall(t *testing.T) {
	type size struct{ files, lines int }
	sizes := map[string]size{}
	files := 0
	for _, path := range goFiles(t) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := bytes.Count(content, []byte("\n"))
		assert.LessOrEqual(t, lines, maxFileLines, "%s: split the file at a seam", path)
		name := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.Join("..", "..")+string(filepath.Separator)))
		s := sizes[name]
		sizes[name] = size{s.files + 1, s.lines + lines}
		files++
	}
	require.Greater(t, files, 300)
	for name, s := range sizes {
		most, listed := tooLarge[name]
		if !listed {
			assert.LessOrEqual(t, s.files, maxFiles, "%s: files", name)
			assert.LessOrEqual(t, s.lines, maxLines, "%s: lines", name)
			continue
		}
		assert.LessOrEqual(t, s.files, most.files, "%s is too large already: files", name)
		assert.LessOrEqual(t, s.lines, most.lines, "%s is too large already: lines", name)
		assert.False(t, s.files <= maxFiles && s.lines <= maxLines, "%s is small enough: take it off the list", name)
		assert.LessOrEqual(t, most.lines-s.lines, slack, "%s has shrunk to %d files, %d lines: lower its figures", name, s.files, s.lines)
	}
	for name := range tooLarge {
		assert.Contains(t, sizes, name)
	}
}
