package destination

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/follow"
)

// Without hashes, content is taken from a package only if it is sure to be that of the list.
func TestContentOfPackagesWithoutHashes(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	for _, c := range []struct {
		updated, listed, at, until, packed time.Time
		found                              bool
	}{
		{updated: second(5), at: second(6), packed: second(5), found: true},
		{updated: second(5), at: second(6), found: true},
		{updated: second(5), at: second(5), packed: second(5)}, // perhaps again in that second
		{updated: second(5), at: second(6), packed: second(4)}, // they contradict each other
		{updated: second(5), at: second(4), packed: second(4)},
		{listed: second(5), at: second(5), found: true},
		{listed: second(5), at: second(4)},
		{listed: second(5)},
		{at: second(5)},
		{updated: second(5), until: second(6), packed: second(5), found: true},
		{updated: second(5), until: second(5), packed: second(5)},
		{updated: second(5), until: second(6), packed: second(4)},
		{updated: second(5), until: second(6)},
	} {
		i := resourcesync.Item{Loc: "http://example.org/a", LastMod: c.packed}
		i.Path = "/a"
		m := manifestOf(&listing{Document: resourcesync.Document{Times: resourcesync.Times{At: c.at, Until: c.until}}, items: []resourcesync.Item{i}})
		r := &follow.Record{ID: i.Loc, Updated: c.updated, Representations: []follow.Representation{{URL: i.Loc}}}
		require.Equal(t, c.found, m.find(r, c.listed) != nil, "%+v", c)
	}
}
