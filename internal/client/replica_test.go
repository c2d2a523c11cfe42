package client_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// replica is a node that serves on a source of others, in its subscription egov.
type replica struct {
	*origin
	peer *subscriber
}

func newReplica(t *testing.T, of ...*origin) *replica {
	r := &replica{origin: newOrigin(t)}
	r.peer = newPeer(t, r.origin)
	o := client.SubscribeOptions{Replicate: true}
	for _, at := range of[1:] {
		o.Replicas = append(o.Replicas, at.FeedURL("egov"))
	}
	_, err := r.peer.Subscribe(t.Context(), of[0].FeedURL("egov"), o)
	require.NoError(t, err)
	return r
}

func (r *replica) sync(t *testing.T) *client.Round {
	t.Helper()
	round, err := r.peer.patiently("egov")
	require.NoError(t, err)
	return round
}

// outOfOrder is how a server answers that has broken down.
var outOfOrder = damage(func(*http.Request) bool { return true }, always, answering(http.StatusBadGateway))

// logOf returns the entries of the fragments feed of a server, the newest first, without links.
func logOf(t *testing.T, o *origin) (all []feeds.Entry) {
	t.Helper()
	for at := o.FeedURL("egov"); at != ""; {
		answer := o.Ask("GET", strings.TrimPrefix(at, o.URL), "", "")
		require.Equal(t, http.StatusOK, answer.Code, "%s: %s", at, answer.Body)
		feed, err := feeds.Decode(answer.Body, at, feeds.Limits{})
		require.NoError(t, err)
		for _, e := range feed.Entries {
			e.Links = nil
			all = append(all, e)
		}
		l, _ := feed.Link("prev-archive")
		at = l.Href
	}
	return all
}

// sameLog checks that a replica has the log of another node entry for entry, and the same state.
func sameLog(t *testing.T, o, of *origin) {
	t.Helper()
	require.Equal(t, logOf(t, of), logOf(t, o))
	digest := func(o *origin) string {
		answer := o.Ask("GET", "/topicmaps/egov/snapshots/current.xtm21", "", "")
		require.Equal(t, http.StatusOK, answer.Code)
		return answer.Header().Get("TMShare-Digest")
	}
	require.Equal(t, digest(of), digest(o))
}

// version makes a random map of a few topics whose identifiers and associations change.
func version(r *rand.Rand) string {
	parts := []string{vocabulary}
	for _, name := range []string{"oslo", "bergen", "lofoten", "tromso"} {
		switch r.IntN(4) {
		case 0:
		case 1:
			parts = append(parts, alias(name, fmt.Sprint("other-", r.IntN(3)), fmt.Sprint(name, r.IntN(9))))
		default:
			parts = append(parts, topic(name, fmt.Sprint(name, r.IntN(9))))
		}
	}
	parts = append(parts, topic("mid", "Mid"), topic("end", "End"))
	if r.IntN(2) == 0 {
		parts = append(parts, link("near", "mid", "end"))
	}
	return doc(parts...)
}

// A replica, and a replica of that, have the log of the origin entry for entry, after every round. Who begins from a replica, or from the
// beginning of its feed, has what the origin has.
func TestReplicasAreEqualEntryForEntry(t *testing.T) {
	for _, signed := range []bool{false, true} {
		t.Run(fmt.Sprint("signed ", signed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, 7))
			o := newOrigin(t)
			o.Create("egov", version(random))
			if signed {
				o.Sign("egov")
			}
			for range 5 {
				o.Put(version(random))
			}
			first := newReplica(t, o)
			first.sync(t)
			sameLog(t, first.origin, o)
			second := newReplica(t, first.origin)
			r := second.sync(t)
			require.True(t, r.Proven, "%+v", r)
			for i := range 12 {
				for range 1 + random.IntN(3) {
					o.Put(version(random))
				}
				if i == 6 {
					o.TakeSnapshot()
				}
				for _, node := range []*replica{first, second} {
					r := node.sync(t)
					missing, err := node.DB.Quarantine(t.Context(), "egov")
					require.NoError(t, err)
					require.True(t, r.Proven, "version %d: %+v %+v", i, r, missing)
				}
				sameLog(t, first.origin, o)
				sameLog(t, second.origin, first.origin)
				require.Zero(t, second.sync(t).Entries)
			}
			reader := newSubscriber(t)
			_, err := reader.Subscribe(t.Context(), second.FeedURL("egov"), client.SubscribeOptions{})
			require.NoError(t, err)
			r, err = reader.Sync(t.Context(), "egov")
			require.NoError(t, err)
			assert.True(t, r.Proven, "%+v", r)
			assert.Equal(t, signed, reader.known("egov").Key != "")
			records := newSubscriber(t)
			_, err = records.Subscribe(t.Context(), second.RecordsURL("egov", "/records"), client.SubscribeOptions{})
			require.NoError(t, err)
			_, err = records.Sync(t.Context(), "records")
			if err != nil {
				_, err = records.Sync(t.Context(), "egov")
			}
			require.NoError(t, err)
			for _, node := range []*replica{first, second} {
				err := node.DB.Check(t.Context(), false, func(f store.Finding) { t.Errorf("%+v", f) }, func(string) {})
				require.NoError(t, err)
			}
		})
	}
}

// Nobody writes to a replica but its origin, and who tries learns where that is.
func TestReplicasAreNotWritten(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.Create("egov", doc(topic("oslo", "Oslo")))
	r := newReplica(t, o)
	r.sync(t)
	for _, ask := range [][3]string{
		{"PUT", "/topicmaps/egov", doc(topic("oslo", "Christiania"))},
		{"POST", "/topicmaps/egov/topics", doc(topic("oslo", "Christiania"))},
		{"DELETE", "/topicmaps/egov/topics?si=" + "http://psi.example.org/oslo", ""},
		{"DELETE", "/topicmaps/egov", ""},
	} {
		answer := r.Ask(ask[0], ask[1], "application/xtm1+xml", ask[2])
		assert.Equal(t, http.StatusForbidden, answer.Code, "%s %s: %s", ask[0], ask[1], answer.Body)
		assert.Contains(t, answer.Body.String(), o.FeedURL("egov"))
		assert.Contains(t, answer.Header().Get("Link"), o.FeedURL("egov"))
	}
	answer := r.Ask("PUT", "/topicmaps/egov", "application/json", `{"omitInstances": true}`)
	assert.Equal(t, http.StatusForbidden, answer.Code)
	answer = r.Ask("PUT", "/topicmaps/egov", "application/json", `{"title": "A copy"}`)
	assert.Equal(t, http.StatusOK, answer.Code, answer.Body)
	sameLog(t, r.origin, o)

	require.NoError(t, r.peer.Unsubscribe(t.Context(), "egov"))
	assert.Equal(t, http.StatusNotFound, r.Ask("GET", "/topicmaps/egov/fragments", "", "").Code)
}

// A subscription with several addresses goes on while one of them is there, and a replica never has it throw anything away.
func TestAnotherAddressIsFollowedWhileTheFirstIsGone(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.Create("egov", doc(topic("oslo", "Oslo")))
	first, second := newReplica(t, o), newReplica(t, o)
	first.sync(t)
	second.sync(t)
	s := newSubscriber(t, func(c *client.Config) { c.Tries = 1 })
	_, err := s.Subscribe(t.Context(), o.FeedURL("egov"), client.SubscribeOptions{Replicas: []string{first.FeedURL("egov"), second.FeedURL("egov")}})
	require.NoError(t, err)
	s.sync()
	backup := o.Backup()

	o.Put(doc(topic("oslo", "Christiania")))
	second.sync(t)
	asked := time.Now() // the origin, for the last time
	o.BreakWith(outOfOrder)
	r := s.sync()
	assert.Equal(t, 1, r.Entries, "the second replica has it, the first is behind")
	assert.Equal(t, second.FeedURL("egov"), s.known("egov").FragmentsFeed)
	s.has(o, doc(topic("oslo", "Christiania")))
	known := s.known("egov")
	st := status.Of(&known, nil, time.Now())
	assert.False(t, st.InStep.After(asked), "nobody knows what the origin has by now")
	st.AdvanceInStep(time.Now(), time.Now())
	assert.False(t, st.InStep.After(asked))

	second.BreakWith(outOfOrder)
	r, err = s.syncFails()
	require.ErrorAs(t, err, new(*client.UnusableError), "what the first replica lacks is not thrown away")
	assert.False(t, r.CleanStart)
	s.has(o, doc(topic("oslo", "Christiania")))

	o.BreakWith(nil) // the origin has come back, from an old backup: a fork
	o.Restore(backup)
	o.Put(doc(topic("oslo", "Oslo, restored")))
	r = s.sync()
	assert.True(t, r.CleanStart, "the authority's word counts")
	s.has(o, doc(topic("oslo", "Oslo, restored")))
	assert.Equal(t, o.FeedURL("egov"), s.known("egov").FragmentsFeed)

	second.BreakWith(nil)
	assert.Zero(t, s.sync().Entries, "the second replica has the history that was given up")
	first.sync(t)
	assert.True(t, second.sync(t).CleanStart)
	sameLog(t, first.origin, o)
	sameLog(t, second.origin, o)
}

// What is in quarantine because a replica was out of order comes from there, though the origin is followed by then.
func TestQuarantineOfAnotherAddressIsReleased(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.Create("egov", doc(topic("oslo", "Oslo")))
	r := newReplica(t, o)
	r.sync(t)
	s := newSubscriber(t)
	_, err := s.Subscribe(t.Context(), o.FeedURL("egov"), client.SubscribeOptions{Replicas: []string{r.FeedURL("egov")}})
	require.NoError(t, err)
	s.sync()
	o.Put(doc(topic("oslo", "Christiania")))
	r.sync(t)
	o.BreakWith(outOfOrder)
	r.BreakWith(func(w http.ResponseWriter, asked *http.Request, _ http.Handler) bool {
		if !strings.Contains(asked.URL.Path, "/fragments/") || strings.Contains(asked.URL.Path, "/archive/") {
			return false
		}
		_, _ = w.Write([]byte("<topicMap"))
		return true
	})
	round, err := s.Sync(t.Context(), "egov")
	require.NoError(t, err)
	require.Equal(t, 1, round.Quarantined)
	o.BreakWith(nil)
	r.BreakWith(nil)
	o.Put(doc(topic("oslo", "Christiania"), topic("bergen", "Bergen")))
	s.sync()
	require.Equal(t, o.FeedURL("egov"), s.known("egov").FragmentsFeed)
	s.has(o, doc(topic("oslo", "Christiania"), topic("bergen", "Bergen")))
}

// A collection that has no topics yet is served on, too.
func TestReplicaOfAnEmptyCollection(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	require.Equal(t, http.StatusCreated, o.Ask("PUT", "/topicmaps/egov", "application/json", "{}").Code)
	r := newReplica(t, o)
	r.sync(t)
	for _, path := range []string{"", "/fragments", "/snapshots", "/snapshots/current.xtm21"} {
		answer := r.Ask("GET", "/topicmaps/egov"+path, "", "")
		require.Equal(t, http.StatusOK, answer.Code, "%s: %s", path, answer.Body)
	}
	o.Put(doc(topic("oslo", "Oslo")))
	r.sync(t)
	sameLog(t, r.origin, o)
}

// A snapshot that is later than the feed that a cache has kept is no beginning for a log.
func TestReplicaDoesNotBeginFromAnOldFeed(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.Create("egov", doc(topic("oslo", "Oslo")))
	old := o.Ask("GET", "/topicmaps/egov/fragments", "", "").Body.Bytes()
	o.Put(doc(topic("oslo", "Christiania")))
	o.TakeSnapshot()
	r := newReplica(t, o)
	read := 0
	o.BreakWith(func(w http.ResponseWriter, asked *http.Request, _ http.Handler) bool {
		if !strings.HasSuffix(asked.URL.Path, "/fragments") {
			return false
		}
		if read++; read != 2 { // the first is looked at, of the second the log is made
			return false
		}
		w.Header().Set("Content-Type", feeds.MediaTypeAtom)
		_, _ = w.Write(old)
		return true
	})
	_, err := r.peer.Sync(t.Context(), "egov")
	require.ErrorContains(t, err, "cache")
	o.BreakWith(nil)
	r.sync(t)
	o.Put(doc(topic("oslo", "Oslo, again")))
	r.sync(t)
	sameLog(t, r.origin, o)
}

// A replica that is an authority is believed only if it has seen its origin later than its subscriber was in step. That time does not go
// back with the clock of the origin: else a replica that was put back to what it was before would seem to have seen the origin later.
func TestAuthorityThatIsBehindWaits(t *testing.T) {
	t.Parallel()
	for name, passes := range map[string]time.Duration{"the clock goes on": time.Minute, "the clock is set back": -12 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
			o := publishing(t, doc(topic("oslo", "Oslo")), func(c *server.Config) { c.Now = func() time.Time { return now } })
			r := newReplica(t, o)
			r.sync(t)
			s := subscribed(t, r.origin)
			s.sync()
			now = now.Add(10 * time.Minute)
			r.sync(t)
			old := r.Backup()
			r.peer = newPeer(t, r.origin)
			now = now.Add(passes)
			o.Put(doc(topic("oslo", "Christiania")))
			r.sync(t)
			s.sync()

			r.Restore(old)
			r.peer = newPeer(t, r.origin)
			_, err := s.Sync(t.Context(), "egov")
			require.ErrorAs(t, err, new(*client.DoubtError))
			s.has(o, doc(topic("oslo", "Christiania")))
			r.sync(t)
			assert.False(t, s.sync().CleanStart)
			s.has(o, doc(topic("oslo", "Christiania")))
		})
	}
}

// A replica of which the log does not go back to the beginning is followed only once it has a snapshot: who began there would take the rest
// for the whole.
func TestPartialReplicaIsFollowedOnceItHasASnapshot(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(9, "v1")...), documentSize(3))
	o.Put(doc(topics(9, "v2")...))
	o.TakeSnapshot()
	require.Positive(t, pruneTo(o))
	r := newReplica(t, o)
	r.sync(t)
	a := r.Ask("GET", "/topicmaps/egov/fragments", "", "")
	require.Equal(t, http.StatusServiceUnavailable, a.Code)
	require.Contains(t, a.Body.String(), "this replica has no snapshot yet that its log goes on from: ask again in a few seconds, or ask the origin")
	require.Equal(t, "5", a.Header().Get("Retry-After"))
	r.TakeSnapshot()
	s := subscribed(t, r.origin)
	s.sync()
	s.has(o, doc(topics(9, "v2")...))

	o.Put(doc(topics(8, "v3")...)) // of most of them the log has no earlier entry
	r.sync(t)
	require.Empty(t, findings(t, r.DB), "how many topics it has, among others")
}

// headOf returns the head of the fragments feed of a server, and up to which time it says that it is in step with the origin.
func headOf(t *testing.T, o *origin) (*feeds.Feed, time.Time) {
	t.Helper()
	answer := o.Ask("GET", "/topicmaps/egov/fragments", "", "")
	require.Equal(t, http.StatusOK, answer.Code, "%s", answer.Body)
	checked, err := feeds.ParseTime(answer.Header().Get(feeds.CheckedHeader))
	require.NoError(t, err)
	feed, err := feeds.Decode(answer.Body, o.FeedURL("egov"), feeds.Limits{})
	require.NoError(t, err)
	return feed, checked
}

// Replicas pass on what the origin says of its database and of the time, and say nothing of their own: also that the origin was restored.
func TestReplicasPassOnOpeningsAndTimesOfTheOrigin(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.Create("egov", doc(topic("oslo", "Oslo")))
	first := newReplica(t, o)
	first.sync(t)
	second := newReplica(t, first.origin)
	second.sync(t)
	same := func() {
		t.Helper()
		of, now := headOf(t, o)
		require.NotEmpty(t, of.Openings)
		for _, r := range []*replica{first, second} {
			before := r.peer.known("egov").Checked
			head, checked := headOf(t, r.origin)
			assert.Equal(t, of.Openings, head.Openings)
			assert.True(t, checked.Before(now), "it is no later than what the origin has said")
			assert.True(t, before.Equal(checked), "%s %s", before, checked)
			l, ok := head.Link(feeds.RelOpenings)
			require.True(t, ok)
			list := r.Get(strings.TrimPrefix(l.Href, r.URL))
			for _, id := range of.Openings {
				assert.Contains(t, list, id)
			}
			for _, path := range []string{"/snapshots", "/snapshots/current", "/digest", "/records"} {
				answer := r.Ask("GET", "/topicmaps/egov"+path, "", "")
				assert.Equal(t, feeds.FormatTime(checked), answer.Header().Get(feeds.CheckedHeader), path)
			}
			tag := r.Ask("GET", "/topicmaps/egov/fragments", "", "").Header().Get("ETag")
			request := httptest.NewRequest("GET", r.FeedURL("egov"), nil)
			request.Header.Set("If-None-Match", tag)
			w := httptest.NewRecorder()
			r.Server.ServeHTTP(w, request)
			assert.Equal(t, http.StatusNotModified, w.Code)
			assert.Equal(t, feeds.FormatTime(checked), w.Header().Get(feeds.CheckedHeader))
		}
	}
	same()
	first.Restore(first.Backup()) // openings of its own are nobody's business
	first.peer = newPeer(t, first.origin)
	same()
	_, before := headOf(t, first.origin)
	for _, r := range []*replica{first, second} { // nothing new: the time goes on
		r.sync(t)
	}
	_, after := headOf(t, first.origin)
	assert.True(t, after.After(before))
	o.Restore(o.Backup())
	for _, r := range []*replica{first, second} {
		r.sync(t)
	}
	same()
}
