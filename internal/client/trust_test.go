package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// refused is a round that must be refused for a reason, with both checkpoints shown, and without any change.
func (s *subscriber) refused(reason string, checkpoints int) {
	s.t.Helper()
	before := s.known("egov")
	_, err := s.syncFails()
	var refused *client.CheckpointError
	require.ErrorAs(s.t, err, &refused)
	require.ErrorContains(s.t, err, reason)
	require.ErrorContains(s.t, err, `"tmshare-client trust egov --accept"`)
	require.Equal(s.t, checkpoints, strings.Count(err.Error(), "— maps.example.org "), "%v", err)
	after := s.known("egov")
	require.Equal(s.t, before.Checkpoint, after.Checkpoint)
	require.Equal(s.t, before.State.Mark, after.State.Mark)
	require.Equal(s.t, before.State.Revision, after.State.Revision)
	require.Nil(s.t, after.Staging)
}

// signed returns the last accepted checkpoint.
func (s *subscriber) signed() *checkpoint.Checkpoint {
	s.t.Helper()
	k := s.known("egov")
	c, err := checkpoint.Open(k.Checkpoint, k.Key)
	require.NoError(s.t, err)
	return c
}

// A source that is signed is followed from one checkpoint to the next.
func TestSignedSource(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(20, "v1")...), documentSize(5))
	key := o.Sign("egov")
	s := subscribed(t, o)
	require.Equal(t, key, s.known("egov").Key, "the first key is pinned")
	assert.True(t, s.sync().Proven)
	first := s.signed()
	assert.Equal(t, o.SP("egov"), first.Origin)
	for n := range 4 {
		o.Put(doc(topics(20+n, fmt.Sprint("v", n+2))...))
		o.Seen()
		r := s.sync()
		assert.True(t, r.Proven)
		assert.Equal(t, 1, times(o.Seen(), "/checkpoint"), "one proof that the log goes on")
	}
	now := s.signed()
	assert.Greater(t, now.Size, first.Size)
	o.Source("egov", func(v *store.View, _ fragment.Source) { assert.Equal(t, int64(v.Head), now.Size) })
	o.Seen()
	s.sync()
	assert.Zero(t, times(o.Seen(), "/checkpoint"), "nothing new")
}

// A source that begins to sign is followed only while it does so.
func TestSourceThatBeginsToSign(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o)
	require.Empty(t, s.known("egov").Key)
	key := o.Sign("egov")
	o.Put(doc(topics(5, "v2")...))
	assert.True(t, s.sync().Proven)
	assert.Equal(t, key, s.known("egov").Key)
	assert.Contains(t, s.reported(), "the source is signed, and is followed from now on only while it is, by the key "+key)

	o.SignWith("egov", "")
	o.Put(doc(topics(5, "v3")...))
	s.refused("the source states none", 1)
	s.trust("", true)
	assert.True(t, s.sync().Proven)
	assert.Empty(t, s.known("egov").Key)
}

// trust compares, or accepts, the checkpoint of the source.
func (s *subscriber) trust(key string, accept bool) *client.Trust {
	s.t.Helper()
	got, err := s.Trust(context.Background(), "egov", key, accept)
	require.NoError(s.t, err)
	require.Equal(s.t, accept || key != "", got.Accepted)
	return got
}

// The key that is demanded when subscribing has to be the one that signs.
func TestKeyThatIsDemanded(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	other := newOrigin(t)
	other.Create("egov", doc(topics(5, "v1")...))
	wrong := other.Sign("egov")
	subscribe := func(key string) error {
		_, err := newSubscriber(t).Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{Key: key})
		return err
	}
	require.ErrorContains(t, subscribe(wrong), "the source states none")
	right := o.Sign("egov")
	require.ErrorContains(t, subscribe(wrong), "not subscribed, as its checkpoint is refused: it is signed by maps.example.org+")
	require.ErrorContains(t, subscribe("nonsense"), "is no public key")
	require.NoError(t, subscribe(right))
	_, err := newSubscriber(t).Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{Key: right, Protocol: "atom-pmh"})
	require.ErrorContains(t, err, "leave out --key")
}

// A server with another key is refused, until the new key is given.
func TestSourceWithAnotherKey(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	o.Sign("egov")
	s := inStep(t, o)
	second := o.Sign("egov")
	o.Put(doc(topics(5, "v2")...))
	s.refused("it is signed by maps.example.org+", 2)
	seen := s.trust("", false)
	assert.Contains(t, seen.Refused, "it is signed by")
	assert.Equal(t, second, seen.StatedKey)
	_, err := s.Trust(context.Background(), "egov", s.known("egov").Key, false)
	require.ErrorContains(t, err, "it is signed by", "the former key has not signed it")
	s.trust(second, false)
	assert.True(t, s.sync().Proven)
}

// A server that was restored to an earlier state, and one whose log was rewritten or forked, is refused with both
// checkpoints. An accepted log is followed from there.
func TestRewrittenAndForkedLogs(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(10, "v1")...))
	o.Sign("egov")
	s := inStep(t, o)
	backup := o.Backup()
	o.Put(doc(topics(12, "v2")...))
	s.sync()
	s.has(o, doc(topics(12, "v2")...))

	o.Restore(backup)
	s.refused("it was put back to an earlier state, or forked", 2)
	o.Put(doc(topics(12, "v3")...))
	s.refused("two logs of 23 entries are signed: the log was forked", 2)
	o.Put(doc(topics(12, "v4")...))
	s.refused("the log does not have the 23 entries that it had: it was rewritten, or forked", 2)
	s.hasAs("egov", o.SP("egov"), doc(topics(12, "v2")...))
	assert.Contains(t, s.known("egov").LastError, "the checkpoint of the source is refused")

	s.trust("", true)
	assert.True(t, s.sync().Proven)
	s.has(o, doc(topics(12, "v4")...))
}

// forger replaces an honest server: it answers from a copy of its data with one changed topic, and with matching
// digests and trees. state changes its checkpoints.
func forger(t *testing.T, o *origin, state func(forged, honest string) string) (fault, func(doc string)) {
	config := o.Config
	db := stores.Open(t, store.Options{Dir: o.Backup(), Logger: silent})
	config.Store = db
	forged, err := server.New(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		forged.Close()
		require.NoError(t, db.Close())
	})
	put := func(doc string) {
		r := httptest.NewRequest(http.MethodPut, o.URL+"/topicmaps/egov", strings.NewReader(doc))
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		forged.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	}
	return func(w http.ResponseWriter, r *http.Request, honest http.Handler) bool {
		switch {
		case strings.Contains(r.URL.Path, "/checkpoint"):
			return false
		case !isRecent(r):
			forged.ServeHTTP(w, r)
			return true
		}
		_, lie := record(forged, r)
		answer, truth := record(honest, r)
		for _, name := range []string{"Content-Type", "TMShare-Checked", "TMShare-Asked"} {
			w.Header().Set(name, answer.Header().Get(name))
		}
		_, _ = w.Write([]byte(state(string(lie), string(truth))))
		return true
	}, put
}

// Republished entries of a source are signed like others, and a replica forwards them.
func TestSignedSourceThatOffersRecordsOtherwise(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(20, "v1")...), documentSize(5))
	o.Sign("egov")
	s, replica := inStep(t, o), newReplica(t, o)
	replica.sync(t)
	signedAsOf := func() {
		t.Helper()
		assert.True(t, s.sync().Proven)
		assert.True(t, replica.sync(t).Proven)
		o.Source("egov", func(v *store.View, _ fragment.Source) { assert.Equal(t, int64(v.Head), s.signed().Size) })
		sameLog(t, replica.origin, o)
		assert.Equal(t, o.Get("/topicmaps/egov/checkpoint"), replica.Get("/topicmaps/egov/checkpoint"))
	}
	for i, form := range []string{"xtm1", "xtm2.1"} {
		before := s.signed().Size
		o.Offer("egov", form)
		signedAsOf()
		assert.Greater(t, s.signed().Size, before+15)
		o.Put(doc(topics(20, fmt.Sprint("v", i+2))...))
		signedAsOf()
	}
}

// A checkpoint that does not cover the read entries proves nothing, even with the digest of the copy. Once it covers
// them, the copy is proven, and a replica forwards it.
func TestCheckpointThatDoesNotCoverTheEntries(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(20, "v1")...), documentSize(100))
	o.Sign("egov")
	s, replica := inStep(t, o), newReplica(t, o)
	replica.sync(t)
	s.mayDiffer = true
	signed := strings.ReplaceAll(statedCheckpoint.FindString(o.Get("/topicmaps/egov/fragments")), "$", "$$")
	size := s.signed().Size
	o.Offer("egov", "xtm1")
	o.BreakWith(rewriting(isRecent, func(body string) string { return statedCheckpoint.ReplaceAllString(body, signed) }))
	var head uint64
	o.Source("egov", func(v *store.View, _ fragment.Source) { head = v.Head })
	for range 2 {
		r := s.sync()
		assert.False(t, r.Proven)
		assert.True(t, r.Differs, "the exit code says so")
		assert.Equal(t, fmt.Sprintf("the source has signed %d entries of its log, and shows entry %d, which is not among them: tell the owner of the server (\"tmshare-server check\")", size, head), r.Unproven)
		assert.Zero(t, r.Repaired)
		assert.False(t, r.CleanStart)
		v, err := s.Verify(context.Background(), "egov", false)
		require.NoError(t, err)
		assert.False(t, v.Equal)
		assert.Equal(t, r.Unproven, v.Unproven)
		assert.False(t, replica.sync(t).Proven)
	}
	late := newSubscriber(t)
	_, err := late.Subscribe(context.Background(), o.URL+"/topicmaps/egov", client.SubscribeOptions{})
	require.NoError(t, err)
	r, err := late.Sync(context.Background(), "egov")
	require.NoError(t, err)
	assert.False(t, r.Proven, "of the first round")
	o.BreakWith(nil)
	assert.True(t, s.sync().Proven)
	assert.True(t, replica.sync(t).Proven)
	assert.Equal(t, o.Get("/topicmaps/egov/checkpoint"), replica.Get("/topicmaps/egov/checkpoint"))
}

var statedCheckpoint = regexp.MustCompile(`(?s)<own:checkpoint>.*?</own:checkpoint>`)

// A proxy that alters text together with the digests is not detected by digests. With checkpoints, its content is never
// proven.
func TestForgedTextIsNeverProvenWhereTheSourceIsSigned(t *testing.T) {
	t.Parallel()
	forgedDoc := strings.ReplaceAll(doc(topics(20, "v2")...), "Topic 7 v2", "Topic 7 forged")
	require.NotEqual(t, doc(topics(20, "v2")...), forgedDoc)
	for name, row := range map[string]struct {
		signed  bool
		state   func(forged, honest string) string
		refused string // "": the round ends, but is not proven
	}{
		"without checkpoints": {state: func(forged, _ string) string { return forged }},
		"with the checkpoint of the truth": {signed: true, state: func(forged, honest string) string {
			return statedCheckpoint.ReplaceAllString(forged, strings.ReplaceAll(statedCheckpoint.FindString(honest), "$", "$$"))
		}},
		"with a checkpoint that has the digest of the lie": {signed: true, refused: "invalid signature", state: func(forged, honest string) string {
			digest := regexp.MustCompile(`<own:digest>(1:[0-9a-f]+)`).FindStringSubmatch(forged)[1]
			forgery := regexp.MustCompile(`digest 1:[0-9a-f]+`).ReplaceAllString(statedCheckpoint.FindString(honest), "digest "+digest)
			return statedCheckpoint.ReplaceAllString(forged, strings.ReplaceAll(forgery, "$", "$$"))
		}},
		"without the checkpoint": {signed: true, refused: "the source states none", state: func(forged, _ string) string {
			return statedCheckpoint.ReplaceAllString(forged, "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(20, "v1")...))
			if row.signed {
				o.Sign("egov")
			}
			s := inStep(t, o)
			s.mayDiffer = true
			lie, put := forger(t, o, row.state)
			o.Put(doc(topics(20, "v2")...))
			put(forgedDoc)
			o.BreakWith(lie)
			for range 3 {
				switch {
				case row.refused != "":
					s.refused(row.refused, strings.Count(row.refused, "invalid")+1)
				case row.signed:
					r := s.sync()
					assert.False(t, r.Proven)
					assert.Contains(t, r.Unproven, "differs from what the source states")
					assert.Zero(t, r.Repaired)
				default:
					assert.True(t, s.sync().Proven, "this is what checkpoints are for")
				}
			}
			o.BreakWith(nil)
			r := s.sync()
			assert.True(t, r.Proven, r.Unproven)
			s.has(o, doc(topics(20, "v2")...))
		})
	}
}

// An intermediary may alter all text without the feeds, digests and checkpoints. The copy is then never reported as
// equal. A copy of a signed source is repaired once the text is unaltered; one of another source only after its next
// change, as its server may state wrong digests.
func TestTextThatIsAlteredEverywhere(t *testing.T) {
	t.Parallel()
	for name, signed := range map[string]bool{"signed": true, "not signed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(20, "v1")...))
			if signed {
				o.Sign("egov")
			}
			s := inStep(t, o, singly)
			s.mayDiffer = true
			data := func(r *http.Request) bool {
				return isFragment(r) || isSnapshot(r) || isRecord(r) || strings.Contains(r.URL.Path, "/digest/topic")
			}
			o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
				if !data(r) {
					return false
				}
				answer, body := record(real, r)
				w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
				w.Header().Set("TMShare-Updated", answer.Header().Get("TMShare-Updated"))
				w.Header().Set("Location", answer.Header().Get("Location"))
				w.WriteHeader(answer.Code)
				_, _ = w.Write([]byte(strings.ReplaceAll(string(body), "Topic 7", "Topik 7")))
				return true
			})
			o.Put(doc(topics(20, "v2")...))
			for range 2 {
				r := s.sync()
				assert.False(t, r.Proven)
				assert.True(t, r.Differs)
				for _, full := range []bool{false, true} {
					v, err := s.Verify(context.Background(), "egov", full)
					require.NoError(t, err)
					assert.False(t, v.Equal, "%+v", v)
					assert.NotEmpty(t, v.Unproven)
				}
			}
			o.BreakWith(nil)
			r := s.sync()
			assert.Equal(t, signed, r.Proven, r.Unproven)
			if !signed {
				o.Put(doc(topics(21, "v2")...))
				_, err := s.Replace(context.Background(), "egov")
				require.NoError(t, err)
			}
			assert.True(t, s.sync().Proven)
			s.has(o, doc(topics(map[bool]int{true: 20, false: 21}[signed], "v2")...))
		})
	}
}

// A replacement that is not what the source states does not take the place of the copy, of which one topic is altered:
// neither where a proxy removes the headers of the source, nor where an earlier round was interrupted.
func TestReplacementThatIsAlteredDoesNotReplaceTheCopy(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ removed, interrupted bool }{
		"headers":     {removed: true},
		"interrupted": {interrupted: true},
		"both":        {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(20, "v1")...))
			altered, snapshots := false, 0
			proxy := func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
				if isSnapshot(r) && altered {
					snapshots++
				}
				if of.interrupted && snapshots == 1 && isRecent(r) {
					snapshots++
					w.WriteHeader(http.StatusNotFound)
					return true
				}
				answer, body := record(real, r)
				for header, values := range answer.Header() {
					if !of.removed || header != "Tmshare-Checked" {
						w.Header()[header] = values
					}
				}
				text := string(body)
				if altered && (isFragment(r) || isSnapshot(r) || isRecord(r) || strings.Contains(r.URL.Path, "/digest/topic")) {
					text = strings.ReplaceAll(text, "Topic", "Topik")
					w.Header().Del("Content-Length")
				}
				w.WriteHeader(answer.Code)
				_, _ = io.WriteString(w, text)
				return true
			}
			o.BreakWith(proxy)
			s := inStep(t, o, singly)
			s.mayDiffer = true
			require.True(t, s.known("egov").State.Proof.Equal)
			changed := topics(20, "v1")
			changed[6] = topics(20, "v2")[6]
			o.Put(doc(changed...))
			altered = true
			if of.interrupted {
				_, err := s.Sync(t.Context(), "egov")
				require.Error(t, err)
				require.NotNil(t, s.known("egov").Staging)
			}
			kept := append([]string{}, changed...)
			kept[6] = strings.ReplaceAll(kept[6], "Topic", "Topik")
			for range 2 {
				r := s.sync()
				assert.False(t, r.CleanStart)
				assert.True(t, r.Differs)
				assert.Nil(t, s.known("egov").Staging)
				s.has(o, doc(kept...))
			}
			altered = false
			_, err := s.Replace(t.Context(), "egov")
			require.NoError(t, err)
			assert.True(t, s.sync().Proven)
			s.has(o, doc(changed...))
		})
	}
}
