package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// rewriting answers the requests that it is for with the server's answer,
// changed.
func rewriting(wanted func(*http.Request) bool, change func(body string) string) fault {
	return func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !wanted(r) {
			return false
		}
		unconditional := r.Clone(r.Context())
		unconditional.Header.Del("If-None-Match")
		answer, body := record(real, unconditional)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(change(string(body))))
		return true
	}
}

func answering(status int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(status) }
}

// The server keeps no archive as old as the last round: only a snapshot can
// bring the client in step.
func TestArchiveThatIsGoneMeansACleanReplacement(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.put(doc(topics(9, "v2")...))
	o.takeSnapshot()
	o.put(doc(append(topics(8, "v2"), topic("t8", "v3"))...))
	o.breakWith(damage(isArchive, 1, answering(http.StatusGone)))
	r := s.sync()
	assert.True(t, r.CleanStart)
	assert.Equal(t, "the server keeps no history as old as the last round", r.Reason)
	assert.Contains(t, s.reported(), "egov: the server keeps no history as old as the last round; replacing the source from a snapshot")
	s.has(o, doc(append(topics(8, "v2"), topic("t8", "v3"))...))
	assert.Equal(t, client.Round{Name: "egov", Mark: r.Mark}, *s.sync())
}

// A chain that is broken is reported. It is neither taken for the end of the
// history nor for a reason to start anew.
func TestBrokenArchiveChainFailsTheRound(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.put(doc(topics(9, "v2")...))
	o.breakWith(damage(isArchive, always, answering(http.StatusNotFound)))
	_, err := s.syncFails()
	assert.ErrorContains(t, err, "the chain of the feed's documents is broken: "+o.URL)
	assert.ErrorContains(t, err, "404 Not Found")
	s.has(o, doc(topics(3, "v1")...))
	o.breakWith(nil)
	assert.False(t, s.sync().CleanStart)
	s.has(o, doc(topics(9, "v2")...))
}

func TestFeedThatLeadsInACircleFailsTheRound(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.put(doc(topics(19, "v2")...))
	newest := prevArchive(t, o.get("/topicmaps/egov/fragments"))
	for name, f := range map[string]fault{
		"to itself": rewriting(isArchive, func(body string) string {
			return replaceLink(body, "prev-archive", attribute(body, `rel="self"`, "href"), o)
		}),
		"to the newest":    rewriting(isArchive, func(body string) string { return replaceLink(body, "prev-archive", newest, o) }),
		"to the recent":    rewriting(isArchive, func(body string) string { return replaceLink(body, "prev-archive", "/topicmaps/egov/fragments", o) }),
		"recent to itself": rewriting(isRecent, func(body string) string { return replaceLink(body, "prev-archive", "/topicmaps/egov/fragments", o) }),
	} {
		o.breakWith(f)
		_, err := s.syncFails()
		assert.ErrorContains(t, err, "the documents of the feed lead in a circle", name)
		s.has(o, doc(topics(3, "v1")...))
	}
	o.breakWith(nil)
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
	o.put(doc(topics(9, "v2")...))
	_, err := s.syncFails()
	assert.ErrorContains(t, err, "the feed has more than 4 documents since the last round")
	assert.Equal(t, 4, len(o.seen()))
	s.has(o, doc(topics(3, "v1")...))
}

func TestDocumentOfAnotherFeedFailsTheRound(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.put(doc(topics(9, "v2")...))
	id := s.known("egov").FeedID
	o.breakWith(rewriting(isArchive, func(body string) string { return strings.Replace(body, id, "urn:uuid:0", 1) }))
	_, err := s.syncFails()
	assert.ErrorContains(t, err, "belongs to another feed (urn:uuid:0)")
	s.has(o, doc(topics(3, "v1")...))
}

// A server on a new database has a new feed: what it had before may be gone
// without an entry that says so.
func TestNewFeedMeansACleanReplacement(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(o *origin, s *subscriber){
		"after a clean start":    func(*origin, *subscriber) {},
		"after a partial update": func(o *origin, s *subscriber) { o.put(doc(topics(6, "v2")...)); s.sync() },
		"after an unfinished round": func(o *origin, s *subscriber) {
			o.put(doc(topics(6, "v2")...))
			o.breakWith(damage(isFragmentOf(o, "t3"), always, answering(429)))
			s.syncFails()
			o.breakWith(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(5, "v1")...))
			s := inStep(t, o)
			between(o, s)
			o.rebuild()
			o.create("egov", doc(topics(3, "new")...))
			o.put(doc(topics(4, "newer")...))
			r := s.sync()
			assert.True(t, r.CleanStart)
			assert.Equal(t, "the feed has a new id: the server has begun a new history", r.Reason)
			s.has(o, doc(topics(4, "newer")...))
			assert.Equal(t, client.Round{Name: "egov", Mark: r.Mark}, *s.sync())
		})
	}
}

// The old state is shown until the new one is complete, and nothing of the new
// feed is ever applied to it.
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
			s := inStep(t, o)
			o.rebuild()
			o.create("egov", doc(topics(3, "new")...))
			o.put(doc(topics(4, "newer")...))
			o.breakWith(damage(wanted, always, answering(429)))
			for range 3 {
				s.syncFails()
				s.has(o, doc(topics(5, "v1")...))
			}
			o.breakWith(nil)
			assert.True(t, s.sync().CleanStart)
			s.has(o, doc(topics(4, "newer")...))
		})
	}
}

// A snapshot may be of a time at which the feed has no entry. The mark is then
// none that a new feed would lack, and the feed's id alone shows that it is new.
func TestNewFeedIsSeenByItsIdAlone(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	o := publishing(t, doc(topics(5, "v1")...), func(c *server.Config) { c.Now = func() time.Time { return now } })
	entry := regexp.MustCompile(`(?s)(<entry>.*<updated>)[^<]*`)
	o.breakWith(rewriting(isSnapshots, func(body string) string { return entry.ReplaceAllString(body, "${1}2024-05-02T00:00:00Z") }))
	s := inStep(t, o)
	assert.Equal(t, 2, s.known("egov").State.Mark.Updated.Day())

	now = now.AddDate(0, 0, 7)
	o.rebuild()
	o.create("egov", doc(topics(3, "new")...))
	o.breakWith(damage(isSnapshots, always, answering(500)))
	s.syncFails()
	s.has(o, doc(topics(5, "v1")...))
	o.breakWith(nil)
	assert.True(t, s.sync().CleanStart)
	s.has(o, doc(topics(3, "new")...))
}

// A server restored from a backup has the same feed, but what it published after
// the backup is not there any more, and what it publishes next may come later
// than the mark.
func TestServerRestoredFromABackupMeansACleanReplacement(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(o *origin, t *testing.T) *subscriber{
		"after a partial update": func(o *origin, t *testing.T) *subscriber {
			s := inStep(t, o)
			o.put(doc(topics(6, "lost")...))
			s.sync()
			return s
		},
		"after a clean start from a snapshot": func(o *origin, t *testing.T) *subscriber {
			o.put(doc(topics(6, "lost")...))
			o.takeSnapshot()
			return inStep(t, o)
		},
		"after a clean start and fragments": func(o *origin, t *testing.T) *subscriber {
			o.put(doc(topics(6, "lost")...))
			return inStep(t, o)
		},
		"after half a round": func(o *origin, t *testing.T) *subscriber {
			s := inStep(t, o)
			o.put(doc(topics(6, "lost")...))
			o.breakWith(damage(isFragmentOf(o, "t3"), always, answering(429)))
			s.syncFails()
			o.breakWith(nil)
			return s
		},
	} {
		for next, publish := range map[string]func(*origin) string{
			"nothing published since": func(*origin) string { return doc(topics(5, "v1")...) },
			"published since": func(o *origin) string {
				next := doc(append(topics(4, "v1"), topic("t4", "after"))...)
				o.put(next)
				return next
			},
			"as much published since": func(o *origin) string {
				o.put(doc(topics(6, "after")...))
				return doc(topics(6, "after")...)
			},
		} {
			t.Run(name+"/"+next, func(t *testing.T) {
				t.Parallel()
				o := publishing(t, doc(topics(5, "v1")...), documentSize(4))
				saved := o.backup()
				s := lost(o, t)
				o.restore(saved)
				expected := publish(o)
				r := s.sync()
				assert.True(t, r.CleanStart)
				assert.Equal(t, "the last entry that was applied is not in the feed any more", r.Reason)
				s.has(o, expected)
				assert.Equal(t, client.Round{Name: "egov", Mark: r.Mark}, *s.sync())
			})
		}
	}
}

// A server may be put back to a copy of its data folder that nobody has declared, while its
// clock is behind its last entry. Then its next entries have the times and the sequences
// of those that are lost, but neither their identifiers nor their addresses.
func TestRestoredServerWhoseClockWasAheadIsNoticed(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)
	o := publishing(t, doc(topics(5, "v1")...), documentSize(4), func(c *server.Config) { c.Now = func() time.Time { return now } })
	now = now.AddDate(-6, 0, 0)
	saved := o.backup()
	s := inStep(t, o)
	o.put(doc(topics(9, "lost")...))
	s.sync()
	lost := closedDocuments(t, o)
	mark := s.known("egov").State.Mark

	o.restore(saved)
	o.put(doc(topics(9, "after")...))
	r := s.sync()
	assert.True(t, r.CleanStart)
	assert.Equal(t, "the last entry that was applied is not in the feed any more", r.Reason)
	assert.Equal(t, mark.Updated, r.Mark, "the times are the same")
	s.has(o, doc(topics(9, "after")...))
	verified, err := s.Verify(context.Background(), "egov")
	require.NoError(t, err)
	assert.True(t, verified.Equal)
	for _, address := range closedDocuments(t, o) {
		assert.NotContains(t, lost[1:], address)
	}
	for _, address := range lost[1:] {
		w := httptest.NewRecorder()
		o.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, o.URL+address, nil))
		assert.Equal(t, http.StatusGone, w.Code, address)
	}
}

// closedDocuments returns the addresses of the archive documents of egov, the oldest first.
func closedDocuments(t *testing.T, o *origin) (all []string) {
	t.Helper()
	for at := prevArchive(t, o.get("/topicmaps/egov/fragments")); at != ""; at = attribute(o.get(at), `rel="prev-archive"`, "href") {
		all = append([]string{at}, all...)
	}
	require.Greater(t, len(all), 2)
	return all
}

// A clean start that was interrupted right after the snapshot was loaded has applied no
// entry yet. When the server is restored from a backup meanwhile, what was loaded is of a
// history that is lost.
func TestServerRestoredDuringACleanStartIsNoticed(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"the newest entry is known": true, "no entry is known, as in earlier programs": false} {
		for since, publish := range map[string]func(*origin) string{
			"nothing published since": func(o *origin) string { return doc(topics(3, "v1")...) },
			"published since":         func(o *origin) string { o.put(doc(topics(2, "after")...)); return doc(topics(2, "after")...) },
		} {
			for behind, snapshotLast := range map[string]bool{"the snapshot is the last change": true, "more came after it": false} {
				t.Run(strings.Join([]string{name, since, behind}, "/"), func(t *testing.T) {
					t.Parallel()
					o := publishing(t, doc(topics(3, "v1")...), documentSize(4))
					saved := o.backup()
					o.put(doc(topics(40, "lost")...))
					o.takeSnapshot()
					if !snapshotLast {
						o.put(doc(topics(41, "lost")...))
					}
					s := subscribed(t, o)
					stagedOnly(t, s, o)
					if !kept {
						require.NoError(t, s.db.UpdateSubscription(o.t.Context(), "egov", func(s *store.Subscription) {
							s.Staging.Mark.Handled, s.Staging.Mark.Relied = nil, ""
						}))
					}
					o.restore(saved)
					expected := publish(o)
					s.sync()
					s.has(o, expected)
					assert.False(t, s.sync().CleanStart)
				})
			}
		}
	}
}

// A clean start that was interrupted goes on with what is loaded where the history is the same.
func TestCleanStartGoesOnWithTheSnapshotThatIsLoaded(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	o.put(doc(topics(4, "v2")...))
	s := subscribed(t, o)
	stagedOnly(t, s, o)
	o.put(doc(topics(5, "v3")...))
	o.seen()
	s.sync()
	assert.Zero(t, times(o.seen(), "/snapshots"))
	s.has(o, doc(topics(5, "v3")...))
}

// stagedOnly interrupts the clean start of egov when the snapshot is loaded and nothing else
// is done.
func stagedOnly(t *testing.T, s *subscriber, o *origin) {
	t.Helper()
	interrupted, cancel := context.WithCancel(context.Background())
	o.breakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
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
	o.breakWith(nil)
}

// A round passes over entries for the sake of later ones of the same topics. One
// that ends half way relies on those, so that they must be there the next time.
func TestServerRestoredFromABackupAfterHalfARoundIsNoticed(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o, func(c *client.Config) { c.Batch, c.Parallel = 1, 1 })
	o.put(doc(append(topics(2, "v2"), topics(3, "v1")[2])...))
	saved := o.backup()
	o.put(doc(topic("t0", "Topic 0 v3"), topics(2, "v2")[1], topics(3, "v1")[2]))
	o.breakWith(damage(isFragmentOf(o, "t0"), always, answering(429)))
	r, _ := s.syncFails() // t0 of v2 is passed over, t1 applied, t0 of v3 fails
	assert.Equal(t, 1, r.Applied)
	o.breakWith(nil)

	o.restore(saved)
	assert.True(t, s.sync().CleanStart)
	s.has(o, doc(append(topics(2, "v2"), topics(3, "v1")[2])...))
}

// A prefix that changes could delete everything: nothing is touched.
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
			require.Regexp(t, sp, o.get("/topicmaps/egov/fragments"))
			s := inStep(t, o)
			before := s.known("egov")
			o.put(doc(topics(9, "v2")...))
			o.breakWith(f("<tmshare:ServerSrcLocatorPrefix>http://</tmshare:ServerSrcLocatorPrefix>"))
			for _, round := range []func(context.Context, string) (*client.Round, error){s.Sync, s.Replace} {
				_, err := round(context.Background(), "egov")
				var changed *client.PrefixError
				require.ErrorAs(t, err, &changed)
				assert.Equal(t, o.sp("egov"), changed.Pinned)
				assert.Equal(t, "http://", changed.Found)
				assert.ErrorContains(t, err, "nothing was changed")
				s.has(o, doc(topics(3, "v1")...))
				assert.Equal(t, before.State, s.known("egov").State)
			}
			if name == "in the recent document" {
				o.breakWith(f(""))
				_, err := s.syncFails()
				assert.ErrorContains(t, err, "has no ServerSrcLocatorPrefix any more")
				s.has(o, doc(topics(3, "v1")...))
			}
			o.breakWith(nil)
			s.sync()
			s.has(o, doc(topics(9, "v2")...))
		})
	}
}

func TestPrefixOfTheSnapshotsMustBeTheSame(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := subscribed(t, o)
	o.breakWith(rewriting(isSnapshots, func(body string) string {
		return strings.ReplaceAll(body, o.sp("egov")+"<", "http://other.example.org/<")
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
	s := inStep(t, o)
	o.put(doc(topics(5, "v2")...))
	f := damage(isFragmentOf(o, "t3"), 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		o.put(doc(append(topics(3, "v2"), topic("t3", "v3"), topic("t4", "v3"))...))
		w.WriteHeader(http.StatusGone)
	})
	o.breakWith(f)
	r := s.sync()
	assert.Equal(t, 7, r.Entries)
	assert.Equal(t, 5, r.Applied)
	assert.False(t, r.CleanStart)
	s.has(o, doc(append(topics(3, "v2"), topic("t3", "v3"), topic("t4", "v3"))...))
}

func TestFragmentThatIsGoneWithoutALaterEntryIsInQuarantine(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o)
	o.put(doc(topics(5, "v2")...))
	o.breakWith(damage(isFragmentOf(o, "t3"), always, answering(http.StatusGone)))
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "410 Gone, and the feed has no later entry for its topic")
	assert.Contains(t, o.seen(), "/egov/fragments", "the feed was read again, unconditionally")
	s.has(o, doc(append(topics(3, "v2"), topics(5, "v1")[3], topics(5, "v2")[4])...))
	o.breakWith(nil)
	s.sync()
	s.has(o, doc(topics(5, "v2")...))
}

// A mark that has gone back to what was in quarantine, and whose round then failed, still shows
// that the server was restored meanwhile.
func TestRestoredServerWhileTheMarkIsBack(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...), documentSize(3))
	s := subscribed(t, o)
	saved := o.backup()
	o.put(doc(topics(7, "lost")...))
	var part func(*http.Request) bool
	o.breakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if part(r) {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	})
	unlucky := ""
	part = func(r *http.Request) bool { // of the fragments, the first one that is asked for
		if isFragment(r) && unlucky == "" {
			unlucky = r.URL.Path
		}
		return r.URL.Path == unlucky
	}
	s.configure(func(c *client.Config) { c.Parallel = 1 })
	s.syncPasses(1)
	part = func(r *http.Request) bool { return !isFragment(r) }
	s.syncFails()
	o.breakWith(nil)
	o.restore(saved)
	s.sync()
	s.has(o, doc(topics(5, "v1")...))
}
