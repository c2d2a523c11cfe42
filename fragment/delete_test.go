package fragment_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// mentionsOf counts the references to a topic other than as a player, as a
// state does that keeps count.
func mentionsOf(t testing.TB, src fragment.Source, ref fragment.Ref) (n int) {
	t.Helper()
	count := func(r fragment.Ref) {
		if r == ref {
			n++
		}
	}
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		topic.Mentions(count)
	}
	for a, err := range src.Associations() {
		require.NoError(t, err)
		a.Mentions(count)
	}
	return n
}

func remove(t testing.TB, build func(draft), ref fragment.Ref) (*fragment.Change, error) {
	t.Helper()
	m := published(t, nil, build)
	return fragment.Delete(m, ref, mentionsOf(t, m, ref))
}

func TestDeletePublishesATombstoneAndItsFellowPlayers(t *testing.T) {
	build := func(m draft) {
		require.NoError(t, m.Named("Gone", b, e).AddSubjectLocator("http://document"))
		m.Topic(b).AddType(m.Named("its class", c))
		m.Associate(x, m.Topic(b), m.Named("player", a), m.Topic(d))
		m.Associate(x, m.Topic(b), m.Topic(d))
		m.Associate(x, m.Topic(c), m.Topic(d))
	}
	made, err := remove(t, build, b)
	require.NoError(t, err)
	require.Equal(t, []string{"http://a", "no http://b", "http://d"}, entries(made), "the class is not changed")
	require.Equal(t, [3]int{0, 2, 1}, counts(made))
	require.Equal(t, []fragment.Ref{b}, made.DeleteTopics)
	require.Len(t, made.DeleteAssociations, 3, "its own, type included")
	require.Empty(t, made.PutTopics)
	require.Empty(t, made.PutAssociations)
	tombstone := made.Entries[1]
	require.Equal(t, fragment.Identity{SubjectIdentifiers: []tmdm.Locator{b, e}, SubjectLocators: []tmdm.Locator{"http://document"}}, tombstone.Tombstone)
	require.Equal(t, "Gone", tombstone.Title)
	require.Equal(t, "player", made.Entries[0].Title)

	prior := published(t, nil, build)
	next := published(t, prior, func(m draft) {
		m.Named("its class", c)
		m.Named("player", a)
		m.Associate(x, m.Topic(c), m.Topic(d))
		m.Topic(tmdm.PSIType)
		m.Topic(tmdm.PSIInstance)
		m.Topic(tmdm.PSITypeInstance)
	})
	require.Equal(t, diff(t, prior, next).Entries, made.Entries, "Diff returns the same for a map without the topic")
}

// A topic in use is not deleted: the error names the uses.
func TestDeleteRefusesWhatIsInUse(t *testing.T) {
	for name, o := range map[string]struct {
		use  func(m draft, gone *tmdm.Topic)
		user string
	}{
		"type of a name":         {func(m draft, t *tmdm.Topic) { m.Named("User", a).AddName("n", t) }, `statements of "User"`},
		"theme of a name":        {func(m draft, t *tmdm.Topic) { m.Named("User", a).AddName("n", nil, t) }, `statements of "User"`},
		"theme of a variant":     {func(m draft, t *tmdm.Topic) { m.Named("User", a).Names()[0].AddVariant("v", tmdm.XSDString, t) }, `statements of "User"`},
		"reifier of a name":      {func(m draft, t *tmdm.Topic) { m.Reify(m.Named("User", a).Names()[0], b) }, `statements of "User"`},
		"type of an occurrence":  {func(m draft, t *tmdm.Topic) { m.Topic(a).AddOccurrence("o", tmdm.XSDString, t) }, `statements of "http://a"`},
		"theme of an occurrence": {func(m draft, t *tmdm.Topic) { m.Topic(a).AddOccurrence("o", tmdm.XSDString, m.Topic(x), t) }, `statements of "http://a"`},
		"reifier of an occurrence": {func(m draft, t *tmdm.Topic) {
			m.Reify(m.Topic(a).AddOccurrence("o", tmdm.XSDString, m.Topic(x)), b)
		}, `statements of "http://a"`},
		"type of an association":    {func(m draft, t *tmdm.Topic) { m.CreateAssociation(t).AddRole(m.Topic(x), m.Topic(a)) }, "an association of http://a"},
		"theme of an association":   {func(m draft, t *tmdm.Topic) { m.CreateAssociation(m.Topic(x), t).AddRole(m.Topic(x), m.Topic(a)) }, "an association of http://a"},
		"type of a role":            {func(m draft, t *tmdm.Topic) { m.CreateAssociation(m.Topic(x)).AddRole(t, m.Topic(a)) }, "an association of http://a"},
		"reifier of an association": {func(m draft, t *tmdm.Topic) { m.Reify(m.Associate(x, m.Topic(a), m.Topic(c)), b) }, "an association of http://a, http://c"},
		"reifier of a role":         {func(m draft, t *tmdm.Topic) { m.Reify(m.Associate(x, m.Topic(a)).Roles()[0], b) }, "an association of http://a"},
		"class":                     {func(m draft, t *tmdm.Topic) { m.Topic(a).AddType(t) }, "its instance http://a"},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(m draft) {
				gone := m.Named("Gone", b)
				m.Associate("http://own", gone, gone).AddRole(gone, gone) // never a user
				gone.AddType(gone)
				gone.AddName("of itself", gone)
				o.use(m, gone)
			}
			_, err := remove(t, build, b)
			var inUse *fragment.InUseError
			require.ErrorAs(t, err, &inUse)
			require.Equal(t, b, inUse.Topic)
			require.Equal(t, []string{o.user}, inUse.Users)
			require.EqualError(t, err, "topic http://b is in use: "+o.user)
		})
	}
}

// The topic's own statements are deleted with it.
func TestItsOwnMentionsDoNotKeepATopic(t *testing.T) {
	made, err := remove(t, func(m draft) {
		own := m.Named("n", a)
		own.AddName("typed and scoped by itself", own, own)
		own.AddOccurrence("o", tmdm.XSDString, own, own)
		own.AddType(own)
		association := m.CreateAssociation(own, own)
		association.AddRole(own, own)
		association.AddRole(own, m.Topic(b))
		m.Reify(association, a)
	}, a)
	require.NoError(t, err)
	require.Equal(t, []string{"no http://a", "http://b"}, entries(made))
	require.Len(t, made.DeleteAssociations, 2)
}

func TestDeleteNamesSomeOfManyUsers(t *testing.T) {
	for name, use := range map[string]func(m draft, user *tmdm.Topic){
		"statements": func(m draft, user *tmdm.Topic) { user.AddName("n", m.Topic(b)) },
		"instances":  func(m draft, user *tmdm.Topic) { user.AddType(m.Topic(b)) },
	} {
		_, err := remove(t, func(m draft) {
			for i := range 50 {
				use(m, m.Topic(tmdm.Locator(fmt.Sprintf("http://user/%d", i))))
			}
		}, b)
		var inUse *fragment.InUseError
		require.ErrorAs(t, err, &inUse, name)
		require.Len(t, inUse.Users, 20, name)
	}
}

func TestDeleteTakesTheTopicSIOfATopicThatIsThere(t *testing.T) {
	m := published(t, nil, func(m draft) { m.Topic(c).AddName("typed", m.Topic(a, b)) })
	_, err := fragment.Delete(m, d, 0)
	require.EqualError(t, err, "no topic has the subject identifier http://d")
	// The count of references is one to the TopicSI. By another identifier it
	// would be zero, and the topic looked unused.
	_, err = fragment.Delete(m, b, mentionsOf(t, m, b))
	require.EqualError(t, err, "http://b is an identifier of the topic http://a, not its TopicSI")
}

func TestDeleteReturnsTheErrorOfTheState(t *testing.T) {
	boom := errors.New("boom")
	for name, use := range map[string]func(m draft){
		"unused": func(m draft) {},
		"used":   func(m draft) { m.Topic(c).AddName("n", m.Topic(a)); m.Associate(a, m.Topic(c)) },
	} {
		m := published(t, nil, func(m draft) { m.Associate(x, m.Named("A", a), m.Topic(b)); use(m) })
		mentions, n := mentionsOf(t, m, a), 0
		for ; ; n++ {
			_, err := fragment.Delete(&broken{Map: m, after: n, err: boom}, a, mentions)
			if !errors.Is(err, boom) {
				break
			}
		}
		require.Greater(t, n, 5, "%s: each call has failed once", name)
	}
}
