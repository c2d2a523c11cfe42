package deletions

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		limit           string
		topics, deleted int
		held            bool
	}{
		{"", 20, 10, false},
		{"", 20, 11, true},
		{"", 19, 19, false}, // a small map
		{"", 0, 0, false},
		{"0", 3, 0, false},
		{"0", 3, 1, true},
		{"11", 20, 11, false},
		{"11", 20, 12, true},
		{"50%", 4, 2, false},
		{"50%", 4, 3, true},
		{"0%", 4, 1, true},
		{"100%", 40, 40, false},
		{"all", 40, 40, false},
	} {
		var m Limit
		require.NoError(t, m.UnmarshalText([]byte(c.limit)))
		text, err := m.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, c.limit, string(text))
		err = m.Check(c.topics, &fragment.Change{Added: 1, Updated: 2, Deleted: c.deleted})
		if !c.held {
			assert.NoError(t, err, "%+v", c)
			continue
		}
		assert.Equal(t, &TooManyError{Topics: c.topics, Added: 1, Updated: 2, Deleted: c.deleted, Limit: m}, err)
	}
	for _, bad := range []string{"-1", "many", "101%", "%", "-1%", "1.5", "all%", " 5"} {
		assert.ErrorContains(t, new(Limit).UnmarshalText([]byte(bad)), "write a number of topics, a percentage such as 80%, or all", bad)
	}
	assert.EqualError(t, Limit{}.Check(20, &fragment.Change{Deleted: 11}), "this version would delete 11 of 20 topics, more than half; nothing is changed")
	var five, third Limit
	require.NoError(t, five.UnmarshalText([]byte("5")))
	require.NoError(t, third.UnmarshalText([]byte("33%")))
	assert.EqualError(t, five.Check(9, &fragment.Change{Deleted: 6}), "this version would delete 6 of 9 topics, more than 5; nothing is changed")
	assert.EqualError(t, third.Check(9, &fragment.Change{Deleted: 3}), "this version would delete 3 of 9 topics, more than 33%; nothing is changed")
}
