package client_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/faults"
	"github.com/tmshare/tmshare/merge"
)

// damageTopics changes some topics in a subscriber's store, and adds one and removes one.
func (s *subscriber) damageTopics(change func(merge.State) error) {
	s.t.Helper()
	require.NoError(s.t, s.db.ApplyEntries(s.t.Context(), "egov", func(a *store.Applying) error { return change(a.State) }))
}

func topicNamed(id, name string) *fragment.Topic {
	t := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{fragment.Ref(si(id))}}}
	if name != "" {
		t.Names = []fragment.Name{{Value: name}}
	}
	t.Canonical()
	return t
}

// A round against a server that states digests ends proven, without a request more.
func TestRoundsAreProven(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(30, "v1")...))
	s := inStep(t, o)
	for n := range 3 {
		o.Put(doc(topics(30, fmt.Sprint("v", n+2))...))
		r := s.sync()
		assert.True(t, r.Proven)
		assert.Zero(t, r.Repaired)
	}
	for _, seen := range o.Seen() {
		assert.NotContains(t, fmt.Sprint(seen), "/digest")
	}
	p := s.known("egov").State.Proof
	require.NotNil(t, p)
	assert.True(t, p.Equal)
}

// What differs is found, fetched and repaired: the rest is not fetched.
func TestDifferencesAreRepaired(t *testing.T) {
	t.Parallel()
	version1 := topics(200, "v1")
	o := publishing(t, doc(version1...))
	s := inStep(t, o)
	s.damageTopics(func(st merge.State) error {
		for _, id := range []string{"t3", "t77"} {
			if err := st.PutTopic(topicNamed(id, "damaged")); err != nil {
				return err
			}
		}
		if err := st.DeleteTopic(topicNamed("t150", "")); err != nil {
			return err
		}
		return st.PutTopic(topicNamed("nobody", "knows it"))
	})
	before := len(o.Seen())
	r := s.sync()
	assert.True(t, r.Proven, r.Unproven)
	assert.Equal(t, 4, r.Repaired)
	assert.False(t, r.CleanStart)
	s.has(o, doc(version1...))
	assert.Less(t, len(o.Seen())-before, 40)
	assert.Contains(t, s.reported(), "topics that differ from what the source states: 4; they are fetched anew")
	assert.Zero(t, s.sync().Repaired)
}

// While the source changes, a repair waits for these changes.
func TestRepairOfASourceThatChanges(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(60, "v1")...))
	s := inStep(t, o)
	s.damageTopics(func(st merge.State) error { return st.PutTopic(topicNamed("t3", "damaged")) })
	changed := false
	o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.URL.Path, "/digest") && !changed {
			changed = true
			o.Put(doc(topics(60, "v2")...))
		}
		return false
	})
	r := s.sync()
	assert.True(t, changed)
	assert.True(t, r.Proven, r.Unproven)
	s.has(o, doc(topics(60, "v2")...))
}

// A proxy that alters text within well-formed XML does not go unnoticed.
func TestAlteredTextIsNeverProven(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(20, "v1")...))
	s := inStep(t, o, singly)
	o.Put(doc(topics(20, "v2")...))
	altering := rewriting(isFragmentOf(o, "t7"), func(body string) string { return strings.ReplaceAll(body, "v2", "v9") })
	o.BreakWith(altering)
	r := s.sync()
	assert.True(t, r.Proven, "the topic itself came unaltered: %s", r.Unproven)
	assert.Equal(t, 1, r.Repaired)
	s.has(o, doc(topics(20, "v2")...))
}

// A round does not fail if the differences cannot be found: it applies the feed. The next round tries again.
func TestRepairThatIsNotPossible(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(20, "v1")...))
	s := inStep(t, o, func(c *client.Config) { c.Tries = 1 })
	s.mayDiffer = true
	s.damageTopics(func(st merge.State) error { return st.PutTopic(topicNamed("t3", "damaged")) })
	o.Put(doc(append(topics(20, "v1"), topic("new", "New"))...))
	for _, path := range []string{"/digest", "/digest/topic"} {
		o.BreakWith(damage(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, path) }, always, answering(500)))
		r := s.sync()
		assert.False(t, r.Proven)
		assert.Contains(t, r.Unproven, "what differs cannot be found: "+o.URL)
	}
	o.BreakWith(nil)
	r := s.sync()
	assert.True(t, r.Proven)
	assert.Equal(t, 1, r.Repaired)
}

// A server with wrong digests is reported. No data is damaged, and no repair is repeated.
func TestServerThatLiesAboutItsDigest(t *testing.T) {
	t.Parallel()
	digest := regexp.MustCompile(`(<own:digest>1:)[0-9a-f]{8}`)
	o := publishing(t, doc(topics(20, "v1")...))
	feeds := func(r *http.Request) bool {
		return isRecent(r) || isArchive(r) || strings.HasSuffix(r.URL.Path, "/snapshots")
	}
	o.BreakWith(rewriting(feeds, func(body string) string { return digest.ReplaceAllString(body, "${1}00000000") }))
	s := newSubscriber(t)
	s.mayDiffer = true
	_, err := s.Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	r := s.sync()
	assert.False(t, r.Proven)
	assert.NotEmpty(t, r.Unproven)
	require.True(t, r.Differs)
	known := s.known("egov")
	assert.True(t, status.Describe(&known, nil, s.Now()).Differs, "status tells it as the round does")
	s.has(o, doc(topics(20, "v1")...))
	for n := range 3 {
		o.Put(doc(topics(20, fmt.Sprint("v", n+2))...))
		before := len(o.Seen())
		r := s.sync()
		assert.False(t, r.Proven)
		assert.NotEmpty(t, r.Unproven)
		assert.False(t, r.CleanStart)
		s.has(o, doc(topics(20, fmt.Sprint("v", n+2))...))
		assert.Less(t, len(o.Seen())-before, 40, "nothing is fetched for a repair")
	}
	o.BreakWith(nil)
	o.Put(doc(topics(20, "v9")...))
	assert.True(t, s.sync().Proven, "the server is mended")
}

// A state digest that is wrong, or missing, in one answer does not outlast the next right one.
func TestDigestThatIsMangledOnce(t *testing.T) {
	t.Parallel()
	stated := regexp.MustCompile(`<own:digest>1:[0-9a-f]{8}`)
	gone := regexp.MustCompile(`<own:digest>[^<]*</own:digest>`)
	for name, mangle := range map[string]func(string) string{
		"wrong":   func(body string) string { return stated.ReplaceAllString(body, "<own:digest>1:00000000") },
		"missing": func(body string) string { return gone.ReplaceAllString(body, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(5, "v1")...))
			s := inStep(t, o)
			o.Put(doc(topics(5, "v2")...))
			o.BreakWith(faults.Rewriting(isRecent, mangle))
			r, err := s.Sync(t.Context(), "egov")
			require.True(t, err != nil || !r.Proven, "%+v", r)
			if err == nil {
				require.True(t, r.Differs, "it is not said to be in step")
			}
			o.BreakWith(nil)
			r, err = s.Sync(t.Context(), "egov")
			require.NoError(t, err)
			assert.True(t, r.Proven, "%+v", r)
			assert.False(t, r.CleanStart, r.Reason)
			s.has(o, doc(topics(5, "v2")...))
			v, err := s.Verify(t.Context(), "egov", false)
			require.NoError(t, err)
			assert.True(t, v.Equal)
		})
	}
}

// A replacement that the source's digest does not confirm is not continued by the next round.
func TestReplacementThatIsNotConfirmedIsNotTakenOn(t *testing.T) {
	t.Parallel()
	stated := regexp.MustCompile(`<own:digest>1:[0-9a-f]{8}`)
	o := publishing(t, doc(topics(5, "v1")...))
	backup := o.Backup()
	s := inStep(t, o)
	o.Put(doc(topics(7, "v2")...))
	s.sync()
	o.Restore(backup)
	o.BreakWith(faults.Rewriting(isRecent, func(body string) string { return stated.ReplaceAllString(body, "<own:digest>1:00000000") }))
	for range 6 {
		_, err := s.Sync(t.Context(), "egov")
		require.ErrorAs(t, err, new(*follow.DoubtError))
		require.Nil(t, s.known("egov").Staging)
		s.has(o, doc(topics(7, "v2")...))
	}
	o.BreakWith(nil)
	assert.True(t, s.sync().CleanStart)
	s.has(o, doc(topics(5, "v1")...))
}

// A source without entries and without a snapshot proves nothing: its copy is too large to be deleted silently.
func TestSourceThatShowsNothingIsHeld(t *testing.T) {
	t.Parallel()
	entries := regexp.MustCompile(`(?s)<entry.*</entry>`)
	o := publishing(t, doc(topics(60, "v1")...))
	s := inStep(t, o)
	o.BreakWith(faults.Rewriting(func(r *http.Request) bool { return isRecent(r) || isSnapshots(r) }, func(body string) string {
		return regexp.MustCompile(`<link[^>]*prev-archive[^>]*>`).ReplaceAllString(entries.ReplaceAllString(body, ""), "")
	}))
	for range 6 {
		_, err := s.Sync(t.Context(), "egov")
		require.ErrorAs(t, err, new(*follow.DoubtError))
		s.has(o, doc(topics(60, "v1")...))
	}
	o.BreakWith(nil)
	assert.False(t, s.sync().CleanStart)
	s.has(o, doc(topics(60, "v1")...))
}

// An empty copy loses nothing: returning topics are added in the first round.
func TestCopyThatHasNothingTakesWhatComesBackAtOnce(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	backup := o.Backup()
	s := inStep(t, o)
	o.Delete("egov")
	o.Create("egov", doc())
	_, err := s.Sync(t.Context(), "egov")
	require.ErrorAs(t, err, new(*follow.DoubtError))
	r, err := s.Confirm(t.Context(), "egov")
	require.NoError(t, err)
	require.Equal(t, 6, r.Removed, "with the type of their names")
	s.has(o, doc())
	o.Restore(backup)
	r, err = s.Sync(t.Context(), "egov")
	require.NoError(t, err)
	require.True(t, r.CleanStart)
	require.Zero(t, r.Removed)
	s.has(o, doc(topics(5, "v1")...))
}
