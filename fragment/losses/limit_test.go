package losses

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

func limitOf(t *testing.T, text string) (m Limit) {
	t.Helper()
	require.NoError(t, m.UnmarshalText([]byte(text)))
	back, err := m.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, text, string(back))
	return m
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		limit     string
		measure   Measure
		held      bool
		allowedBy string
	}{
		{"", Measure{Topics: 20, Deleted: 10}, false, "10"},
		{"", Measure{Topics: 20, Deleted: 11}, true, "11"},
		{"", Measure{Topics: 20, Emptied: 11}, true, "11"},
		{"", Measure{Topics: 20, Untyped: 11}, true, "11"},
		{"", Measure{Topics: 20, Deleted: 4, Emptied: 4, Untyped: 3}, true, "11"},
		{"", Measure{Topics: 19, Deleted: 19}, false, "19"}, // a small map
		{"", Measure{Topics: 19, Statements: 100, Gone: 100, Thinned: 100}, false, "0"},
		{"", Measure{}, false, "0"},
		{"", Measure{Topics: 20, Statements: 100, Gone: 50, Thinned: 50}, false, "0"},
		{"", Measure{Topics: 20, Statements: 100, Gone: 51, Thinned: 51}, true, "all"},
		{"", Measure{Topics: 20, Statements: 100, Gone: 51, Thinned: 50, Deleted: 1}, true, "1"},
		{"", Measure{Topics: 20, Gone: 51, Thinned: 51}, false, "0"}, // the size is not known
		{"0", Measure{Topics: 3}, false, "0"},
		{"0", Measure{Topics: 3, Deleted: 1}, true, "1"},
		{"0", Measure{Topics: 3, Emptied: 1}, true, "1"},
		{"0", Measure{Topics: 3, Untyped: 1}, true, "1"},
		{"0", Measure{Topics: 20, Statements: 100, Gone: 51, Thinned: 51}, true, "all"}, // the default allows it
		{"11", Measure{Topics: 20, Deleted: 11, Statements: 100, Gone: 100}, false, "11"},
		{"11", Measure{Topics: 20, Deleted: 12}, true, "12"},
		{"50%", Measure{Topics: 4, Emptied: 2}, false, "2"},
		{"50%", Measure{Topics: 4, Emptied: 3}, true, "3"},
		{"0%", Measure{Topics: 4, Deleted: 1}, true, "1"},
		{"100%", Measure{Topics: 40, Deleted: 40}, false, "40"},
		{"all", Measure{Topics: 40, Deleted: 40, Statements: 100, Gone: 100, Thinned: 90}, false, "all"},
	} {
		assert.Equal(t, !c.held, limitOf(t, c.limit).Allows(&c.measure), "%+v", c)
		assert.Equal(t, c.allowedBy, Allowing(&c.measure), "%+v", c)
		assert.True(t, limitOf(t, Allowing(&c.measure)).Allows(&c.measure), "the proposed limit allows it: %+v", c)
	}
	for _, bad := range []string{"-1", "many", "101%", "%", "-1%", "1.5", "all%", " 5"} {
		assert.ErrorContains(t, new(Limit).UnmarshalText([]byte(bad)), "write a number of topics, a percentage such as 80%, or all", bad)
	}
	for text, e := range map[string]*TooManyError{
		"this version would lose 11 of 20 topics, more than half (11 deleted); nothing is changed":                                              {Measure: Measure{Topics: 20, Deleted: 11}},
		"this version would lose 6 of 9 topics, more than 5 (1 deleted, 2 without names and occurrences, 3 without a type); nothing is changed": {Measure: Measure{Topics: 9, Deleted: 1, Emptied: 2, Untyped: 3}, Limit: limitOf(t, "5")},
		"this version would lose 3 of 9 topics, more than 33% (3 without names and occurrences); nothing is changed":                            {Measure: Measure{Topics: 9, Emptied: 3}, Limit: limitOf(t, "33%")},
		"this version would lose 90 of 100 statements, more than half; nothing is changed":                                                      {Measure: Measure{Topics: 20, Statements: 100, Gone: 90, Thinned: 90}},
	} {
		assert.EqualError(t, e, text)
	}
}
