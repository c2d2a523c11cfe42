package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
)

// both returns a subscriber of two collections of two servers.
func both(t *testing.T, egov, libraries string) (s *subscriber, first, second *origin) {
	first = publishing(t, egov)
	second = newOrigin(t)
	second.Create("libraries", libraries)
	s = inStep(t, first)
	_, err := s.Subscribe(context.Background(), second.FeedURL("libraries"), client.SubscribeOptions{})
	require.NoError(t, err)
	s.syncLibraries()
	return s, first, second
}

func (s *subscriber) syncLibraries() {
	r, err := s.Sync(context.Background(), "libraries")
	require.NoError(s.t, err)
	require.NotZero(s.t, r.Mark)
}

// A statement deleted by one source may remain in another; both sources may make the same one.
func TestMergedViewJoinsWhatSourcesSayOfASubject(t *testing.T) {
	t.Parallel()
	oslo := `<topic><subjectIdentifier href="http://psi.example.org/oslo"/><name><value>Oslo</value></name>`
	s, first, second := both(t,
		doc(oslo+`<occurrence><type><subjectIdentifierRef href="http://psi.example.org/area"/></type><resourceData>454</resourceData></occurrence></topic>`, topic("area", "area")),
		doc(oslo+`<name><value>Kristiania</value></name></topic>`, topic("bergen", "Bergen")))

	merged := func() string {
		tm, conflicts, err := s.Merged(first.T.Context(), false)
		require.NoError(t, err)
		assert.Zero(t, conflicts)
		return canonical(t, tm, first.SP("egov"))
	}
	whole := published(t, doc(oslo+`<name><value>Kristiania</value></name><occurrence><type><subjectIdentifierRef href="http://psi.example.org/area"/></type><resourceData>454</resourceData></occurrence></topic>`,
		topic("area", "area"), topic("bergen", "Bergen")), first.SP("egov"))
	assert.Equal(t, canonical(t, whole, first.SP("egov")), merged())

	first.Put(doc(topic("area", "area"))) // without Oslo
	s.sync()
	assert.Equal(t, canonical(t, published(t, doc(oslo+`<name><value>Kristiania</value></name></topic>`, topic("area", "area"), topic("bergen", "Bergen")), first.SP("egov")), first.SP("egov")), merged())

	second.PutAs("libraries", doc())
	s.syncLibraries()
	assert.Equal(t, canonical(t, published(t, doc(topic("area", "area")), first.SP("egov")), first.SP("egov")), merged())
}

// One source merges two subjects. When it revokes that, they are split, and all statements of the other source about
// them remain.
func TestSubjectsJoinedByASourceComeApartAgain(t *testing.T) {
	t.Parallel()
	alone := doc(topic("a", "A"), topic("b", "B"))
	bridge := doc(`<topic><subjectIdentifier href="http://psi.example.org/a"/><subjectIdentifier href="http://psi.example.org/b"/><name><value>A is B</value></name></topic>`)
	s, first, second := both(t, alone, bridge)
	tm, _, err := s.Merged(first.T.Context(), false)
	require.NoError(t, err)
	one := tm.TopicBySubjectIdentifier("http://psi.example.org/a")
	assert.Same(t, one, tm.TopicBySubjectIdentifier("http://psi.example.org/b"))
	assert.Len(t, one.Names(), 3)

	first.Put(doc(topic("a", "A changed"), topic("b", "B")))
	s.sync()
	second.PutAs("libraries", doc())
	s.syncLibraries()
	s.has(first, doc(topic("a", "A changed"), topic("b", "B")))
	tm, _, err = s.Merged(first.T.Context(), false)
	require.NoError(t, err)
	sp := first.SP("egov")
	assert.Equal(t, canonical(t, published(t, doc(topic("a", "A changed"), topic("b", "B")), sp), sp), canonical(t, tm, sp))
}

// Two servers that have one prefix by accident call different topics by one name. So a second
// one is refused, unless the subscriber knows better; several collections of one server may
// have one prefix.
func TestPrefixOfAnotherServerIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	first, second := publishing(t, doc(topic("a", "A"))), newOrigin(t)
	second.CreateWithPrefix("egov", first.SP("egov"), doc(topic("b", "B")))
	s := inStep(t, first)
	_, err := s.Subscribe(ctx, second.FeedURL("egov"), client.SubscribeOptions{Name: "second"})
	var shared *client.SharedPrefixError
	require.ErrorAs(t, err, &shared)
	assert.Equal(t, client.SharedPrefixError{SP: first.SP("egov"), URL: second.FeedURL("egov"), Other: "egov", OtherURL: first.FeedURL("egov")}, *shared)
	assert.ErrorContains(t, err, "--allow-shared-prefix")
	_, err = s.Subscription(ctx, "second")
	assert.ErrorAs(t, err, new(*client.UnknownError))

	_, err = s.Subscribe(ctx, second.FeedURL("egov"), client.SubscribeOptions{Name: "second", AllowSharedPrefix: true})
	require.NoError(t, err)
	first.CreateWithPrefix("more", first.SP("egov"), doc(topic("c", "C")))
	_, err = s.Subscribe(ctx, first.FeedURL("more"), client.SubscribeOptions{})
	assert.ErrorAs(t, err, &shared, "the second server has it too now")
	require.NoError(t, s.Unsubscribe(ctx, "second"))
	_, err = s.Subscribe(ctx, first.FeedURL("more"), client.SubscribeOptions{})
	require.NoError(t, err)
}

// Two subscriptions to one collection do not disturb each other either, though
// their prefix is the same.
func TestTwoSubscriptionsToOneCollection(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(4, "v1")...))
	s := inStep(t, o)
	_, err := s.Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{Name: "again", Again: true})
	require.NoError(t, err)
	_, err = s.Sync(context.Background(), "again")
	require.NoError(t, err)
	o.Put(doc(topics(3, "v2")...))
	s.sync()
	s.has(o, doc(topics(3, "v2")...))
	s.hasAs("again", o.SP("egov"), doc(topics(4, "v1")...))
}
