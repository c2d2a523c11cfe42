package client_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// The server keeps no archive as old as the last round: only a snapshot can
// bring the client in step.
func TestArchiveThatIsGoneMeansACleanReplacement(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.Put(doc(topics(9, "v2")...))
	o.TakeSnapshot()
	o.Put(doc(append(topics(8, "v2"), topic("t8", "v3"))...))
	o.BreakWith(damage(isArchive, 3, answering(http.StatusGone)))
	r := s.sync()
	assert.True(t, r.CleanStart)
	assert.Equal(t, "the server keeps no history as old as the last round", r.Reason)
	assert.Contains(t, s.reported(), "egov: the server keeps no history as old as the last round; replacing the source from a snapshot")
	s.has(o, doc(append(topics(8, "v2"), topic("t8", "v3"))...))
	assert.Equal(t, client.Round{Name: "egov", Mark: r.Mark, Proven: true}, *s.sync())
}

// A broken chain of archive documents is reported. It neither ends the history nor causes a replacement.
func TestBrokenArchiveChainFailsTheRound(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.Put(doc(topics(9, "v2")...))
	o.BreakWith(damage(isArchive, always, answering(http.StatusNotFound)))
	_, err := s.syncFails()
	assert.ErrorContains(t, err, "the chain of the feed's documents is broken: "+o.URL)
	assert.ErrorContains(t, err, "404 Not Found")
	s.has(o, doc(topics(3, "v1")...))
	o.BreakWith(nil)
	assert.False(t, s.sync().CleanStart)
	s.has(o, doc(topics(9, "v2")...))
}

func TestFeedThatLeadsInACircleFailsTheRound(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.Put(doc(topics(19, "v2")...))
	newest := prevArchive(t, o.Get("/topicmaps/egov/fragments"))
	for name, f := range map[string]fault{
		"to itself": rewriting(isArchive, func(body string) string {
			return replaceLink(body, "prev-archive", attribute(body, `rel="self"`, "href"), o)
		}),
		"to the newest":    rewriting(isArchive, func(body string) string { return replaceLink(body, "prev-archive", newest, o) }),
		"to the recent":    rewriting(isArchive, func(body string) string { return replaceLink(body, "prev-archive", "/topicmaps/egov/fragments", o) }),
		"recent to itself": rewriting(isRecent, func(body string) string { return replaceLink(body, "prev-archive", "/topicmaps/egov/fragments", o) }),
	} {
		o.BreakWith(f)
		_, err := s.syncFails()
		assert.ErrorContains(t, err, "the documents of the feed lead in a circle", name)
		s.has(o, doc(topics(3, "v1")...))
	}
	o.BreakWith(nil)
	s.sync()
	s.has(o, doc(topics(19, "v2")...))
}

// replaceLink lets a link of a feed lead to another path.
func replaceLink(feed, rel, path string, o *origin) string {
	link := regexp.MustCompile(`<link [^>]*rel="` + rel + `"[^>]*>`)
	return link.ReplaceAllString(feed, `<link rel="`+rel+`" href="`+o.URL+path+`"/>`)
}

func TestFeedOfTooManyDocumentsFailsTheRound(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(1))
	s := inStep(t, o, func(c *client.Config) { c.MaxDocs = 4 })
	o.Put(doc(topics(9, "v2")...))
	_, err := s.syncFails()
	assert.ErrorContains(t, err, "the feed has more than 4 documents that are new")
	assert.Equal(t, 4, len(o.Seen()))
	s.has(o, doc(topics(3, "v1")...))
}

func TestDocumentOfAnotherFeedFailsTheRound(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.Put(doc(topics(9, "v2")...))
	id := s.known("egov").FeedID
	o.BreakWith(rewriting(isArchive, func(body string) string { return strings.Replace(body, id, "urn:uuid:0", 1) }))
	_, err := s.syncFails()
	assert.ErrorContains(t, err, "belongs to another feed (urn:uuid:0)")
	s.has(o, doc(topics(3, "v1")...))
}

// The old state is visible until the new one is complete, and no entry of the new feed is ever applied to it.
func TestCleanReplacementThatFailsLeavesTheOldState(t *testing.T) {
	t.Parallel()
	for name, wanted := range map[string]func(*http.Request) bool{
		"snapshots feed": isSnapshots,
		"snapshot":       isSnapshot,
		"fragment":       isFragment,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(5, "v1")...))
			s := inStep(t, o, singly)
			o.Rebuild()
			o.Create("egov", doc(topics(3, "new")...))
			o.Put(doc(topics(4, "newer")...))
			o.BreakWith(damage(wanted, always, answering(429)))
			for range 3 {
				s.syncFails()
				s.has(o, doc(topics(5, "v1")...))
			}
			o.BreakWith(nil)
			assert.True(t, s.sync().CleanStart)
			s.has(o, doc(topics(4, "newer")...))
		})
	}
}

// A snapshot may have a time without an entry in the feed. The mark is then none that a new feed would lack, and only
// the feed's id shows that it is new.
func TestNewFeedIsSeenByItsIdAlone(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	o := publishing(t, doc(), func(c *server.Config) { c.Now = func() time.Time { return now } })
	s := inStep(t, o)
	assert.Equal(t, 1, s.known("egov").State.Mark.Updated.Day())

	now = now.AddDate(0, 0, 7)
	o.Rebuild()
	o.Create("egov", doc(topics(3, "new")...))
	o.BreakWith(damage(isSnapshots, always, answering(500)))
	s.syncFails()
	s.has(o, doc())
	o.BreakWith(nil)
	r := s.sync()
	assert.True(t, r.CleanStart)
	assert.Equal(t, "the feed has a new id: the server has begun a new history", r.Reason)
	s.has(o, doc(topics(3, "new")...))
}

// The time of a snapshot is that of its last change, on servers that state deletions. On others it may be later than
// all entries.
func TestSnapshotLaterThanAllEntriesOfOtherServers(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	entry := regexp.MustCompile(`(?s)(<entry .*<updated>)[^<]*`)
	later := rewriting(isSnapshots, func(body string) string { return entry.ReplaceAllString(body, "${1}2099-05-02T00:00:00Z") })
	stateless := rewriting(isRecent, func(body string) string { return ownState.ReplaceAllString(body, "") })
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		return later(w, r, real) || stateless(w, r, real)
	})
	s := subscribed(t, o)
	s.mayDiffer = true
	s.sync()
	s.has(o, doc(topics(5, "v1")...))
}

var ownState = regexp.MustCompile(`<own:state>[^<]*</own:state>`)

// A server may be restored from an undeclared copy of its data folder while its clock is behind its last entry. Then
// its next entries have the times and the sequences of the lost ones, but other identifiers and addresses.
func TestRestoredServerWhoseClockWasAheadIsNoticed(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)
	o := publishing(t, doc(topics(5, "v1")...), documentSize(4), func(c *server.Config) { c.Now = func() time.Time { return now } })
	now = now.AddDate(-6, 0, 0)
	saved := o.Backup()
	s := inStep(t, o)
	o.Put(doc(topics(9, "lost")...))
	s.sync()
	lost := closedDocuments(t, o)
	mark := s.known("egov").State.Mark

	o.Restore(saved)
	o.Put(doc(topics(9, "after")...))
	r := s.sync()
	assert.True(t, r.CleanStart)
	assert.Equal(t, "the last entry that was applied is not in the feed any more", r.Reason)
	assert.Equal(t, mark.Updated, r.Mark, "the times are the same")
	s.has(o, doc(topics(9, "after")...))
	verified, err := s.Verify(context.Background(), "egov", true)
	require.NoError(t, err)
	assert.True(t, verified.Equal)
	for _, address := range closedDocuments(t, o) {
		assert.NotContains(t, lost[1:], address)
	}
	for _, address := range lost[1:] {
		w := httptest.NewRecorder()
		o.Server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, o.URL+address, nil))
		assert.Equal(t, http.StatusGone, w.Code, address)
	}
}

// closedDocuments returns the addresses of the archive documents of egov, the oldest first.
func closedDocuments(t *testing.T, o *origin) (all []string) {
	t.Helper()
	for at := prevArchive(t, o.Get("/topicmaps/egov/fragments")); at != ""; at = attribute(o.Get(at), `rel="prev-archive"`, "href") {
		all = append([]string{at}, all...)
	}
	require.Greater(t, len(all), 2)
	return all
}

// A cache may still have a snapshot of the history that was lost when a server was restored from a backup. It fits the
// feed except for its time, and the wrong copy would stay proven.
func TestSnapshotOfAHistoryThatWasGivenUpIsNotLoaded(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	saved := o.Backup()
	o.Put(doc(topics(9, "lost")...))
	o.TakeSnapshot()
	s := subscribed(t, o)
	o.BreakWith(remembering(func(r *http.Request) bool { return isSnapshots(r) || isSnapshot(r) }))
	s.sync()

	o.Restore(saved)
	for range 2 {
		o.Seen()
		_, err := s.syncFails()
		assert.ErrorContains(t, err, "the newest snapshot does not fit the feed: the snapshot is later than all entries of the feed")
		assert.Equal(t, 1, times(o.Seen(), "/snapshots/"), "it is not tried for ever")
		s.has(o, doc(topics(9, "lost")...))
	}
	o.BreakWith(nil)
	assert.True(t, s.sync().CleanStart)
	s.has(o, doc(topics(3, "v1")...))
	assert.False(t, s.sync().CleanStart)
}

// A cache may have a feed that is older than the copy, which looks as if the server had been put back to a backup.
func TestCacheThatIsBehindIsNoOtherHistory(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := subscribed(t, o)
	s.sync()
	stale := remembering(isRecent)
	o.BreakWith(stale)
	_, err := s.Sync(t.Context(), "egov") // which the cache keeps
	require.NoError(t, err)
	o.BreakWith(nil)
	o.Put(doc(topics(5, "v2")...))
	s.sync()

	for _, left := range []int{1, always} { // the number of cached answers
		o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
			if !isRecent(r) || r.Header.Get("Cache-Control") == "no-cache" || left == 0 {
				return false
			}
			left--
			return stale(w, r, real)
		})
		r, err := s.Sync(t.Context(), "egov")
		require.NoError(t, err, "it is asked past the cache")
		assert.False(t, r.CleanStart)
		assert.True(t, r.Proven)
		s.has(o, doc(topics(5, "v2")...))
	}
	o.BreakWith(nil)
	assert.False(t, s.sync().CleanStart)
	s.has(o, doc(topics(5, "v2")...))
}

// remembering is a cache: it answers the requests that it is for as they were answered first.
func remembering(wanted func(*http.Request) bool) fault {
	var kept sync.Map // of answers, by path
	return func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !wanted(r) {
			return false
		}
		answer, body := record(real, r)
		first, _ := kept.LoadOrStore(r.URL.Path, func(w http.ResponseWriter) {
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(body)
		})
		first.(func(http.ResponseWriter))(w)
		return true
	}
}

// A clean start that was interrupted after loading the snapshot has applied no entry yet. If the server is restored
// from a backup meanwhile, the loaded snapshot belongs to a lost history.
func TestServerRestoredDuringACleanStartIsNoticed(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"the newest entry is known": true, "no entry is known, as in earlier programs": false} {
		for since, publish := range map[string]func(*origin) string{
			"nothing published since": func(o *origin) string { return doc(topics(3, "v1")...) },
			"published since":         func(o *origin) string { o.Put(doc(topics(2, "after")...)); return doc(topics(2, "after")...) },
		} {
			for behind, snapshotLast := range map[string]bool{"the snapshot is the last change": true, "more came after it": false} {
				t.Run(strings.Join([]string{name, since, behind}, "/"), func(t *testing.T) {
					t.Parallel()
					o := publishing(t, doc(topics(3, "v1")...), documentSize(4))
					saved := o.Backup()
					o.Put(doc(topics(40, "lost")...))
					o.TakeSnapshot()
					if !snapshotLast {
						o.Put(doc(topics(41, "lost")...))
					}
					s := subscribed(t, o)
					stagedOnly(t, s, o)
					if !kept {
						require.NoError(t, s.db.UpdateSubscription(o.T.Context(), "egov", func(s *store.Subscription) {
							s.Staging.Mark.Handled, s.Staging.Mark.Relied = nil, ""
						}))
					}
					o.Restore(saved)
					expected := publish(o)
					s.sync()
					s.has(o, expected)
					assert.False(t, s.sync().CleanStart)
				})
			}
		}
	}
}

// An interrupted clean start continues with the loaded snapshot if the history is the same.
func TestCleanStartGoesOnWithTheSnapshotThatIsLoaded(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	o.Put(doc(topics(4, "v2")...))
	s := subscribed(t, o)
	stagedOnly(t, s, o)
	o.Put(doc(topics(5, "v3")...))
	o.Seen()
	s.sync()
	assert.Zero(t, times(o.Seen(), "/snapshots"))
	s.has(o, doc(topics(5, "v3")...))
}

// stagedOnly interrupts the clean start of egov after the snapshot was loaded.
func stagedOnly(t *testing.T, s *subscriber, o *origin) {
	t.Helper()
	interrupted, cancel := context.WithCancel(context.Background())
	o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isRecent(r) && s.known("egov").Staging != nil {
			cancel()
		}
		return false
	})
	_, err := s.Sync(interrupted, "egov")
	require.ErrorIs(t, err, context.Canceled)
	staging := s.known("egov").Staging
	require.NotNil(t, staging)
	require.True(t, staging.Snapshot)
	require.Zero(t, staging.Applied)
	o.BreakWith(nil)
}

// A changed prefix could delete everything: no record is changed.
func TestPrefixThatChangesStopsEverything(t *testing.T) {
	t.Parallel()
	sp := regexp.MustCompile(`<(tmshare|cwa):ServerSrcLocatorPrefix>[^<]*</(tmshare|cwa):ServerSrcLocatorPrefix>`)
	for name, f := range map[string]func(found string) fault{
		"in the recent document": func(found string) fault {
			return rewriting(isRecent, func(body string) string { return sp.ReplaceAllString(body, found) })
		},
		"in an archive document": func(found string) fault {
			return rewriting(isArchive, func(body string) string { return sp.ReplaceAllString(body, found) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
			require.Regexp(t, sp, o.Get("/topicmaps/egov/fragments"))
			s := inStep(t, o)
			before := s.known("egov")
			o.Put(doc(topics(9, "v2")...))
			o.BreakWith(f("<tmshare:ServerSrcLocatorPrefix>http://</tmshare:ServerSrcLocatorPrefix>"))
			for _, round := range []func(context.Context, string) (*client.Round, error){s.Sync, s.Replace} {
				_, err := round(context.Background(), "egov")
				var changed *client.PrefixError
				require.ErrorAs(t, err, &changed)
				assert.Equal(t, o.SP("egov"), changed.Pinned)
				assert.Equal(t, "http://", changed.Found)
				assert.ErrorContains(t, err, "nothing was changed")
				s.has(o, doc(topics(3, "v1")...))
				assert.Equal(t, before.State, s.known("egov").State)
			}
			if name == "in the recent document" {
				o.BreakWith(f(""))
				_, err := s.syncFails()
				assert.ErrorContains(t, err, "has no ServerSrcLocatorPrefix any more")
				s.has(o, doc(topics(3, "v1")...))
			}
			o.BreakWith(nil)
			s.sync()
			s.has(o, doc(topics(9, "v2")...))
		})
	}
}

func TestPrefixOfTheSnapshotsMustBeTheSame(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := subscribed(t, o)
	o.BreakWith(rewriting(isSnapshots, func(body string) string {
		return strings.ReplaceAll(body, o.SP("egov")+"<", "http://other.example.org/<")
	}))
	_, err := s.syncFails()
	var changed *client.PrefixError
	require.ErrorAs(t, err, &changed)
	assert.Equal(t, "http://other.example.org/", changed.Found)
}

// A fragment that is not kept any more has a later entry for its topic, which
// another look at the feed shows.
func TestFragmentThatIsGoneHasALaterEntry(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o, singly)
	o.Put(doc(topics(5, "v2")...))
	f := damage(isFragmentOf(o, "t3"), 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		o.Put(doc(append(topics(3, "v2"), topic("t3", "v3"), topic("t4", "v3"))...))
		w.WriteHeader(http.StatusGone)
	})
	o.BreakWith(f)
	r := s.sync()
	assert.Equal(t, 7, r.Entries)
	assert.Equal(t, 5, r.Applied)
	assert.False(t, r.CleanStart)
	s.has(o, doc(append(topics(3, "v2"), topic("t3", "v3"), topic("t4", "v3"))...))
}

func TestFragmentThatIsGoneWithoutALaterEntryIsInQuarantine(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o, singly)
	o.Put(doc(topics(5, "v2")...))
	o.BreakWith(damage(isFragmentOf(o, "t3"), always, answering(http.StatusGone)))
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "410 Gone, and the feed has no later entry for its topic")
	assert.Contains(t, o.Seen(), "/egov/fragments", "the feed was read again, unconditionally")
	s.has(o, doc(append(topics(3, "v2"), topics(5, "v1")[3], topics(5, "v2")[4])...))
	o.BreakWith(nil)
	s.sync()
	s.has(o, doc(topics(5, "v2")...))
}

// An interrupted replacement is dropped after a correct reading of the source: the round continues from the copy.
func TestAReplacementThatWasInterruptedIsGivenUpForARightReading(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	o.Put(doc(topics(6, "v1")...))
	saved := o.Backup()
	s := inStep(t, o, singly)
	o.Put(doc(topics(9, "v1")...))
	s.sync()
	right := o.Dir

	o.Restore(saved)
	o.Put(doc(topics(7, "other")...))
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isFragment(r) {
			w.WriteHeader(http.StatusBadGateway)
		}
		return isFragment(r)
	})
	s.syncFails()
	interrupted := s.known("egov")
	require.NotNil(t, interrupted.Staging, "what was to replace the copy is staged")
	require.NotNil(t, client.DoubtOf(&interrupted))

	o.Restore(right)
	o.BreakWith(nil)
	o.Put(doc(topics(9, "v2")...))
	r, err := s.Sync(t.Context(), "egov")
	require.NoError(t, err)
	assert.False(t, r.CleanStart)
	assert.True(t, r.Proven)
	assert.Nil(t, s.known("egov").Staging)
	s.has(o, doc(topics(9, "v2")...))
}
