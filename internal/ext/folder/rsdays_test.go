package folder_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/testenv"
)

// A date covers its day, and so do all shortened W3C Datetimes: a resource fetched within it may have been changed
// again.
func TestTimesOfWholeDays(t *testing.T) {
	testenv.SkipUnderRace(t)
	for layout, step := range map[string]time.Duration{"2006-01-02": 2 * time.Hour, "2006-01": 2 * 24 * time.Hour, "2006": 20 * 24 * time.Hour, "2006-01-02T15:04Z": 5 * time.Second} {
		for name, style := range map[string]rsStyle{
			"a Sitemap":                 {Plain: true},
			"a list":                    {},
			"lists":                     {ListIndex: true},
			"packages":                  {Dump: "copies"},
			"packages alone":            {Dump: "copies", DumpOnly: true},
			"changes":                   {Changes: "open"},
			"changes in packages":       {Changes: "open", Dump: "copies", ChangeDump: true},
			"closed changes":            {Changes: "closedIndex"},
			"changes of an index":       {Changes: "index"},
			"changes of a bare index":   {Changes: "bareIndex"},
			"changes by datetime alone": {Changes: "open", OnlyDatetime: true},
			"hashes":                    {Hashes: true},
		} {
			t.Run(layout+", "+name, func(t *testing.T) {
				if layout != "2006-01-02" {
					testenv.OnlyWithAll(t, "other units of time are read in each form")
				}
				style.LastMod, style.Layout = true, layout
				s, m := newMirror(t, style, 4)
				for _, version := range []string{"one", "two", "three", "four", "five", "six"} {
					r := m.round()
					require.Empty(t, r.Failed)
					require.Equal(t, s.pool, m.records(), "before %s", version)
					s.clock = s.clock.Add(step)
					s.put(rsHost+"/r/1.txt", "version "+version)
					if style.Changes == "" {
						s.publish()
					} else {
						s.publishChanges()
					}
					require.False(t, m.audit().Equal(), "version %s is not held", version)
				}
				s.change(rsHost+"/r/2.txt", "", resourcesync.Deleted)
				s.publish()
				m.round()
				require.Equal(t, s.pool, m.records())

				s.clock = s.clock.AddDate(1, 1, 2) // the day is over
				s.publish()
				m.round()
				s.Seen()
				s.clock = s.clock.AddDate(0, 0, 1)
				s.publish()
				require.Zero(t, m.round().Changed)
				for _, path := range s.Seen() {
					require.False(t, strings.HasPrefix(path, "/r/"), "%s is sure, and asked for again", path)
				}
				require.Equal(t, s.pool, m.records())
				require.True(t, m.audit().Equal())
			})
		}
	}
}
