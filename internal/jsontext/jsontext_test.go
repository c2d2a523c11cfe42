package jsontext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/jsontext"
	_ "github.com/tmshare/tmshare/internal/testenv"
)

func TestLoneSurrogatesHaveAPlace(t *testing.T) {
	for text, want := range map[string]int{
		``: -1, `"a"`: -1, `"\n\u00e9"`: -1, `"\ud83d\ude00"`: -1, `"\\ud800"`: -1, `"\\\\ud800"`: -1,
		`"\uD83D\uDE00\uD83D\uDE00"`: -1,
		`"\ud800"`:                   1, `"\udc00"`: 1, `"x\uDBFF"`: 2, `"\ud800\ud800\udc00"`: 1, `"\ud83d\ude00\ude00"`: 13, `"\\\ud800"`: 3,
		`"\ud800\n"`: 1, `"\ud800\u0041"`: 1, `"\ud800\\udc00"`: 1, `{"\udfff": 1}`: 2,
		`"\`: -1, `"\u`: -1, `"\ud8`: -1, `"\ud800`: 1, `"\ud800\u`: 1,
	} {
		offset, reason := jsontext.Changed([]byte(text))
		if want < 0 {
			assert.Empty(t, reason, text)
			continue
		}
		assert.Equal(t, want, offset, text)
		assert.Equal(t, text[want:want+6]+" is half of a surrogate pair, which is no character; write the character, or both halves", reason)
	}
}

// A part is found exactly when encoding/json makes U+FFFD of it.
func TestWhatIsReplacedIsFound(t *testing.T) {
	parts := rapid.SliceOf(rapid.SampledFrom([]string{`a`, `\\`, `\"`, `u`, `d800`, `\ud800`, `\uDBFF`, `\udc00`, `\uDFFF`, `\u0041`, `\n`, "é", "\xff", "\xed\xa0\x80"}))
	rapid.Check(t, func(t *rapid.T) {
		text := `"` + strings.Join(parts.Draw(t, "parts"), "") + `"`
		var read string
		require.NoError(t, json.Unmarshal([]byte(text), &read))
		_, reason := jsontext.Changed([]byte(text))
		require.Equal(t, strings.Contains(read, "\uFFFD"), reason != "", text)
	})
}
