package layout

import (
	"testing"

	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// Errors are sentences, but what must stay as it is does: names of maps, identifiers, addresses.
func TestErrorsAreSentences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"no topic is called so":        "No topic is called so.",
		"Go back.":                     "Go back.",
		"egov shows no such hierarchy": "egov shows no such hierarchy.",
		"egov: the server answers 404": "egov: the server answers 404.",
		"?page=0 cannot be: write 1":   "?page=0 cannot be: write 1.",
		"it is at http://x/y":          "It is at http://x/y",
		"what is long…":                "What is long…",
		"http://x/y":                   "http://x/y",
	} {
		assert.Equal(t, want, Sentence(text, "egov"))
	}
}
