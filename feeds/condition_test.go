package feeds_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
)

// The condition of a topic map is read as it was written, and is not there where it has none.
func TestConditionOfATopicMap(t *testing.T) {
	for _, condition := range []string{"", "being filled"} {
		f := feeds.Feed{ID: "urn:x:maps", Title: "Maps", Author: "Server", Updated: time.Unix(1, 0), Entries: []feeds.Entry{{
			ID: "urn:x:map", Title: "Map", Updated: time.Unix(1, 0), Condition: condition, Links: []feeds.Link{{Rel: "alternate", Href: "http://x.example.org/map"}},
		}}}
		var b bytes.Buffer
		require.NoError(t, f.Encode(&b))
		assert.Equal(t, condition != "", bytes.Contains(b.Bytes(), []byte("<own:condition>")))
		again, err := feeds.Decode(&b, "http://x.example.org/", feeds.Limits{})
		require.NoError(t, err)
		assert.Equal(t, condition, again.Entries[0].Condition)
	}
}
