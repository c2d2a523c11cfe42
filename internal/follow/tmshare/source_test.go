package tmshare

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/follow"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// The ids of the entries that the snapshot contains are bounded while the feed is read.
func TestEntriesThatTheSnapshotContainsAreBounded(t *testing.T) {
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	w := (&Source{}).walk("feed", follow.Look{Mark: follow.Mark{Updated: at}})
	w.stated = true // like TMShare servers
	take := func(id string) error {
		return w.take(&feeds.Entry{ID: id, Updated: at, State: feeds.StateLive}, "feed")
	}
	for range 10 {
		require.NoError(t, take("1"), "it is the same each time")
	}
	long := strings.Repeat("x", 1<<20-1)
	for n := range 3 {
		require.NoError(t, take(strconv.Itoa(n)+long))
	}
	require.ErrorContains(t, take("4"+long), "too many entries of the feed have one time (2024-01-01T00:00:00.000000Z): their ids have more than 4 MB")
}
