package words

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTextsAreInTheOrderOfAReader(t *testing.T) {
	for accept, sorted := range map[string][]string{
		"":                        {"", "2", "10", "a", "A", "á", "ä", "ab", "Ab", "chapter 2", "chapter 10", "e", "é", "o", "ö", "z", "я"},
		"en-GB,en;q=0.9":          {"a", "ä", "z"},
		"de":                      {"ä", "ad", "aef", "z"},
		"sv":                      {"a", "z", "å", "ä", "ö"},
		"sv-SE, en":               {"a", "z", "å", "ä", "ö"},
		"da":                      {"z", "æ", "ø", "å"},
		"es":                      {"n", "ñ", "o"},
		"no such thing at all; é": {"a", "ä", "z"},
		"xx-unknown, *;q=0.1":     {"a", "ä", "z"},
	} {
		compare := Collator(OrderFor(accept))
		shuffled := slices.Clone(sorted)
		slices.Reverse(shuffled)
		slices.SortFunc(shuffled, compare)
		assert.Equal(t, sorted, shuffled, accept)
	}
	assert.NotZero(t, Collator("und")("a\u0301", "á"), "texts that are not the same have an order")
}

func TestLanguagesOfOneOrderHaveOneName(t *testing.T) {
	assert.Equal(t, OrderFor("en"), OrderFor("en-GB"))
	assert.Equal(t, OrderFor(""), OrderFor("pt"))
}
