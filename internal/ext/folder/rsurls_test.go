package folder_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
)

// Two ways to write a URI are one resource, whichever a document uses (RFC 3986 §6.2.2.1, §6.2.3).
func TestURIsInOtherForms(t *testing.T) {
	for _, style := range []rsStyle{{LastMod: true, Plain: true}, {LastMod: true, Hashes: true}, {LastMod: true, Changes: "open"}, careful} {
		s, m := newMirror(t, style, 2)
		s.put(rsHost+"/r/%C3%BC.txt", "first")
		s.publish()
		other := func() { // the documents name the resource otherwise
			for path := range s.pages {
				if strings.HasSuffix(path, ".xml") {
					s.pages[path] = strings.NewReplacer(rsHost+"/r/%C3%BC", "HTTP://EXAMPLE.org:80/r/%c3%bc", rsHost+"/r/0", "http://example.org./r/0").Replace(s.pages[path])
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if content, ok := s.pool[rsHost+"/r/%C3%BC.txt"]; ok {
				s.pages["/r/%c3%bc.txt"] = content
			} else {
				delete(s.pages, "/r/%c3%bc.txt")
			}
		}
		m.noDumps = true
		m.round()
		require.Equal(t, s.pool, m.records())
		s.clock = s.clock.Add(1e9)
		s.put(rsHost+"/r/%C3%BC.txt", "second")
		s.publish()
		other()
		r := m.round()
		require.Equal(t, []int{0, 1, 0}, []int{r.New, r.Changed, r.Removed}, "%+v", style)
		require.Empty(t, r.Failed)
		require.Equal(t, s.pool, m.records())
		require.True(t, m.audit().Equal())
		s.change(rsHost+"/r/%C3%BC.txt", "", resourcesync.Deleted)
		s.publish()
		other()
		require.Equal(t, 1, m.round().Removed)
		require.Equal(t, s.pool, m.records())

		m.url = strings.Replace(m.url, rsHost, "HTTP://Example.org:80", 1) + "#x"
		require.Zero(t, m.round().New, "the folder is of the same Source")
	}
}
