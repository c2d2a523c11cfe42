package client_test

import (
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/node"
)

// replica is a node that serves on a source of others, in its subscription egov.
type replica struct {
	*origin
	peer *subscriber
}

func newReplica(t *testing.T, origins ...*origin) *replica {
	return newReplicaAt(t, newOrigin(t), origins...)
}

func newReplicaAt(t *testing.T, at *origin, origins ...*origin) *replica {
	r := &replica{origin: at}
	r.peer = newPeer(t, r.origin)
	o := client.SubscribeOptions{Replicate: true}
	for _, at := range origins[1:] {
		o.Replicas = append(o.Replicas, at.FeedURL("egov"))
	}
	_, err := r.peer.Subscribe(t.Context(), origins[0].FeedURL("egov"), o)
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
func logOf(t *testing.T, o *origin) []feeds.Entry {
	t.Helper()
	all := entriesOf(t, o)
	for i := range all {
		all[i].Links = nil
	}
	return all
}

// entriesOf returns the entries of the fragments feed of a server, the newest first.
func entriesOf(t *testing.T, o *origin) (all []feeds.Entry) {
	t.Helper()
	for at := o.FeedURL("egov"); at != ""; {
		answer := o.Ask("GET", strings.TrimPrefix(at, o.URL), "", "")
		require.Equal(t, http.StatusOK, answer.Code, "%s: %s", at, answer.Body)
		feed, err := feeds.Decode(answer.Body, at, feeds.Limits{})
		require.NoError(t, err)
		for i := range feed.Entries { // only the recent document has data for feed readers
			e := &feed.Entries[i]
			e.Changes, e.SummaryLanguage = "", ""
			e.Links = slices.DeleteFunc(e.Links, func(l feeds.Link) bool { return l.Type == "text/html" })
		}
		all = append(all, feed.Entries...)
		l, _ := feed.Link("prev-archive")
		at = l.Href
	}
	return all
}

// sameLog checks that a replica has the log of another node entry for entry, and the same state.
func sameLog(t *testing.T, o, copied *origin) {
	t.Helper()
	require.Equal(t, logOf(t, copied), logOf(t, o))
	digest := func(o *origin) string {
		answer := o.Ask("GET", "/topicmaps/egov/snapshots/current.xtm21", "", "")
		require.Equal(t, http.StatusOK, answer.Code)
		return answer.Header().Get("TMShare-Digest")
	}
	require.Equal(t, digest(copied), digest(o))
}

// lasting returns the ids of the entries with immutable representations at the replica, and requires that these have
// the bytes and the ETag of the origin.
func lasting(t *testing.T, o, copied *origin) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, e := range entriesOf(t, copied) {
		for _, l := range e.Find("alternate") {
			path := strings.TrimPrefix(l.Href, copied.URL)
			here, there := o.Ask("GET", path, "", ""), copied.Ask("GET", path, "", "")
			require.Equal(t, http.StatusOK, there.Code, "%s: %s", path, there.Body)
			require.Contains(t, there.Header().Get("Cache-Control"), "immutable", path)
			if here.Code != http.StatusOK || !strings.Contains(here.Header().Get("Cache-Control"), "immutable") {
				continue
			}
			all[e.ID] = true
			require.Equal(t, there.Body.String(), here.Body.String(), path)
			require.Equal(t, there.Header().Get("ETag"), here.Header().Get("ETag"), path)
		}
	}
	there := inDocuments(t, copied)
	for id, here := range inDocuments(t, o) {
		require.Equal(t, there[id], here)
	}
	return all
}

// inDocuments returns the fragments in the documents of the fragments feed, by the ids of their entries.
func inDocuments(t *testing.T, o *origin) map[string]string {
	t.Helper()
	all := map[string]string{}
	for at := o.FeedURL("egov"); at != ""; {
		r := httptest.NewRequest(http.MethodGet, at, nil)
		r.Header.Set("Accept", feeds.MediaTypeBundle)
		w := httptest.NewRecorder()
		o.Server.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", at, w.Body)
		feed, err := feeds.DecodeBundle(w.Body, at, feeds.Limits{}, nil)
		require.NoError(t, err)
		for _, e := range feed.Entries {
			if len(e.Fragment) > 0 {
				all[e.ID] = string(e.Fragment)
			}
		}
		l, _ := feed.Link("prev-archive")
		at = l.Href
	}
	return all
}

// version makes a random map of a few topics with varying identifiers and associations.
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

// A replica, and a replica of that, have the log of the origin entry for entry, after every round. Subscribers that
// begin with a replica, or with the beginning of its feed, get the state of the origin.
func TestReplicasAreEqualEntryForEntry(t *testing.T) {
	testenv.SkipUnderRace(t)
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
			require.NotEmpty(t, lasting(t, first.origin, o))
			require.NotEmpty(t, lasting(t, second.origin, o))
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

// eventful makes a random map in which classes get and lose instances, topics are merged and split, and statements have
// identifiers, themes and reifiers.
func eventful(r *rand.Rand) string {
	parts := []string{vocabulary, topic("town", fmt.Sprint("Town ", r.IntN(3))), topic("port", "Port")}
	for _, name := range []string{"oslo", "bergen", "lofoten"} {
		var more []string
		for _, class := range []string{"town", "port"} {
			if r.IntN(2) == 0 {
				more = append(more, instanceOf(class))
			}
		}
		names := name
		if r.IntN(3) == 0 {
			names += fmt.Sprint(" other-", r.IntN(2), name)
		}
		if r.IntN(3) == 0 {
			more = append(more, `<name><scope><subjectIdentifierRef href="`+si("port")+`"/></scope><value>in port</value><variant><scope><subjectIdentifierRef href="`+
				si("town")+`"/></scope><resourceData>a variant</resourceData></variant></name>`)
		}
		if r.IntN(6) > 0 {
			parts = append(parts, known(names, fmt.Sprint(name, r.IntN(9)), more...))
		}
	}
	parts = append(parts, topic("mid", "Mid"), topic("end", "End"))
	for _, a := range []string{link("near", "mid", "end"), link("near", "town", "mid"), link("near", "end", "town")} {
		switch r.IntN(3) {
		case 0:
			parts = append(parts, a)
		case 1:
			parts = append(parts, strings.Replace(a, "<type>", `<itemIdentity href="http://example.org/ids/`+fmt.Sprint(r.IntN(9), len(parts))+`"/><type>`, 1))
		}
	}
	return doc(parts...)
}

// A replica that applies the commits of its origin one at a time has the same immutable bytes for each entry, and so
// does a replica of that; also while the origin omits the instances of classes, which the replica does not.
func TestReplicasServeEachEntryAsItsOriginDoes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testenv.Rounds(2, 20)) {
		random := rand.New(rand.NewPCG(testenv.Seed(), seed))
		o := publishing(t, eventful(random), documentSize(5))
		for range 3 {
			o.Put(eventful(random))
		}
		first := newReplica(t, o)
		first.sync(t)
		second := newReplica(t, first.origin)
		second.sync(t)
		begun := len(logOf(t, o))
		for i := range 12 {
			if i%4 == 0 {
				answer := o.Ask("PUT", "/topicmaps/egov", "application/json", fmt.Sprintf(`{"omitInstances": %t}`, i%8 == 0))
				require.Equal(t, http.StatusOK, answer.Code, "%s", answer.Body)
			}
			o.Put(eventful(random))
			first.sync(t)
			second.sync(t)
		}
		for _, r := range []*replica{first, second} {
			same, log := lasting(t, r.origin, o), logOf(t, o)
			came := inDocuments(t, r.origin)
			for _, e := range log[:len(log)-begun] { // a covered one was not fetched, so it is the present topic
				assert.Equal(t, !e.Covered, same[e.ID] && came[e.ID] != "", "%+v", e)
			}
			assert.Empty(t, findings(t, r.DB))
		}
	}
}

// A replica that takes several commits of its origin at once, and randomly lacks fragments, has no immutable bytes that
// differ from those of its origin; nor does a replica of that.
func TestReplicasSayNothingElseForGood(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	waited, same := 0, [2]int{} // same counts the immutable entries of each replica
	for seed := range uint64(testenv.Rounds(3, 30)) {
		random := rand.New(rand.NewPCG(testenv.Seed(), seed))
		o := publishing(t, eventful(random), documentSize(5))
		nodes := []*replica{newReplica(t, o)}
		nodes[0].sync(t)
		nodes = append(nodes, newReplica(t, nodes[0].origin))
		nodes[1].sync(t)
		for i := range 12 {
			for range 1 + random.IntN(3) {
				o.Put(eventful(random))
			}
			salt := random.Uint32()
			lacking := damage(func(r *http.Request) bool {
				return isFragment(r) && i%3 > 0 && crc32.Update(salt, crc32.IEEETable, []byte(r.URL.Path))%3 == 0
			}, always, answering(http.StatusNotFound))
			o.BreakWith(lacking)
			nodes[0].BreakWith(lacking)
			for at, r := range nodes {
				waited += r.sync(t).Quarantined
				same[at] += len(lasting(t, r.origin, o))
			}
		}
		for _, r := range nodes {
			assert.Empty(t, findings(t, r.DB))
		}
	}
	assert.Positive(t, waited)
	assert.Positive(t, same[0], "what the first replica says for good")
	assert.Positive(t, same[1], "what the second one says for good")
}

// A fragment that a replica has applied late, after quarantine, may differ from the original one: the replica serves
// the present topic. That may change, and caches revalidate it.
func TestReplicaShowsATopicAsItIsWhereItsEntryWasLate(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	o.TakeSnapshot()
	r := newReplica(t, o)
	r.peer.configure(singly)
	r.sync(t)
	o.Put(doc(topics(3, "v2")...))
	o.BreakWith(damage(isFragmentOf(o, "t1"), always, answering(http.StatusNotFound)))
	round := r.sync(t)
	require.Equal(t, 1, round.Quarantined)
	late := logOf(t, o)[1]
	path := fragmentPath(t, o, late.ID)
	before := r.Ask("GET", path, "", "")

	o.BreakWith(nil)
	o.Put(doc(append(topics(3, "v2"), topic("new", "New"))...))
	require.Zero(t, r.sync(t).Quarantined)
	answer := r.Ask("GET", path, "", "")
	require.Equal(t, http.StatusOK, answer.Code, "%s, before %d %s", answer.Body, before.Code, before.Body)
	assert.Contains(t, answer.Body.String(), "v2")
	assert.Equal(t, "no-cache", answer.Header().Get("Cache-Control"))
	tag := answer.Header().Get("ETag")
	assert.NotEqual(t, o.Ask("GET", path, "", "").Header().Get("ETag"), tag)

	o.Put(doc(append(topics(3, "v3"), topic("new", "New"))...))
	r.sync(t)
	answer = r.Ask("GET", path, "", "")
	assert.Contains(t, answer.Body.String(), "v3")
	assert.NotEqual(t, tag, answer.Header().Get("ETag"))
	same := lasting(t, r.origin, o)
	assert.False(t, same[late.ID])
	for _, e := range logOf(t, o)[:3] {
		assert.True(t, same[e.ID])
	}
}

// fragmentPath returns the path of the fragment of an entry, in XTM 2.1.
func fragmentPath(t *testing.T, o *origin, id string) string {
	t.Helper()
	return "/topicmaps/egov/fragments/" + strings.TrimPrefix(id, "urn:uuid:") + ".xtm21"
}

// A deletion lists all identifiers of the topic, at a replica as at the origin. A replica that began later has only the
// TopicSI, and its answer is not immutable.
func TestReplicaListsAllIdentifiersOfWhatIsDeleted(t *testing.T) {
	t.Parallel()
	located := strings.Replace(alias("a", "x", "A"), "<name>", `<subjectLocator href="http://www.example.org/a"/><name>`, 1)
	o := publishing(t, doc(topic("b", "B"), located))
	o.TakeSnapshot()
	early := newReplica(t, o)
	early.sync(t)
	o.Put(doc(topic("b", "B")))
	o.TakeSnapshot()
	later := newReplica(t, o)
	for _, r := range []*replica{early, later} {
		r.sync(t)
	}
	deletion := logOf(t, o)[0]
	require.Equal(t, feeds.StateDeleted, deletion.State)
	path := fragmentPath(t, o, deletion.ID)
	for _, node := range []*origin{o, early.origin} {
		answer := node.Ask("GET", path, "", "")
		for _, id := range []string{si("a"), si("x"), "http://www.example.org/a"} {
			assert.Contains(t, answer.Body.String(), id)
		}
	}
	assert.True(t, lasting(t, early.origin, o)[deletion.ID])
	answer := later.Ask("GET", path, "", "")
	require.Equal(t, http.StatusOK, answer.Code, "%s", answer.Body)
	assert.Contains(t, answer.Body.String(), si("a"))
	assert.Equal(t, "no-cache", answer.Header().Get("Cache-Control"))
}

// Only its origin changes a replica. Other writers get an error with the origin's address.
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
		assert.Equal(t, http.StatusConflict, answer.Code, "%s %s: %s", ask[0], ask[1], answer.Body)
		assert.Contains(t, answer.Body.String(), o.FeedURL("egov"))
		assert.Contains(t, answer.Header().Get("Link"), o.FeedURL("egov"))
	}
	answer := r.Ask("PUT", "/topicmaps/egov", "application/json", `{"omitInstances": true}`)
	assert.Equal(t, http.StatusConflict, answer.Code)
	answer = r.Ask("PUT", "/topicmaps/egov", "application/json", `{"title": "A copy"}`)
	assert.Equal(t, http.StatusOK, answer.Code, answer.Body)
	sameLog(t, r.origin, o)

	require.NoError(t, r.peer.Unsubscribe(t.Context(), "egov"))
	assert.Equal(t, http.StatusNotFound, r.Ask("GET", "/topicmaps/egov/fragments", "", "").Code)
}

// A subscription with several addresses continues while one of them is available, and a replica never causes the loss
// of data.
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
	st := status.Describe(&known, nil, time.Now())
	assert.False(t, st.InStep.After(asked), "nobody knows what the origin has by now")

	second.BreakWith(outOfOrder)
	r, err = s.syncFails()
	require.ErrorAs(t, err, new(*client.UnusableError), "what the first replica lacks is not thrown away")
	assert.False(t, r.CleanStart)
	s.has(o, doc(topic("oslo", "Christiania")))

	o.BreakWith(nil) // the origin was restored from an old backup: a fork
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

// Topics in quarantine because of a broken replica are fetched from it, although the origin is followed by then.
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

// A collection without topics is replicated, too.
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

// A replica that is an authority is accepted only if it has seen its origin later than its subscriber was in step. That
// time does not go back with the clock of the origin: otherwise a restored replica would seem to have seen the origin
// later.
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
			require.ErrorAs(t, err, new(*follow.DoubtError))
			s.has(o, doc(topic("oslo", "Christiania")))
			r.sync(t)
			assert.False(t, s.sync().CleanStart)
			s.has(o, doc(topic("oslo", "Christiania")))
		})
	}
}

// A replica whose log does not go back to the beginning is followed only once it has a snapshot: new followers would
// take a part for the whole.
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

// headOf returns the head of the fragments feed of a server, and the time at which it was in step with the origin.
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

// Replicas forward the origin's openings and times, and state none of their own, even after a restore of the origin.
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
		original, now := headOf(t, o)
		require.NotEmpty(t, original.Openings)
		for _, r := range []*replica{first, second} {
			before := r.peer.known("egov").Checked
			head, checked := headOf(t, r.origin)
			assert.Equal(t, original.Openings, head.Openings)
			assert.True(t, checked.Before(now), "it is no later than what the origin has said")
			assert.True(t, before.Equal(checked), "%s %s", before, checked)
			l, ok := head.Link(feeds.RelOpenings)
			require.True(t, ok)
			list := r.Get(strings.TrimPrefix(l.Href, r.URL))
			for _, id := range original.Openings {
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
	first.Restore(first.Backup()) // its own openings are not published
	first.peer = newPeer(t, first.origin)
	same()
	_, before := headOf(t, first.origin)
	for _, r := range []*replica{first, second} { // without changes, the time still advances
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

// A replica uses the origin's version of the form of fragments. If it does not know that version, it answers 503 for
// them, and logs it, because its bytes would differ. Its map is correct nevertheless.
func TestReplicaOfAnOriginThatWritesInAnotherWay(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(4, "v1")...), documentSize(3))
	o.Put(doc(topics(4, "v2")...))
	o.BreakWith(rewriting(func(r *http.Request) bool { return isRecent(r) || isArchive(r) }, func(body string) string {
		if strings.Contains(body, "v1</title>") {
			return body
		}
		return strings.Replace(body, `own:rendering="1"`, `own:rendering="2"`, 1)
	}))
	var log strings.Builder
	first := newReplicaAt(t, node.On(t, store.Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))}), o)
	first.sync(t)
	assert.Equal(t, 1, strings.Count(log.String(), "in a way that this program does not know"), log.String())
	first.TakeSnapshot() // a reader begins from that
	second := newReplica(t, first.origin)
	second.sync(t)
	sameLog(t, second.origin, first.origin)
	answer := first.Ask("GET", "/topicmaps/egov/snapshots/current.xtm21", "", "")
	require.Contains(t, answer.Body.String(), "v2")
	for _, r := range []*replica{first, second} {
		ways, inline := map[uint64]int{}, inDocuments(t, r.origin)
		for _, e := range entriesOf(t, r.origin) {
			ways[e.Rendering]++
			require.NotZero(t, e.Commit)
			data, ok := e.Link("alternate")
			require.True(t, ok)
			answer := r.Ask("GET", strings.TrimPrefix(data.Href, r.URL), "", "")
			if e.Rendering == 1 {
				require.Equal(t, http.StatusOK, answer.Code, answer.Body)
				continue
			}
			require.Equal(t, http.StatusServiceUnavailable, answer.Code)
			require.Contains(t, answer.Body.String(), "in way 2, which this server does not know")
			require.Empty(t, inline[e.ID])
		}
		require.NotZero(t, ways[1])
		require.NotZero(t, ways[2])
	}
}

// A replica leaves the instances of classes out of the fragments from which its origin leaves them out, those from
// before it began included.
func TestReplicaLeavesInstancesOutAsItsOriginDoes(t *testing.T) {
	t.Parallel()
	towns := func(name string) string {
		return doc(vocabulary, topic("town", name), known("oslo", "Oslo", instanceOf("town")), known("bergen", "Bergen", instanceOf("town")))
	}
	o := publishing(t, towns("Town"))
	for _, omit := range []bool{true, false} {
		answer := o.Ask("PUT", "/topicmaps/egov", "application/json", fmt.Sprintf(`{"omitInstances": %t}`, omit))
		require.Equal(t, http.StatusOK, answer.Code, "%s", answer.Body)
		o.Put(towns(fmt.Sprint("Town, omitted ", omit)))
		o.TakeSnapshot()
		first := newReplica(t, o)
		first.sync(t)
		second := newReplica(t, first.origin)
		second.sync(t)
		sameLog(t, first.origin, o)
		sameLog(t, second.origin, first.origin)
		for _, e := range entriesOf(t, o) {
			if e.TopicSI[0] != si("town") {
				continue
			}
			require.Equal(t, omit, e.Omits)
			data, _ := e.Link("alternate")
			path := strings.TrimPrefix(data.Href, o.URL)
			want := o.Ask("GET", path, "", "").Body.String()
			require.Equal(t, omit, !strings.Contains(want, si("oslo")))
			for _, r := range []*replica{first, second} {
				require.Equal(t, want, r.Ask("GET", path, "", "").Body.String())
			}
			break // earlier ones show the topic as it is
		}
	}
}

// A replica offers each entry in RDF where its origin does, and so does a replica of that. Its snapshots are in RDF
// where the last entry is.
func TestReplicaOffersRDFAsItsOriginDoes(t *testing.T) {
	t.Parallel()
	forms := func(o *origin) (all []string) {
		for _, e := range entriesOf(t, o) {
			types := e.ID
			for _, l := range e.Find("alternate") {
				types += " " + l.Type
			}
			all = append(all, types)
		}
		return all
	}
	towns := func(name string) string {
		return doc(vocabulary, topic("town", name), known("oslo", name, instanceOf("town")))
	}
	o := publishing(t, towns("Town"))
	first := newReplica(t, o)
	first.sync(t)
	second := newReplica(t, first.origin)
	second.sync(t)
	for turn, on := range []bool{true, false, true} {
		answer := o.Ask("PUT", "/topicmaps/egov", "application/json", fmt.Sprintf(`{"rdf": %t}`, on))
		require.Equal(t, http.StatusOK, answer.Code, "%s", answer.Body)
		o.Put(towns(fmt.Sprint("Town ", turn)))
		late := newReplica(t, o)
		late.sync(t)
		for _, r := range []*replica{first, second, late} {
			r.sync(t)
			sameLog(t, r.origin, o)
			require.Equal(t, forms(o), forms(r.origin))
			for _, ending := range []string{".ttl", ".nt", ".rdf"} {
				here, there := r.Ask("GET", "/topicmaps/egov/snapshots/current"+ending, "", ""), o.Ask("GET", "/topicmaps/egov/snapshots/current"+ending, "", "")
				require.Equal(t, there.Code, here.Code, "%s", here.Body)
				require.Equal(t, on, here.Code == http.StatusOK)
				require.Equal(t, on, strings.Contains(here.Body.String(), fmt.Sprint("Town ", turn)))
			}
			for _, e := range entriesOf(t, o)[:2] {
				for _, l := range e.Find("alternate") {
					path := strings.TrimPrefix(l.Href, o.URL)
					here, there := r.Ask("GET", path, "", ""), o.Ask("GET", path, "", "")
					require.Equal(t, http.StatusOK, here.Code, path)
					require.Equal(t, there.Body.String(), here.Body.String(), path)
				}
			}
			assert.Empty(t, findings(t, r.DB))
		}
	}
}
