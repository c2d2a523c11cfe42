package folder_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Records that are gone, or cannot be had.

// Of several representations the next is taken where one is gone.
func TestNextFormatWhereOneIsGone(t *testing.T) {
	s := newSite(t)
	s.set("/r/a.json", "json")
	s.chain([]entry{formats("a", 10, "application/json", "application/xml")})
	c := s.copy("application/xml", "application/json")
	c.round()
	c.equals(map[string]string{"a": "json"})

	for _, status := range []int{403, 404, 410} {
		s.answer("/r/a.xml", status)
		other := s.copy("application/xml", "application/json")
		other.round()
		other.equals(map[string]string{"a": "json"})
	}
	s.answer("/r/a.xml", 500)
	other := s.copy("application/xml", "application/json")
	require.Len(t, other.round().Failed, 1, "it may be there")
}

// A record is modified, or deleted, after the feed was read: it is read again.
func TestRecordThatGoesWhileItIsHarvested(t *testing.T) {
	for name, later := range map[string][]entry{
		"deleted":          {deletion("a", 30), active("b", 20)},
		"deleted at once":  {active("b", 20), deletion("a", 10)},
		"moved":            {{id: "a", at: 30, links: []string{"application/xml /r/moved"}}, active("b", 20)},
		"not in the feed":  {active("b", 20)},
		"in the feed yet":  {active("b", 20), active("a", 10)},
		"moved by no time": {active("b", 20), {id: "a", at: 10, links: []string{"application/xml /r/moved"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			want := s.records("b")
			s.set("/r/moved", "moved")
			s.chain([]entry{active("b", 20), active("a", 10)})
			s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.URL.Path == "/r/a" {
					s.chain(later)
				}
				return false
			})
			c := s.copy()
			r := c.round()
			if strings.HasPrefix(name, "moved") {
				want["a"] = "moved"
			}
			c.equals(want)
			if strings.HasPrefix(name, "deleted") || strings.HasPrefix(name, "moved") {
				require.Empty(t, r.Gone)
				return
			}
			require.Len(t, r.Gone, 1)
			require.Equal(t, "a", r.Gone[0].ID)
			require.Contains(t, r.Gone[0].Reason, "404")

			// It is tried again in later rounds, without the feed.
			require.Len(t, c.round().Gone, 1)
			s.BreakWith(nil)
			s.set("/r/a", "again")
			want["a"] = "again"
			require.Empty(t, c.round().Gone)
			c.equals(want)
		})
	}
}

// In a complete feed it is absent then.
func TestRecordThatGoesFromACompleteFeed(t *testing.T) {
	s := newSite(t)
	want := s.records("b")
	s.set("/feed", document{complete: true, entries: []entry{active("b", 20), active("a", 10)}}.String())
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path == "/r/a" {
			s.set("/feed", document{complete: true, entries: []entry{active("b", 20)}}.String())
		}
		return false
	})
	c := s.copy()
	require.Empty(t, c.round().Gone)
	c.equals(want)
	require.Len(t, c.state().Records, 1)
}

func TestHeldRecordThatIsGoneIsRemoved(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b")
	s.chain([]entry{active("b", 20), active("a", 10)})
	c := s.copy()
	c.round()
	s.chain([]entry{active("a", 30), active("b", 20)})
	s.remove("/r/a")
	r := c.round()
	require.Equal(t, []int{1, 1, 0}, []int{r.Removed, len(r.Gone), len(r.Failed)})
	delete(want, "a")
	c.equals(want)

	s.chain([]entry{deletion("a", 40), active("b", 20)})
	r = c.round()
	require.Equal(t, []int{0, 0}, []int{r.Removed, len(r.Gone)}, "deleted: no copy lacks it")
}

func TestOneThatFailsKeepsNothingBack(t *testing.T) {
	for status, gone := range map[int]bool{401: false, 500: false, 503: false, 400: false, 406: false} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := newSite(t)
			want := s.records("a", "b", "c")
			s.chain([]entry{active("c", 30), active("b", 20), active("a", 10)})
			c := s.copy()
			c.round()

			s.set("/r/a", "new a")
			s.set("/r/b", "new b")
			want["a"] = "new a"
			s.chain([]entry{active("a", 50), active("b", 40), active("c", 30)})
			s.answer("/r/b", status)
			r := c.round()
			require.Len(t, r.Failed, 1)
			require.Equal(t, []any{"b", true, gone}, []any{r.Failed[0].ID, r.Failed[0].Held, len(r.Gone) > 0})
			require.Contains(t, r.Failed[0].Reason, fmt.Sprint(status))
			c.equals(want)
			since := r.Failed[0].Since

			r = c.round()
			require.Len(t, r.Failed, 1, "until it can be had")
			require.Equal(t, since, r.Failed[0].Since)
			s.BreakWith(nil)
			r = c.round()
			require.Empty(t, r.Failed)
			want["b"] = "new b"
			c.equals(want)
			require.Eventually(t, func() bool { // a request that an earlier round has given up may arrive late
				s.Seen()
				c.round()
				return slices.Equal([]string{"/feed"}, s.Seen())
			}, 10*time.Second, time.Millisecond)
		})
	}
}

func TestFiveFailuresInARowEndTheRound(t *testing.T) {
	s := newSite(t)
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	want := s.records(ids...)
	var entries []entry
	for i, id := range ids {
		entries = append(entries, active(id, i+1))
	}
	s.chain(entries)
	c := s.copy()
	c.Parallel = 1
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path < "/r/c" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	r, err := c.try()
	require.ErrorContains(t, err, "5 documents in a row could not be fetched, the last one: http://example.org/r/g: the server answered 401")
	require.Equal(t, []int{2, 4}, []int{r.New, len(r.Failed)})
	c.equals(map[string]string{"a": want["a"], "b": want["b"]})
	require.Zero(t, c.state().Mark.Updated)

	s.BreakWith(nil)
	require.Equal(t, 8, c.round().New)
	c.equals(want)
}

// Those that failed before keep nothing back either, however many there are.
func TestManyOldFailures(t *testing.T) {
	s := newSite(t)
	var entries []entry
	for i := range 12 {
		s.records(fmt.Sprintf("bad%d", i))
		entries = append(entries, active(fmt.Sprintf("bad%d", i), i+1))
	}
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		bad := strings.HasPrefix(r.URL.Path, "/r/bad")
		if bad {
			w.WriteHeader(500)
		}
		return bad
	})
	s.chain(entries)
	c := s.copy()
	c.Parallel = 1
	for range 3 {
		_, _ = c.try()
	}
	require.Len(t, c.state().Records, 12)
	s.records("good")
	s.chain(append(entries, active("good", 100)))
	r := c.round()
	require.Equal(t, []int{1, 12}, []int{r.New, len(r.Failed)})
	s.Seen()
	tried := map[string]bool{}
	for range 3 {
		c.round()
		for _, path := range s.Seen() {
			tried[path] = true
		}
	}
	require.Len(t, tried, 13, "each has its turn; and the feed")
}

func TestServerThatAsksForPatienceEndsTheRound(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c", "d")
	s.chain([]entry{active("a", 1), active("b", 2), active("c", 3), active("d", 4)})
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path != "/r/b" {
			return false
		}
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	c := s.copy()
	c.Parallel = 1
	_, err := c.try()
	require.ErrorContains(t, err, "429")
	c.equals(map[string]string{"a": want["a"]}) // whatever was fetched ahead
	s.BreakWith(nil)
	c.round()
	c.equals(want)
}
