package fetch_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
)

func TestWhenAnAnswerWasMade(t *testing.T) {
	const date = "Mon, 02 Jan 2006 15:04:05 GMT"
	at := time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name           string
		header         map[string]string
		made           time.Time
		known, checked bool
	}{
		{"nothing", nil, time.Time{}, false, false},
		{"date", map[string]string{"Date": date}, at, true, false},
		{"date and age", map[string]string{"Date": date, "Age": " 65"}, at.Add(-65 * time.Second), true, false},
		{"age alone", map[string]string{"Age": "65"}, time.Time{}, false, false},
		{"age that is none", map[string]string{"Date": date, "Age": "-5"}, at, true, false},
		{"age of hours", map[string]string{"Date": date, "Age": "7.5"}, at, true, false},
		{"endless age", map[string]string{"Date": date, "Age": "99999999999999999999"}, at, true, false},
		{"date that is none", map[string]string{"Date": "yesterday", "Age": "5"}, time.Time{}, false, false},
		{"checked", map[string]string{"Date": date, "Age": "5", feeds.CheckedHeader: "2006-01-02T15:04:00.000001Z"}, at.Add(time.Microsecond - 5*time.Second), true, true},
		{"checked alone", map[string]string{feeds.CheckedHeader: "2006-01-02T15:04:05.000000Z"}, at, true, true},
		{"checked that is none", map[string]string{"Date": date, feeds.CheckedHeader: "now"}, at, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &fetch.Answer{Header: http.Header{}}
			for name, value := range tt.header {
				a.Header.Set(name, value)
			}
			made, known := a.Made()
			assert.Equal(t, tt.known, known)
			assert.True(t, tt.made.Equal(made), "%s", made)
			checked, stated := a.Checked()
			assert.Equal(t, tt.checked, stated)
			if stated {
				assert.Equal(t, made, checked)
			}
		})
	}
}

// An answer to a request repeats its value: neither that of another request nor none.
func TestAskedAnswers(t *testing.T) {
	value, other := fetch.NewAsked(), fetch.NewAsked()
	require.NotEqual(t, value, other)
	require.Regexp(t, "^[A-Za-z0-9._-]{1,64}$", value)
	echoes := true
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if echoes {
			w.Header().Set(feeds.AskedHeader, r.URL.Query().Get(feeds.AskedParameter))
		}
	})
	_, a, err := get(t, fetcher(), fetch.Asking(s.URL, value))
	require.NoError(t, err)
	assert.True(t, a.Asked(value))
	assert.False(t, a.Asked(other))
	assert.False(t, a.Asked(""))
	echoes = false
	_, a, err = get(t, fetcher(), fetch.Asking(s.URL, value))
	require.NoError(t, err)
	assert.False(t, a.Asked(value))
	assert.False(t, a.Asked(""))
}

// The value is added to the query, whatever else it contains.
func TestAskingLeavesAnAddressAsItIs(t *testing.T) {
	for address, asking := range map[string]string{
		"http://h.example/f":                "http://h.example/f?asked=v",
		"http://h.example/f?":               "http://h.example/f?&asked=v",
		"http://h.example/f?page=%C3%A4&b":  "http://h.example/f?page=%C3%A4&b&asked=v",
		"http://h.example/f?asked=old#part": "http://h.example/f?asked=old&asked=v#part",
	} {
		got := fetch.Asking(address, "v")
		assert.Equal(t, asking, got)
		_, err := url.Parse(got)
		require.NoError(t, err)
	}
	assert.Equal(t, "http://h.example/?asked=a%26b", fetch.Asking("http://h.example/", "a&b"))
}
