package tokenfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

func read(t *testing.T, content string) ([]Token, error) {
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	all, err := Read(file)
	if err != nil {
		assert.Contains(t, err.Error(), file)
	}
	return all, err
}

func TestTokensAreReadOneFromEachLine(t *testing.T) {
	t.Parallel()
	all, err := read(t, "# who may write\n\n  first-token \r\nsecond token#1\n#third\n\t\nJürgen B.: named-token\nlast")
	require.NoError(t, err)
	assert.Equal(t, []Token{{"first-token", ""}, {"second token#1", ""}, {"named-token", "Jürgen B."}, {"last", ""}}, all)
}

// Editors of Windows put a byte order mark before the text. It is no part of the first token, of its name, or of a
// comment.
func TestByteOrderMarkIsNoPartOfAToken(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]Token{
		"\xEF\xBB\xBFtoken\r\n":           {"token", ""},
		"\xEF\xBB\xBFJo: token\r\n":       {"token", "Jo"},
		"\xEF\xBB\xBF# comment\r\ntoken":  {"token", ""},
		"\xEF\xBB\xBF\r\n\xC3\xB8: token": {"token", "ø"},
	} {
		all, err := read(t, content)
		require.NoError(t, err, "%q", content)
		assert.Equal(t, []Token{want}, all, "%q", content)
	}
}

func TestFilesWithoutAToken(t *testing.T) {
	t.Parallel()
	for content, says := range map[string]string{
		"":                              "has no token in it; write one on a line of its own",
		"\n\n":                          "no token",
		"# nothing\n":                   "no token",
		"\xEF\xBB\xBF":                  "no token",
		"\xFF\xFEt\x00o\x00k\x00\n\x00": "UTF-16: save it as UTF-8",
		"\xFE\xFF\x00t\x00o\x00k":       "UTF-16: save it as UTF-8",
		"first\nto\x1Bken":              "the token on line 2 has characters that no header",
		"to\xFFken":                     "the token on line 1 has characters",
		"to\xEF\xBB\xBFken":             "the token on line 1 has characters",
	} {
		_, err := read(t, content)
		assert.ErrorContains(t, err, says, "%q", content)
	}
	_, err := Read(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = Read(t.TempDir())
	assert.ErrorContains(t, err, "is a directory")
}
