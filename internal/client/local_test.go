package client_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func reading(t *testing.T, doc string) func(tmdm.Locator) (*tmdm.TopicMap, error) {
	return func(base tmdm.Locator) (*tmdm.TopicMap, error) {
		assert.NotEmpty(t, base)
		return xtm.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: base})
	}
}

const localSP = "http://node.example.org/local/"

func (s *subscriber) importLocal(doc string, whole bool) *local.Edit {
	e, err := s.local().Import(context.Background(), "", whole, fragment.MaxDelete{}, reading(s.t, doc))
	require.NoError(s.t, err)
	return e
}

func (s *subscriber) edit(id string, f func(tm *tmdm.TopicMap, t *tmdm.Topic)) *local.Edit {
	e, err := s.local().EditTopic(context.Background(), si(id), "", func(tm *tmdm.TopicMap, t *tmdm.Topic) error {
		f(tm, t)
		return nil
	})
	require.NoError(s.t, err)
	return e
}

// Local statements survive whatever happens to the subscriptions.
func TestLocalStatementsSurviveEverything(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o)
	sp, err := s.local().Ensure(context.Background(), localSP)
	require.NoError(t, err)
	assert.Equal(t, localSP, sp)

	e := s.edit("t1", func(_ *tmdm.TopicMap, t *tmdm.Topic) { t.AddName("mine", nil) })
	assert.Equal(t, local.Edit{SP: localSP, Added: 2}, *e, "it and the type of names")
	_, err = s.local().Ensure(context.Background(), "http://other.example.org/")
	assert.ErrorContains(t, err, "cannot change")
	mine := doc(topic("t1", "mine"))
	check := func() {
		t.Helper()
		s.hasAs(local.Name, localSP, mine)
		tm, _, err := s.Merged(o.t.Context(), false)
		require.NoError(t, err)
		values := []string{}
		for _, n := range tm.TopicBySubjectIdentifier(tmdm.Locator(si("t1"))).Names() {
			values = append(values, n.Value())
		}
		assert.Contains(t, values, "mine")
	}
	check()
	o.put(doc(topics(1, "v2")...)) // t1 is deleted
	s.sync()
	s.has(o, doc(topics(1, "v2")...))
	check()
	_, err = s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	check()
	require.NoError(t, s.Unsubscribe(context.Background(), "egov"))
	check()
	s.restart()
	check()
}

// Local edits of a topic that others know refer to it by their TopicSI alone.
func TestLocalEditsAssertOneIdentifier(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(alias("a", "x", "A"), topic("b", "B")))
	s := inStep(t, o)
	s.edit("x", func(_ *tmdm.TopicMap, t *tmdm.Topic) { t.AddName("mine", nil) })
	s.hasAs(local.Name, s.localSP(), doc(topic("a", "mine")))

	v, err := s.merged().Topic(o.t.Context(), si("x"), false)
	require.NoError(t, err)
	assert.Equal(t, si("a"), v.TopicSI)
	by := map[string][]string{}
	for _, n := range v.Names {
		by[n.Value] = n.By
	}
	assert.Equal(t, map[string][]string{"A": {"egov"}, "mine": {local.Name}}, by)
	for _, l := range v.SubjectIdentifiers {
		assert.Equal(t, l.Locator == si("a"), len(l.By) == 2, "%v", l)
	}

	o.put(doc(topic("a", "A"), topic("x", "X"), topic("b", "B"))) // it comes apart
	s.sync()
	v, err = s.merged().Topic(o.t.Context(), si("x"), false)
	require.NoError(t, err)
	require.Len(t, v.Names, 1)
	assert.Equal(t, "X", v.Names[0].Value)
	_, err = s.merged().Topic(o.t.Context(), si("nobody"), false)
	assert.ErrorContains(t, err, "no source says anything of")
}

func (s *subscriber) localSP() string {
	sp, err := s.local().Ensure(context.Background(), "")
	require.NoError(s.t, err)
	return sp
}

func TestImportLocal(t *testing.T) {
	t.Parallel()
	s := newSubscriber(t)
	_, _, err := s.Merged(s.t.Context(), false)
	assert.ErrorContains(t, err, "there are no subscriptions")
	e := s.importLocal(doc(topics(3, "v1")...), false)
	assert.Equal(t, 4, e.Added, "and the type of names")
	assert.Regexp(t, "^x-tmshare://[0-9a-f-]+/$", e.SP)
	assert.Equal(t, local.Edit{SP: e.SP, Updated: 1}, *s.importLocal(doc(topics(1, "v2")...), false), "others stay")
	assert.Equal(t, local.Edit{SP: e.SP}, *s.importLocal(doc(topics(1, "v2")...), false), "nothing changes")
	s.hasAs(local.Name, e.SP, doc(append(topics(1, "v2"), topics(3, "v1")[1:]...)...))
	assert.Equal(t, 2, s.importLocal(doc(topics(1, "v2")...), true).Deleted)
	s.hasAs(local.Name, e.SP, doc(topics(1, "v2")...))

	_, err = s.local().Import(context.Background(), "", false, fragment.MaxDelete{}, reading(t, "<topicMap"))
	assert.Error(t, err)
	s.hasAs(local.Name, e.SP, doc(topics(1, "v2")...))
	last := store.Activity{}
	require.NoError(t, s.db.Activity(s.t.Context(), func(a store.Activity) bool { last = a; return false }))
	assert.Equal(t, store.ActivityEdited, last.Kind)
}

// What is taken back leaves nothing behind, unless others refer to it.
func TestEditsCanBeTakenBack(t *testing.T) {
	t.Parallel()
	s := newSubscriber(t)
	sp := s.localSP()
	s.edit("a", func(tm *tmdm.TopicMap, a *tmdm.Topic) {
		a.AddName("A", nil)
		assoc := tm.CreateAssociation(tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si("near"))))
		assoc.AddRole(tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si("from"))), a)
		assoc.AddRole(tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si("to"))), tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si("b"))))
	})
	s.hasAs(local.Name, sp, doc(topic("a", "A"), link("near", "a", "b")))
	s.edit("b", func(_ *tmdm.TopicMap, b *tmdm.Topic) { b.AddName("B", nil) })
	s.hasAs(local.Name, sp, doc(topic("a", "A"), topic("b", "B"), link("near", "a", "b")))

	_, err := s.local().RemoveTopic(context.Background(), si("near"))
	assert.ErrorAs(t, err, new(*fragment.InUseError))
	e, err := s.local().RemoveTopic(context.Background(), si("a"))
	require.NoError(t, err)
	assert.Equal(t, 4, e.Deleted, "it, and the types and roles that nothing refers to any more")
	_, err = s.local().RemoveTopic(context.Background(), si("a"))
	assert.ErrorContains(t, err, "there are no local statements about")
	s.edit("b", func(_ *tmdm.TopicMap, b *tmdm.Topic) { b.Names()[0].Remove() })
	v, err := s.merged().Topic(s.t.Context(), si("b"), false)
	assert.Error(t, err, "%v", v)

	e = s.edit("c", func(*tmdm.TopicMap, *tmdm.Topic) {})
	assert.Zero(t, e.Added, "nothing was said")
}

// The name of the local statements is no subscription's.
func TestNoSubscriptionIsCalledLocal(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	_, err := newSubscriber(t).Subscribe(context.Background(), o.feedURL("egov"), client.SubscribeOptions{Name: local.Name})
	assert.ErrorContains(t, err, "choose another name")
}

// A document that cannot be read leaves nothing behind, and as long as nothing has
// been said the prefix can be chosen.
func TestPrefixOfLocalStatementsCanBeChosenAsLongAsThereAreNone(t *testing.T) {
	t.Parallel()
	s := newSubscriber(t)
	_, err := s.local().Import(context.Background(), "", false, fragment.MaxDelete{}, reading(t, "<topicMap"))
	require.Error(t, err)
	all, err := s.db.Collections(s.t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
	made := s.localSP()
	e, err := s.local().Import(context.Background(), localSP, false, fragment.MaxDelete{}, reading(t, doc(topic("a", "A"))))
	require.NoError(t, err)
	assert.Equal(t, localSP, e.SP)
	assert.NotEqual(t, made, localSP)
	s.importLocal(doc(), true)
	_, err = s.local().Ensure(context.Background(), made)
	assert.NoError(t, err, "there are none any more")
}
