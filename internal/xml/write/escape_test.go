package write_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/xml/write"
)

func TestEscape(t *testing.T) {
	const s = "a&b<c>d\"e\tf\ng\rh é%\x7f"
	for set, want := range map[write.Set]string{
		write.Text:   "a&amp;b&lt;c&gt;d\"e\tf\ng&#xD;h é%\x7f",
		write.Attr:   "a&amp;b&lt;c>d&quot;e&#x9;f&#xA;g&#xD;h é%\x7f",
		write.Either: "a&amp;b&lt;c&gt;d&quot;e\tf\ng\rh é%\x7f",
	} {
		assert.Equal(t, "x"+want, string(write.Escape([]byte("x"), s, set)))
	}
	for sets, rest := range map[write.Set]string{
		write.Space: " é%\x7f", write.NonASCII: "é%\x7f", write.Unnormal: "%\x7f", write.Text | write.Space: s[1:],
	} {
		assert.Equal(t, rest, s[write.Plain(s, sets):])
	}
	assert.Equal(t, 1, write.Plain("a\x00", write.NonASCII))
}

func TestCheck(t *testing.T) {
	for text, wrong := range map[string]string{
		"": "", "a\t\r\nb é\uFFFD\U0001F600": "", "a\xff": "the text is not valid UTF-8", "é\xc3": "the text is not valid UTF-8",
		"a\x00": "XML cannot carry the character U+0000: choose Turtle, N-Triples or JSON-LD", "é\uFFFF": "XML cannot carry the character U+FFFF: choose Turtle, N-Triples or JSON-LD",
	} {
		if err := write.Check(text); wrong == "" {
			assert.NoError(t, err, "%q", text)
		} else {
			assert.EqualError(t, err, wrong, "%q", text)
		}
	}
}
