package folder_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/follow"
)

// The rules of reading feeds, each with small feeds that show it.

// records puts representations at /r/ID, and returns the contents of a copy of them.
func (s *site) records(ids ...string) map[string]string {
	want := map[string]string{}
	for _, id := range ids {
		want[id] = "content of " + id
		s.set("/r/"+id, want[id])
	}
	return want
}

// chain publishes an archived feed: the subscription document first, then the archive documents. The newest of these
// is /1.
func (s *site) chain(documents ...[]entry) {
	for i, entries := range documents {
		d := document{entries: entries, archive: i > 0}
		if i < len(documents)-1 {
			d.prev = fmt.Sprintf("/%d", i+1)
		}
		path := "/feed"
		if i > 0 {
			path = fmt.Sprintf("/%d", i)
		}
		s.set(path, d.String())
	}
}

func TestStopsAtTheHandledDocument(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c", "d", "e")
	s.chain([]entry{active("d", 40)}, []entry{active("c", 30)}, []entry{active("b", 20)}, []entry{active("a", 10)})
	c := s.copy()
	c.round()
	s.Seen()

	s.chain([]entry{active("e", 50)}, []entry{active("d", 40)}, []entry{active("c", 30)}, []entry{active("b", 20)}, []entry{active("a", 10)})
	require.Equal(t, 1, c.round().New)
	require.Equal(t, []string{"/feed", "/1", "/2", "/feed", "/r/e"}, s.Seen(), "c is from before the mark, which is d's time; nothing behind it is new")
	c.equals(want)
}

func TestEntriesAtEqualTimes(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c", "d", "x")
	s.chain([]entry{active("b", 20), active("a", 20)}, []entry{active("x", 10)})
	c := s.copy()
	c.round()

	// More of the same time, in the same document and in one before it.
	s.chain([]entry{active("d", 20)}, []entry{active("b", 20), active("c", 20), active("a", 20)}, []entry{active("x", 10)})
	require.Equal(t, 2, c.round().New)
	c.equals(want)

	s.chain([]entry{deletion("x", 20), active("d", 20)}, []entry{active("b", 20), active("c", 20), active("a", 20)}, []entry{active("x", 10)})
	require.Equal(t, 1, c.round().Removed, "deleted at the time of the mark")
	delete(want, "x")
	c.equals(want)
}

// A record that is deleted and modified at one time is there if what represents it is.
func TestDeletionAndActiveEntryAtOneTime(t *testing.T) {
	for _, entries := range [][]entry{
		{deletion("a", 10), active("a", 10), active("b", 5)},
		{active("a", 10), deletion("a", 10), active("b", 5)},
		{active("b", 5), active("a", 10), deletion("a", 10)},
	} {
		s := newSite(t)
		want := s.records("a", "b")
		s.chain(entries)
		c := s.copy()
		c.round()
		c.equals(want)

		s.remove("/r/a")
		s.set("/feed", document{entries: entries}.String()+"<!-- another -->")
		r := c.round()
		require.Equal(t, 1, r.Removed)
		require.Empty(t, r.Gone, "it is deleted: nothing is wrong")
		delete(want, "a")
		c.equals(want)

		fresh := s.copy()
		require.Empty(t, fresh.round().Gone)
		fresh.equals(want)
	}
}

func TestHistoricalEntriesArePassedOver(t *testing.T) {
	for name, documents := range map[string][][]entry{
		"in one document":                 {{active("a", 10), active("a", 30), active("b", 5), deletion("b", 20), active("a", 20), active("c", 1)}},
		"in several":                      {{active("a", 30), deletion("b", 20)}, {active("a", 20)}, {active("a", 10), active("b", 5), active("c", 1)}},
		"with a deletion that was undone": {{active("a", 30), deletion("b", 20)}, {deletion("a", 20)}, {active("a", 10), active("b", 5), active("c", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			want := s.records("a", "c")
			s.chain(documents...)
			c := s.copy()
			require.Equal(t, 2, c.round().New)
			c.equals(want)
			require.NotContains(t, s.Seen(), "/r/b")
		})
	}
}

func TestArchiveDocumentsChange(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c", "d", "e")
	s.chain([]entry{active("d", 40)}, []entry{active("b", 20), active("c", 30)}, []entry{active("a", 10)})
	c := s.copy()
	c.round()

	// The same entries in other documents; historical ones are gone, one is new.
	s.chain([]entry{active("e", 60), active("b", 50)}, []entry{active("d", 40), active("c", 30), active("a", 10)})
	s.set("/r/b", "new content")
	want["b"] = "new content"
	r := c.round()
	require.Equal(t, []int{1, 1, 0}, []int{r.New, r.Changed, r.Removed})
	c.equals(want)
}

// The addresses of archive documents change while they are read.
func TestArchiveDocumentsMove(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c")
	s.chain([]entry{active("c", 30)}, []entry{active("b", 20)}, []entry{active("a", 10)})
	moved := false
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path != "/2" || moved {
			return false
		}
		moved = true
		s.mu.Lock()
		s.pages["/moved"] = s.pages["/2"]
		s.pages["/1"] = document{prev: "/moved", archive: true, entries: []entry{active("b", 20)}}.String()
		delete(s.pages, "/2")
		s.mu.Unlock()
		http.NotFound(w, r)
		return true
	})
	c := s.copy()
	c.round()
	c.equals(want)
	require.Equal(t, []string{"/feed", "/1", "/2", "/feed", "/1", "/moved"}, s.Seen()[:6])
}

func TestChainThatCannotBeCompletedIsAnError(t *testing.T) {
	s := newSite(t)
	s.records("a", "b")
	s.chain([]entry{active("b", 20)}, []entry{active("a", 10)})
	s.remove("/1")
	c := s.copy()
	_, err := c.try()
	require.ErrorContains(t, err, "the chain of the feed's documents is broken")
	require.Empty(t, c.records(), "the files there could be out of date")

	want := s.records("a", "b")
	s.chain([]entry{active("b", 20)}, []entry{active("a", 10)})
	c.round()
	c.equals(want)
}

// A producer is restored from a backup: its feed goes on from before the mark.
func TestFeedIDOfAnotherHistory(t *testing.T) {
	s := newSite(t)
	s.records("a", "b", "c", "d", "n")
	before := [][]entry{{active("b", 20)}, {active("a", 10)}}
	s.chain(append([][]entry{{active("d", 40), deletion("a", 35)}, {active("c", 30), active("b", 25)}}, before...)...)
	c := s.copy()
	c.round()
	c.equals(s.records("b", "c", "d"))

	s.set("/r/b", "b of the backup")
	s.chain(before...)
	r := c.round()
	require.Contains(t, r.Reason, "not in the feed any more")
	require.Equal(t, []int{1, 1, 2}, []int{r.New, r.Changed, r.Removed})
	want := s.records("a", "b")
	want["b"] = "b of the backup"
	c.equals(want)

	// And where it has gone on since.
	s.chain(append([][]entry{{active("n", 50)}}, before...)...)
	c.round()
	s.chain([]entry{active("n", 60)}, []entry{active("b", 20)}, []entry{active("a", 10)})
	c.round()
	s.chain([]entry{active("d", 70)}, []entry{active("b", 20)}, []entry{active("a", 10)})
	r = c.round()
	require.Equal(t, []int{1, 0, 1}, []int{r.New, r.Changed, r.Removed})
}

// A complete feed with another id is another history too: its deletions are not applied at once.
func TestNewIDOfACompleteFeed(t *testing.T) {
	s := newSite(t)
	s.records("a", "b")
	s.set("/feed", document{complete: true, entries: []entry{active("b", 20), active("a", 10)}}.String())
	c := s.copy()
	c.round()
	held := c.records()
	s.set("/r/a", "another a")
	s.set("/feed", document{feed: "urn:another", complete: true, entries: []entry{active("b", 20), active("a", 30)}}.String())
	_, err := c.try()
	require.ErrorAs(t, err, new(*follow.DoubtError))
	require.ErrorContains(t, err, "new id")
	c.equals(held)
	c.round()
	held["a"] = "another a"
	c.equals(held)
}

func TestRecordDeletedAndCreatedAgain(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b")
	s.chain([]entry{active("a", 10), active("b", 5)})
	c := s.copy()
	c.round()
	s.chain([]entry{deletion("a", 20), active("a", 10), active("b", 5)})
	require.Equal(t, 1, c.round().Removed)
	s.set("/r/a", "another a")
	want["a"] = "another a"
	s.chain([]entry{active("a", 30), deletion("a", 20), active("b", 5)})
	require.Equal(t, 1, c.round().New)
	c.equals(want)

	s.set("/r/a", "a third one")
	want["a"] = "a third one"
	s.chain([]entry{active("a", 50), deletion("a", 40)}, []entry{active("a", 30), deletion("a", 20), active("b", 5)})
	require.Equal(t, 1, c.round().Changed, "between two rounds")
	c.equals(want)
}

func TestNewFeedID(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c")
	s.chain([]entry{active("c", 30)}, []entry{active("b", 20), active("a", 10)})
	c := s.copy()
	c.round()

	// The same times, another history.
	s.set("/r/a", "another a")
	want["a"] = "another a"
	delete(want, "c")
	s.set("/feed", document{feed: "urn:another", prev: "/1", entries: []entry{active("b", 20)}}.String())
	s.set("/1", document{feed: "urn:another", entries: []entry{active("a", 10)}}.String())
	r := c.round()
	require.Contains(t, r.Reason, "new id")
	require.Equal(t, []int{0, 1, 1, 1}, []int{r.New, r.Changed, r.Removed, len(c.state().Records) - 1})
	c.equals(want)
	require.Zero(t, c.round().Documents, "once")
}

func TestPagedFeed(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c")
	s.set("/feed", document{next: "/p2", entries: []entry{active("c", 30)}}.String())
	s.set("/p2", document{next: "/p3", entries: []entry{active("b", 20)}}.String())
	s.set("/p3", document{entries: []entry{active("a", 10)}}.String())
	c := s.copy()
	c.round()
	c.equals(want)
}

// In an archive document "next" is no older one.
func TestNextOfAnArchiveDocumentIsNotFollowed(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b")
	s.set("/feed", document{prev: "/1", entries: []entry{active("b", 30)}}.String())
	s.set("/1", document{next: "/feed", archive: true, entries: []entry{active("a", 20)}}.String())
	c := s.copy()
	c.round()
	c.equals(want)
}

func TestLoop(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c")
	s.chain([]entry{active("b", 20)}, []entry{active("a", 10)})
	c := s.copy()
	c.round()
	s.set("/feed", document{prev: "/1", entries: []entry{active("c", 30)}}.String())
	s.set("/1", document{prev: "/2", entries: []entry{active("c", 30)}}.String())
	s.set("/2", document{prev: "/1", entries: []entry{active("c", 30)}}.String())
	_, err := c.try()
	require.ErrorContains(t, err, "lead in a circle")
	delete(want, "c")
	c.equals(want)
}

func TestTooManyDocuments(t *testing.T) {
	s := newSite(t)
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		fmt.Fprint(w, document{prev: r.URL.Path + "x", entries: []entry{active("a", 1)}})
		return true
	})
	_, err := (&atompmh.Source{Fetcher: s.Fetcher(), MaxDocs: 7}).Delta(t.Context(), feedURL, follow.Look{}, Holding(&State{}))
	require.ErrorContains(t, err, "more than 7 documents")
	require.Len(t, s.Seen(), 7)
}

// The memory of a read is bounded, however many documents it covers.
func TestTooManyRecords(t *testing.T) {
	s := newSite(t)
	n := 0
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		n++
		var entries []entry
		for i := range 100 {
			entries = append(entries, active(fmt.Sprint(n, "/", i), 1))
		}
		fmt.Fprint(w, document{prev: r.URL.Path + "x", entries: entries})
		return true
	})
	_, err := (&atompmh.Source{Fetcher: s.Fetcher(), Scratch: follow.Scratch{MaxEntries: 1000}}).Delta(t.Context(), feedURL, follow.Look{}, Holding(&State{}))
	require.ErrorContains(t, err, "has more than 1000 entries that are new: either its server makes them up, or a higher --max-entries takes them")
	require.Greater(t, len(s.Seen()), 3)

	source, m := newMirror(t, careful, 500)
	for _, most := range []int{50, 0} {
		_, err = (&destination.Source{Fetcher: m.Fetcher, Scratch: follow.Scratch{MaxEntries: most}}).Delta(t.Context(), source.url(), follow.Look{}, Holding(&State{}))
		require.Equal(t, most == 0, err == nil, "%v", err)
	}
}

// "when the subscription document is empty and all the active entries are all in one of
// the archive documents" (Atom-PMH, Complete Feeds)
func TestCompleteArchiveDocumentBehindAnEmptyOne(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c")
	s.set("/feed", document{prev: "/1"}.String())
	s.set("/1", document{complete: true, prev: "/0", entries: []entry{active("b", 20), active("a", 10), active("c", 10)}}.String())
	c := s.copy()
	c.round()
	c.equals(want)

	s.set("/1", document{complete: true, prev: "/0", entries: []entry{active("b", 20), active("a", 10)}}.String())
	s.set("/feed", document{prev: "/1"}.String()+"<!-- -->")
	s.Seen()
	require.Equal(t, 1, c.round().Removed)
	delete(want, "c")
	c.equals(want)
	require.NotContains(t, s.Seen(), "/0", "documents after a complete one do not count")

	// It becomes an archived one, and has deletion entries from now on only.
	s.chain([]entry{active("b", 20)})
	require.Contains(t, c.round().Reason, "complete")
	delete(want, "a")
	c.equals(want)
}

// "all Atom Feed Documents with no entries or only deletion entries can claim they are
// complete" (Atom-PMH, Complete Feeds)
func TestEmptyPool(t *testing.T) {
	for name, d := range map[string]document{
		"no entries":            {complete: true},
		"only deletion entries": {complete: true, entries: []entry{deletion("a", 30), deletion("z", 30)}},
		"several documents":     {complete: true, prev: "/1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			want := s.records("a", "b")
			s.set("/1", document{complete: true}.String())
			s.chain([]entry{active("a", 20), active("b", 10)})
			c, fresh := s.copy(), s.copy()
			c.round()
			c.equals(want)
			s.set("/feed", d.String())
			require.Equal(t, 2, c.round().Removed)
			c.equals(map[string]string{})
			require.Zero(t, c.round().Removed)
			require.Zero(t, fresh.round().Removed)
			fresh.equals(map[string]string{})
			require.Empty(t, fresh.state().Records)

			s.chain([]entry{active("b", 40)})
			c.round()
			fresh.round()
			delete(want, "a")
			c.equals(want)
			fresh.equals(want)
		})
	}
}

func TestArchivedFeedThatIsEmpty(t *testing.T) {
	s := newSite(t)
	want := s.records("a")
	s.chain(nil)
	c := s.copy()
	c.round()
	c.equals(map[string]string{})
	s.chain([]entry{active("a", 1)})
	c.round()
	c.equals(want)
	s.chain(nil)
	_, err := c.try()
	require.ErrorContains(t, err, "no entries any more", "no entry deletes it")
	c.equals(want)
	s.set("/feed", document{feed: "urn:another"}.String())
	require.Equal(t, 1, c.round().Removed, "a new history may be empty")
}

func TestOtherEntriesAreIgnored(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b")
	some := entry{id: "article", at: 30, content: "<content>An article</content>"}
	none := entry{id: "none", at: 30, content: "<summary>nothing at all</summary>"}
	src := entry{id: "src", at: 30, content: `<content src="/x" type="text/plain"/>`}
	both := active("b", 20) // of no defined type, but it names the place of the record
	both.content = "<content>and in short</content>"
	s.chain([]entry{some, none, src, both, active("a", 10)})
	c := s.copy()
	r := c.round()
	require.Equal(t, 3, r.Ignored)
	c.equals(want)
	require.Len(t, c.state().Records, 2)
}

func TestEntriesInAnyOrder(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c")
	s.chain([]entry{active("b", 50), active("c", 60), active("a", 40)}, []entry{active("a", 10), active("c", 30), active("b", 20)})
	c := s.copy()
	require.Equal(t, 3, c.round().New)
	c.equals(want)
}

// A document of the handled ones that lacks something is no reason to end: so a round goes
// on where an earlier one was interrupted.
func TestGoesOnBehindTheMarkWhereSomethingIsMissing(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c", "d")
	s.chain([]entry{active("d", 40)}, []entry{active("c", 30)}, []entry{active("b", 20)}, []entry{active("a", 10)})
	c := s.copy()
	c.round()
	// b is there again, at an earlier time than the mark: not as the protocol has it.
	s.chain([]entry{active("d", 40), active("d", 40)}, []entry{active("c", 31), active("b", 21)}, []entry{active("a", 11)})
	for _, id := range []string{"a", "b", "c"} {
		want[id] = "new " + id
		s.set("/r/"+id, want[id])
	}
	require.Equal(t, 3, c.round().Changed)
	c.equals(want)
}

// The file held is of a later time than the deletion in a part of the feed: it was created again, and that part does
// not have the creation.
func TestTodoPassesOverOldDeletions(t *testing.T) {
	held := Holding(&State{Records: map[string]*Held{"a": {Updated: at(50)}}})
	for _, whole := range []bool{false, true} {
		deletion := follow.Record{ID: "a", Deleted: true, Updated: at(40)}
		todo := planned(t, held, &follow.Delta{Whole: whole}, follow.Rules{}, deletion)
		if whole {
			require.Equal(t, []follow.Record{deletion}, todo)
		} else {
			require.Empty(t, todo)
		}
	}
}

// planned returns the plan for the records of a source.
func planned(t *testing.T, held *Folder, news *follow.Delta, by follow.Rules, says ...follow.Record) (todo []follow.Record) {
	news.Stated = follow.NewStatements("", &follow.Scratch{})
	news.Stated.Rules = by
	for place := range says {
		one, err := follow.StatementOf(&says[place], follow.KindChanged, uint64(place))
		require.NoError(t, err)
		require.NoError(t, news.Stated.Add(&one))
	}
	plan, err := news.Plan(t.Context(), held, nil)
	require.NoError(t, err)
	for chunk, err := range plan.Chunks() {
		require.NoError(t, err)
		todo = append(todo, chunk...)
	}
	return todo
}

// A file held as of the last of two changes is not fetched again, each time that all is read. Of two changes at one
// time, the one that is held is not known.
func TestTodoPassesOverWhatHasChangedTwice(t *testing.T) {
	for _, first := range []int{40, 50} {
		held := Holding(&State{Records: map[string]*Held{"a": {Updated: at(50)}}})
		since := follow.SeenAt(&follow.Mark{Updated: at(30)}, &follow.Instant{At: at(30)})
		todo := planned(t, held, &follow.Delta{Whole: true}, follow.Rules{Since: since}, follow.Record{ID: "a", Updated: at(first)}, follow.Record{ID: "a", Updated: at(50)})
		require.Equal(t, first == 50, len(todo) == 1, "the first change at %d", first)
	}
}

// A record with a time of the future, which its next entry puts right, hides no change: neither its own nor one of
// another record.
func TestTimeOfTheFutureThatIsPutRight(t *testing.T) {
	const future = 30_000_000 // minutes: in 2069
	for name, is := range map[string]struct {
		first []entry // in which another record changes, or nothing does
		right entry
	}{
		"changed":                     {nil, active("a", 30)},
		"changed, and another before": {[]entry{active("b", 25), active("a", future)}, active("a", 30)},
		"changed, before the mark":    {[]entry{active("b", 25), active("a", future)}, active("a", 22)},
		"deleted":                     {nil, deletion("a", 30)},
		"deleted, and another before": {[]entry{active("b", 25), active("a", future)}, deletion("a", 30)},
	} {
		for _, keeps := range []bool{false, true} { // the entry of the future stays in an archive document
			if keeps && len(is.right.links) == 0 {
				continue // by its times the record is there (Atom-PMH, Timestamps)
			}
			t.Run(fmt.Sprint(name, keeps), func(t *testing.T) {
				s := newSite(t)
				want := s.records("a", "b")
				archive := []entry{active("b", 20), active("a", 10)}
				s.chain(archive)
				c := s.copy()
				c.round()
				want["a"] = "of the future"
				s.set("/r/a", want["a"])
				if keeps {
					archive = append([]entry{active("a", future)}, archive...)
				}
				s.chain([]entry{active("a", future)}, archive)
				c.round()
				c.equals(want)
				if is.first != nil {
					s.chain(is.first, archive)
					c.round()
				}
				if want["a"] = "put right"; len(is.right.links) == 0 {
					delete(want, "a")
					s.remove("/r/a")
				} else {
					s.set("/r/a", want["a"])
				}
				s.chain([]entry{is.right}, archive)
				c.round()
				c.equals(want)
				want["b"] = "B again"
				s.set("/r/b", want["b"])
				s.chain([]entry{active("b", 40), is.right}, archive)
				c.round()
				c.equals(want)
				last := c.round()
				require.Zero(t, last.New+last.Changed+last.Removed)
			})
		}
	}
}

// The ETags of another history may be the same: the file held is not taken for it.
func TestETagsOfAnotherHistory(t *testing.T) {
	s := newSite(t)
	content := "a"
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path != "/r/a" {
			return false
		}
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
		} else {
			fmt.Fprint(w, content)
		}
		return true
	})
	s.chain([]entry{active("a", 10)})
	c := s.copy()
	c.round()
	content = "another a"
	s.set("/feed", document{feed: "urn:another", entries: []entry{active("a", 20)}}.String())
	require.Equal(t, 1, c.round().Changed)
	c.equals(map[string]string{"a": "another a"})
}

// Missing entries that were handled before show a fault in the document: new entries in it may be missing too.
func TestEntriesThatAreGone(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c", "d", "e", "f", "x")
	s.chain([]entry{active("d", 4000), active("c", 3000)}, []entry{active("b", 2000), active("a", 1000)})
	c := s.copy()
	c.round()
	held := c.records()
	s.chain([]entry{active("e", 5000), active("d", 4000)}, []entry{active("a", 1000)})
	_, err := c.try()
	require.ErrorAs(t, err, new(*follow.DoubtError))
	require.ErrorContains(t, err, "entries that were handled are not in the feed any more")
	c.equals(held)
	s.chain([]entry{active("f", 6000), active("e", 5000), active("d", 4000)}, []entry{active("x", 3500), active("c", 3000)}, []entry{active("b", 2000), active("a", 1000)})
	r, err := c.try()
	require.NoError(t, err)
	require.Equal(t, []int{3, 0, 0}, []int{r.New, r.Changed, r.Removed})
	c.equals(want)
}

// An entry with an earlier time than those around it is taken, and does not have more documents read from then on.
func TestBackDatedEntry(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c", "d", "e", "late")
	before := [][]entry{{active("c", 3000)}, {active("b", 2000)}, {active("a", 1000)}}
	s.chain(append([][]entry{{active("d", 4000)}}, before...)...)
	c := s.copy()
	c.round()
	s.chain(append([][]entry{{active("late", 500), active("d", 4000)}}, before...)...)
	require.Equal(t, 1, c.round().New)
	s.Seen()
	s.chain(append([][]entry{{active("e", 5000), active("late", 500), active("d", 4000)}}, before...)...)
	r, err := c.try()
	require.NoError(t, err)
	require.Equal(t, 1, r.New)
	require.Equal(t, []string{"/feed", "/1", "/feed", "/r/e"}, s.Seen())
	c.equals(want)
}

// Removals above the limit are held back, until the records come back or a person confirms the removal.
func TestManyLossesAreHeld(t *testing.T) {
	s := newSite(t)
	ids := []string{"a", "b", "c", "d", "e", "f"}
	want := s.records(ids...)
	publish := func(ids ...string) {
		d := document{complete: true}
		for _, id := range ids {
			d.entries = append(d.entries, active(id, 10*int(id[0]-'a')))
		}
		s.set("/feed", d.String())
	}
	publish(ids...)
	c := s.copy()
	c.MaxLoss = func(lost, held int) error {
		if lost > 2 {
			return fmt.Errorf("%d of %d", lost, held)
		}
		return nil
	}
	c.round()
	doubt := func() *follow.DoubtError {
		t.Helper()
		_, err := c.try()
		d := new(follow.DoubtError)
		require.ErrorAs(t, err, &d)
		c.equals(want)
		return d
	}
	publish("a")
	for range 2 {
		require.Equal(t, follow.LossRecords, doubt().Loss)
	}
	for range 3 {
		d := doubt()
		require.Equal(t, follow.LossMany, d.Loss)
		require.Equal(t, "5 of 6", d.Reason)
		require.Equal(t, 5, d.Lost)
	}
	publish("a", "b", "c", "d", "e")
	c.MaxLoss = nil
	r, err := c.try()
	require.NoError(t, err)
	require.Equal(t, 1, r.Removed)
	delete(want, "f")
	c.equals(want)

	c.MaxLoss = func(lost, held int) error { return fmt.Errorf("%d of %d", lost, held) }
	publish("a", "b", "c", "d")
	doubt()
	doubt()
	require.Equal(t, follow.LossMany, doubt().Loss)
	publish("b", "c", "d", "e")
	d := doubt()
	require.Equal(t, follow.LossRecords, d.Loss, "the records held back are there")
	require.Equal(t, 1, d.Lost)
	publish("a", "b", "c", "d", "e")
	_, err = c.try()
	require.NoError(t, err)
	c.equals(want)
}
