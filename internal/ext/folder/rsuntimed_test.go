package folder_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
)

// Changes without times have their places in the list (Z39.99 §12.1, Change List).
func TestChangesWithoutTimes(t *testing.T) {
	var number int
	for name, stays := range map[string]func() bool{
		"none has a time": func() bool { return false },
		"the first has":   func() bool { number++; return number == 1 },
		"the last has":    func() bool { number++; return number == 5 },
		"every other has": func() bool { number++; return number%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s, m := newMirror(t, rsStyle{LastMod: true, OnlyLastMod: true, Changes: "open"}, 4)
			change := func(version string) {
				s.put(rsHost+"/r/0.txt", "first of "+version)
				s.put(rsHost+"/r/1.txt", version)
				s.change(rsHost+"/r/2.txt", "", resourcesync.Deleted)
				s.put(rsHost+"/r/2.txt", "again "+version)
				s.put(rsHost+"/r/0.txt", version)
				s.change(rsHost+"/r/3.txt", "", resourcesync.Deleted)
				s.put(rsHost+"/r/"+version+".txt", version)
				s.publishChanges() // the list of all stays as it was
				number = 0
				s.pages["/d/changes.xml"] = rsLastMod.ReplaceAllStringFunc(s.pages["/d/changes.xml"], func(time string) string {
					if stays() {
						return time
					}
					return ""
				})
			}
			change("one")
			for _, version := range []string{"two", "three", "four"} {
				r := m.round()
				require.Empty(t, r.Reason)
				require.Empty(t, r.Failed)
				require.Equal(t, s.pool, m.records())
				require.Zero(t, m.round().Changed)
				require.True(t, m.audit().Equal())
				s.put(rsHost+"/r/3.txt", "for a while")
				change(version)
				require.False(t, m.audit().Equal())
			}
			require.Empty(t, m.reports)
		})
	}
}
