package titles_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/titles"
)

// A text closes what it opens, and closes nothing opened outside.
func TestTextsTurnNothingBehindThem(t *testing.T) {
	for text, want := range map[string]string{
		"Oslo":                       "Oslo",
		"שלום":                       "שלום",
		"\u202eolsO":                 "\u202eolsO\u202c",
		"\u202eolsO\u202c x":         "\u202eolsO\u202c x",
		"\u2067a\u202eb":             "\u2067a\u202eb\u202c\u2069",
		"\u2067a\u202eb\u2069 c":     "\u2067a\u202eb\u2069 c",
		"a\u2069b\u202c":             "ab",
		"\u202ea\u2066b\u202cc":      "\u202ea\u2066bc\u2069\u202c",
		"\u202a\u202b\u202d\u202cab": "\u202a\u202b\u202d\u202cab\u202c\u202c",
		"\u200f as it is":            "\u200f as it is",
	} {
		assert.Equal(t, want, titles.Closed(text), "%q", text)
		assert.Equal(t, want, titles.Closed(want), "%q", text)
	}
}
