package client_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

func (s *subscriber) verify() *client.Verdict {
	v, err := s.Verify(context.Background(), "egov", true)
	require.NoError(s.t, err)
	return v
}

// holdingRecords returns a subscriber of the records of egov: these have no digests, so differences are not repaired.
func holdingRecords(t *testing.T, o *origin) *subscriber {
	s := newSubscriber(t)
	_, err := s.Subscribe(t.Context(), o.RecordsURL("egov", "/records"), client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	s.sync()
	return s
}

// tamper changes the subscriber's records without the client.
func (s *subscriber) tamper(f func(merge.State) error) {
	require.NoError(s.t, s.db.ApplyEntries(context.Background(), "egov", func(state *store.Applying) error { return f(state) }))
}

func TestVerifyProvesEquality(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	o := publishing(t, string(maps.EGov))
	s := subscribed(t, o) // not even synced
	v := s.verify()
	assert.True(t, v.Equal)
	assert.Empty(t, v.Differences)
	tm := published(t, string(maps.EGov), o.SP("egov"))
	n := 0
	for range tm.Topics() {
		n++
	}
	assert.Equal(t, n, v.Topics)
	n = 0
	for a := range tm.Associations() {
		if _, _, ok := a.TypeInstance(); !ok {
			n++
		}
	}
	assert.Equal(t, n, v.Associations, "as all commands count them")
	assert.NotZero(t, v.Associations)
	assert.True(t, v.Full)
	quick, err := s.Verify(t.Context(), "egov", false)
	require.NoError(t, err)
	assert.Equal(t, &client.Verdict{Name: "egov", Equal: true, AsOf: v.AsOf, Digest: v.Digest}, quick)
}

func TestVerifyBringsTheSourceInStepFirst(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o)
	last := o.Put(doc(topics(6, "v2")...))
	v := s.verify()
	assert.True(t, v.Equal)
	assert.Equal(t, last.LastChange, feeds.FormatTime(v.AsOf))
	s.has(o, doc(topics(6, "v2")...))
}

// What is published between the round and the comparison makes no difference.
func TestVerifyComparesStatesOfOneTime(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(*http.Request) bool{
		"before the map as of now": func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/snapshots/current") },
		"after it": func(r *http.Request) bool {
			return r.URL.Path == "/topicmaps/egov/fragments" && r.Header.Get("If-None-Match") != ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(5, "v1")...))
			s := inStep(t, o)
			var once sync.Once
			seen := 0
			o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if when(r) {
					if seen++; name != "after it" || seen == 2 {
						once.Do(func() { o.Put(doc(topics(6, "v2")...)) })
					}
				}
				return false
			})
			v := s.verify()
			assert.True(t, v.Equal, "%v", v.Differences)
			o.BreakWith(nil)
			s.sync()
			s.has(o, doc(topics(6, "v2")...))
		})
	}
}

// A large fragment has the state of the commit of its entry, like any other: a publication during the fetch is not in
// it, and comes with the next round.
func TestVerifyIsNotMisledByLargeFragments(t *testing.T) {
	t.Parallel()
	hub := func(version string) string { return doc(topic("hub", version+strings.Repeat("x", 300<<10))) }
	o := publishing(t, hub("v1"))
	s := inStep(t, o)
	var second, third sync.Once
	o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.URL.Path, "/snapshots/current") {
			second.Do(func() { o.Put(hub("v2")) })
		}
		if isFragment(r) {
			third.Do(func() { o.Put(hub("v3")) })
		}
		return false
	})
	v := s.verify()
	assert.True(t, v.Equal)
	assert.Equal(t, 1, times(o.Seen(), "/snapshots/current"))
	s.has(o, hub("v2"))
	s.sync()
	s.has(o, hub("v3"))
}

// A difference is shown by topic, in words, and with its side.
func TestVerifyShowsDifferencesByTopic(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topic("a", "A"), topic("b", "B"), topic("c", "C"), vocabulary, link("near", "a", "b")))
	s := holdingRecords(t, o)
	require.True(t, s.verify().Equal)

	s.tamper(func(state merge.State) error {
		b, err := state.Topic(fragment.Ref(si("b")))
		if err != nil {
			return err
		}
		b.Names[0].Value = "Be"
		c := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{fragment.Ref(si("c"))}}}
		d := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{fragment.Ref(si("d"))}}}
		for a, err := range state.AssociationsOf(fragment.Ref(si("a")), fragment.AsPlayer) {
			if err != nil {
				return err
			}
			if err := state.DeleteAssociation(a); err != nil {
				return err
			}
		}
		return join(state.PutTopic(b), state.DeleteTopic(c), state.PutTopic(d))
	})
	v := s.verify()
	assert.False(t, v.Equal)
	assert.Empty(t, v.Digest)
	near := "association http://psi.example.org/near (http://psi.example.org/from: http://psi.example.org/a, http://psi.example.org/to: http://psi.example.org/b)"
	assert.Equal(t, []client.Difference{
		{TopicSI: si("a"), Server: []string{near}},
		{TopicSI: si("b"), Here: []string{`name "Be"`}, Server: []string{`name "B"`, near}},
		{TopicSI: si("c"), Server: []string{"subject identifier " + si("c"), `name "C"`}},
		{TopicSI: si("d"), Here: []string{"subject identifier " + si("d")}},
	}, v.Differences)

	// A clean replacement mends it.
	_, err := s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	assert.True(t, s.verify().Equal)
}

func join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Every kind of tampering is a difference, and names at least one topic.
func TestVerifySeesEveryKindOfDifference(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	typed := `<topic><subjectIdentifier href="http://psi.example.org/a"/><subjectIdentifier href="http://psi.example.org/a2"/><instanceOf><subjectIdentifierRef href="http://psi.example.org/near"/></instanceOf>` +
		`<name><value>A</value><variant><scope><subjectIdentifierRef href="http://psi.example.org/b"/></scope><resourceData>a</resourceData></variant></name>` +
		`<occurrence><type><subjectIdentifierRef href="http://psi.example.org/near"/></type><resourceData>1</resourceData></occurrence></topic>`
	content := doc(typed, topic("b", "B"), vocabulary, link("near", "a", "b"))
	a := func(change func(*fragment.Topic)) func(merge.State) error {
		return func(state merge.State) error {
			t, err := state.Topic(fragment.Ref(si("a")))
			if err != nil {
				return err
			}
			change(t)
			return state.PutTopic(t)
		}
	}
	one := func(part fragment.Part, change func(merge.State, *fragment.Association) error) func(merge.State) error {
		return func(state merge.State) error {
			for assoc, err := range state.AssociationsOf(fragment.Ref(si("a")), part) {
				if err != nil {
					return err
				}
				return change(state, assoc)
			}
			return errDied
		}
	}
	remove := func(state merge.State, a *fragment.Association) error { return state.DeleteAssociation(a) }
	o := publishing(t, content)
	s := holdingRecords(t, o)
	require.True(t, s.verify().Equal)
	for name, change := range map[string]func(merge.State) error{
		"a name less":         a(func(t *fragment.Topic) { t.Names = nil }),
		"a variant less":      a(func(t *fragment.Topic) { t.Names[0].Variants = nil }),
		"another value":       a(func(t *fragment.Topic) { t.Occurrences[0].Value = "2" }),
		"another datatype":    a(func(t *fragment.Topic) { t.Occurrences[0].Datatype = "http://www.w3.org/2001/XMLSchema#integer" }),
		"another scope":       a(func(t *fragment.Topic) { t.Names[0].Scope = []fragment.Ref{fragment.Ref(si("b"))} }),
		"a reifier":           a(func(t *fragment.Topic) { t.Names[0].Reifier = fragment.Ref(si("b")) }),
		"an identifier less":  a(func(t *fragment.Topic) { t.SubjectIdentifiers = t.SubjectIdentifiers[:1] }),
		"an identifier more":  a(func(t *fragment.Topic) { t.SubjectLocators = []fragment.Ref{"http://a.example.org/"} }),
		"an association less": one(fragment.AsPlayer, remove),
		"a type less":         one(fragment.AsInstance, remove),
		"an association's reifier": one(fragment.AsPlayer, func(state merge.State, a *fragment.Association) error {
			a.Reifier = fragment.Ref(si("b"))
			return state.PutAssociation(a)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s.tamper(change)
			v := s.verify()
			assert.False(t, v.Equal)
			assert.NotEmpty(t, v.Differences)
			for _, d := range v.Differences {
				assert.NotEmpty(t, append(d.Here, d.Server...), d.TopicSI)
			}
			_, err := s.Replace(context.Background(), "egov")
			require.NoError(t, err)
		})
	}
}

func TestVerifyNeedsTheMapAsOfNow(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := inStep(t, o)
	o.BreakWith(rewriting(isRecent, func(body string) string { return strings.ReplaceAll(body, "current-snapshot", "other") }))
	_, err := s.Verify(context.Background(), "egov", true)
	assert.ErrorContains(t, err, "the feed does not link to the map as of now, so there is nothing to compare with")

	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if strings.Contains(r.URL.Path, "/snapshots/current") {
			_, body := record(real, r)
			_, _ = w.Write(body) // without its time
			return true
		}
		return false
	})
	_, err = s.Verify(context.Background(), "egov", true)
	assert.ErrorContains(t, err, "does not state its time")

	o.BreakWith(damage(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/snapshots/current") }, 2, passing["truncated"]))
	assert.True(t, s.verify().Equal, "a passing fault is tried again")
}

func TestVerifyOfASourceThatCannotBeSyncedFails(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(2, "v2")...))
	o.BreakWith(damage(isRecent, always, answering(500)))
	_, err := s.Verify(context.Background(), "egov", true)
	assert.ErrorContains(t, err, "500 Internal Server Error")
	_, err = s.Verify(context.Background(), "other", false)
	var unknown *client.UnknownError
	assert.ErrorAs(t, err, &unknown)
}
