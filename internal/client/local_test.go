package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	"github.com/tmshare/tmshare/tmdm"
)

const localSP = "http://node.example.org/local/"

func (s *subscriber) importLocal(doc string, whole bool) *local.Edit {
	e, err := s.local().Import(context.Background(), "", whole, losses.Limit{}, docs.Reading(s.t, doc))
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

// Local statements survive all changes of subscriptions.
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
		tm, _, err := s.Merged(o.T.Context(), false)
		require.NoError(t, err)
		values := []string{}
		for _, n := range tm.TopicBySubjectIdentifier(tmdm.Locator(si("t1"))).Names() {
			values = append(values, n.Value())
		}
		assert.Contains(t, values, "mine")
	}
	check()
	o.Put(doc(topics(1, "v2")...)) // t1 is deleted
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

	v, err := s.merged().Topic(o.T.Context(), si("x"), false)
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

	o.Put(doc(topic("a", "A"), topic("x", "X"), topic("b", "B"))) // it comes apart
	s.sync()
	v, err = s.merged().Topic(o.T.Context(), si("x"), false)
	require.NoError(t, err)
	require.Len(t, v.Names, 1)
	assert.Equal(t, "X", v.Names[0].Value)
	_, err = s.merged().Topic(o.T.Context(), si("nobody"), false)
	assert.ErrorContains(t, err, "no source says anything of")
}

func (s *subscriber) localSP() string {
	sp, err := s.local().Ensure(context.Background(), "")
	require.NoError(s.t, err)
	return sp
}

// The name of the local statements is no subscription's.
func TestNoSubscriptionIsCalledLocal(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	_, err := newSubscriber(t).Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{Name: local.Name})
	assert.ErrorContains(t, err, "choose another name")
}
