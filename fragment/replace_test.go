package fragment_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// counted is a published map, with a source whose mentions are counted when they
// are asked for.
type counted struct {
	fragment.Source
	t     testing.TB
	whole fragment.Source
}

func (c counted) Mentions(ref fragment.Ref) (int, error) { return mentionsOf(c.t, c.whole, ref), nil }

func count(t testing.TB, m *fragment.Map) counted { return counted{m, t, m} }

// post posts what build makes to what prior makes.
func post(t testing.TB, prior, build func(draft), named ...fragment.Ref) (*fragment.Change, error) {
	t.Helper()
	tm := tmdm.New()
	build(draft{TopicMap: tm})
	require.NoError(t, tm.Normalize(t.Context()))
	return fragment.Replace(t.Context(), count(t, published(t, nil, prior)), tm, sp, named...)
}

func TestReplace(t *testing.T) {
	mentioned := func(m draft) { m.Named("M", d).AddOccurrence("o", tmdm.XSDString, m.Topic(b)) }
	for name, o := range map[string]struct {
		prior, posted func(draft)
		named         []fragment.Ref
		entries       []string
		counts        [3]int
	}{
		"renamed":                         {base, func(m draft) { m.Named("N", a).AddType(m.Topic(b)); m.Associate(x, m.Topic(a), m.Topic(c)) }, nil, []string{"http://a"}, [3]int{0, 1, 0}},
		"the same":                        {base, func(m draft) { m.Named("A", a).AddType(m.Topic(b)); m.Associate(x, m.Topic(a), m.Topic(c)) }, nil, nil, [3]int{}},
		"an association left out":         {base, func(m draft) { m.Named("A", a).AddType(m.Topic(b)) }, nil, []string{"http://a", "http://c"}, [3]int{0, 2, 0}},
		"only a type":                     {base, func(m draft) { m.Topic(a).AddType(m.Topic(b)) }, nil, []string{"http://a", "http://c"}, [3]int{0, 2, 0}},
		"a class with its instance":       {base, func(m draft) { m.Topic(a).AddType(m.Named("B!", b)) }, nil, []string{"http://b"}, [3]int{0, 1, 0}},
		"a class with another instance":   {base, func(m draft) { m.Topic(e).AddType(m.Named("B", b)) }, nil, []string{"http://e"}, [3]int{0, 1, 0}},
		"a class, its instance named":     {base, func(m draft) { m.Topic(a).AddType(m.Named("B", b)) }, []fragment.Ref{a}, []string{"http://a", "http://c"}, [3]int{0, 2, 0}},
		"named, without statements":       {base, func(m draft) { m.Topic(e, "http://e2") }, []fragment.Ref{e}, []string{"http://e"}, [3]int{0, 1, 0}},
		"new, without a statement":        {base, func(m draft) { m.Topic("http://new") }, []fragment.Ref{"http://new"}, []string{"http://new"}, [3]int{1, 0, 0}},
		"a stub that nothing mentions":    {base, func(m draft) { m.Named("E", e); m.Topic("http://new") }, nil, []string{"http://e"}, [3]int{0, 1, 0}},
		"a stub that is new":              {base, func(m draft) { m.Named("E", e).AddOccurrence("o", "", m.Topic("http://new", "http://too")) }, nil, []string{"http://e", "http://new"}, [3]int{1, 1, 0}},
		"a stub by another identifier":    {func(m draft) { m.Topic(a, b); m.Topic(c) }, func(m draft) { m.Named("C", c).AddOccurrence("o", "", m.Topic(b, "http://more")) }, nil, []string{"http://c", string(tmdm.PSIDefaultNameType)}, [3]int{1, 1, 0}},
		"merged":                          {func(m draft) { m.Named("A", a); m.Named("B", b) }, func(m draft) { m.Named("Both", a, b) }, nil, []string{"http://a", "http://b of http://a"}, [3]int{0, 2, 0}},
		"split":                           {func(m draft) { m.Named("A", a, b) }, func(m draft) { m.Named("A", a); m.Named("B", b) }, nil, []string{"http://a", "http://b"}, [3]int{1, 1, 0}},
		"split by a stub":                 {func(m draft) { m.Named("A", a, b) }, func(m draft) { m.Named("A", a, c).AddOccurrence("o", "", m.Topic(b)) }, nil, []string{"http://a", "http://b"}, [3]int{1, 1, 0}},
		"an identifier lost":              {func(m draft) { m.Named("A", a, b) }, func(m draft) { m.Named("A", a) }, nil, []string{"http://a"}, [3]int{0, 1, 0}},
		"the TopicSI lost":                {func(m draft) { m.Named("A", a, b) }, func(m draft) { m.Named("A", b) }, nil, []string{"no http://a", "http://b"}, [3]int{1, 0, 1}},
		"an identifier that was assigned": {func(m draft) { m.Named("A", sp+"topic/t1", a) }, func(m draft) { m.Named("A!", a) }, nil, []string{sp + "topic/t1"}, [3]int{0, 1, 0}},
		"two stubs of one topic": {func(m draft) { m.Topic(a, b); m.Named("C", c) }, func(m draft) {
			n := m.Named("C", c)
			n.AddOccurrence("o", "", m.Topic(a))
			n.AddOccurrence("o", "", m.Topic(b))
		}, nil, []string{"http://c"}, [3]int{0, 1, 0}},
		"a mentioned topic":                 {func(m draft) { mentioned(m); m.Named("B", b) }, func(m draft) { m.Named("B!", b) }, nil, []string{"http://b"}, [3]int{0, 1, 0}},
		"the mention itself moves":          {mentioned, func(m draft) { m.Named("M", d).AddOccurrence("o", tmdm.XSDString, m.Named("B", c)); m.Named("B", c) }, nil, []string{"http://c", "http://d"}, [3]int{1, 1, 0}},
		"a reifier that stays":              {func(m draft) { m.Reify(m.Named("A", a).Names()[0], b) }, func(m draft) { m.Reify(m.Named("A!", a).Names()[0], b) }, nil, []string{"http://a"}, [3]int{0, 1, 0}},
		"a reifier that is a type as well":  {func(m draft) { mentioned(m); m.Named("A", a) }, func(m draft) { m.Reify(m.Named("A", a).Names()[0], b) }, nil, []string{"http://a"}, [3]int{0, 1, 0}},
		"a typing that is no longer scoped": {func(m draft) { scopedTyping(m, e) }, func(m draft) { m.Named("A", a).AddType(m.Topic(b)) }, nil, []string{"http://a", "http://b", string(tmdm.PSIDefaultNameType)}, [3]int{1, 2, 0}},
		"a typing that is no longer reified": {func(m draft) { m.Reify(m.Named("A", a).AddType(m.Topic(b)), e) },
			func(m draft) { m.Named("A", a).AddType(m.Topic(b)) }, nil, []string{"http://a", "http://b"}, [3]int{0, 2, 0}},
		"the same, about the class": {func(m draft) { m.Reify(m.Named("A", a).AddType(m.Named("B", b)), e) },
			func(m draft) { m.Topic(a).AddType(m.Named("B", b)) }, nil, []string{"http://a", "http://b"}, [3]int{0, 2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := post(t, o.prior, o.posted, o.named...)
			require.NoError(t, err)
			require.Equal(t, o.entries, entries(made))
			require.Equal(t, o.counts, counts(made))
		})
	}
}

// scopedTyping makes a an instance of b in a scope, which is no type of a.
func scopedTyping(m draft, theme tmdm.Locator) {
	typing := m.CreateAssociation(m.Topic(tmdm.PSITypeInstance), m.Topic(theme))
	typing.AddRole(m.Topic(tmdm.PSIType), m.Topic(b))
	typing.AddRole(m.Topic(tmdm.PSIInstance), m.Topic(a))
}

// A post does not rewrite statements of other topics: it is refused, and the error names these topics.
func TestReplaceRefusesWhatOthersNeed(t *testing.T) {
	for name, o := range map[string]struct {
		prior, posted func(draft)
		user          string
	}{
		"merged away, a type of occurrences": {func(m draft) { m.Named("A", a); m.Named("B", b); m.Named("M", d).AddOccurrence("o", "", m.Topic(b)) },
			func(m draft) { m.Named("Both", a, b) }, `statements of "M"`},
		"merged away, a type of a statement that goes as well": {func(m draft) {
			m.Named("A", a).AddOccurrence("o", "", m.Named("B", b))
			m.Associate(b, m.Topic(a), m.Topic(c))
			m.Named("M", d).AddOccurrence("o", "", m.Topic(b))
		}, func(m draft) { m.Named("Both", a, b) }, `statements of "M"`},
		"merged away, a class": {func(m draft) { m.Named("A", a); m.Named("B", b); m.Topic(d).AddType(m.Topic(b)) },
			func(m draft) { m.Named("Both", a, b) }, "its instance http://d"},
		"merged away, a role type": {func(m draft) {
			m.Named("A", a)
			m.Named("B", b)
			m.CreateAssociation(m.Topic(x)).AddRole(m.Topic(b), m.Topic(d))
		}, func(m draft) { m.Named("Both", a, b) }, "an association of http://d"},
		"its TopicSI lost, a theme": {func(m draft) { m.Named("A", a, b); m.Topic(d).AddName("n", nil, m.Topic(a)) },
			func(m draft) { m.Named("A", b) }, `statements of "n"`},
		"a reifier of another name": {func(m draft) { m.Reify(m.Named("M", d).Names()[0], e); m.Named("A", a) },
			func(m draft) { m.Reify(m.Named("A", a).Names()[0], e) }, `statements of "M"`},
		"a reifier of another association": {func(m draft) { m.Reify(m.Associate(x, m.Topic(c), m.Topic(d)), e); m.Named("A", a) },
			func(m draft) { m.Reify(m.Named("A", a).Names()[0], e) }, "an association of http://c, http://d"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := post(t, o.prior, o.posted)
			var inUse *fragment.InUseError
			require.ErrorAs(t, err, &inUse)
			require.Equal(t, []string{o.user}, inUse.Users)
		})
	}
}

func TestReplaceRefusesWhatTheDocumentCannotSay(t *testing.T) {
	for name, o := range map[string]struct {
		prior, posted func(draft)
		named         []fragment.Ref
		says          string
	}{
		"nothing":                    {base, func(draft) {}, nil, "describes no topic"},
		"stubs":                      {base, func(m draft) { m.Topic(a) }, nil, "describes no topic"},
		"a topic that is not there":  {base, func(m draft) { m.Named("A", a) }, []fragment.Ref{b}, "no topic with the subject identifier http://b"},
		"an association of stubs":    {base, func(m draft) { m.Named("E", e); m.Associate(x, m.Topic(a), m.Topic(c)) }, nil, "no player"},
		"no roles":                   {base, func(m draft) { m.Named("E", e); m.CreateAssociation(m.Topic(x)) }, nil, "no player"},
		"no identifier":              {base, func(m draft) { m.CreateTopic().AddName("n", nil) }, nil, "neither a subject identifier nor a subject locator"},
		"an id":                      {base, func(m draft) { require.NoError(t, tmdm.AddItemIdentifier(m.CreateTopic(), sp+"#t1")); m.Named("E", e) }, nil, "#t1 has neither"},
		"a stub of two topics":       {base, func(m draft) { m.Named("E", e).AddOccurrence("o", "", m.Topic(b, d)) }, nil, "http://b, http://d"},
		"a reifier of two":           {func(m draft) { m.Topic(a, b) }, func(m draft) { n := m.Named("E", e); m.Reify(n.Names()[0], a); m.Reify(n.AddName("N", nil), b) }, nil, "are one"},
		"themes that are one topic":  {func(m draft) { m.Topic(a, b) }, func(m draft) { m.Topic(e).AddName("n", nil, m.Topic(a)).AddVariant("v", "", m.Topic(b)) }, nil, "adds no topic"},
		"a class that is one itself": {base, func(m draft) { m.Topic(a).AddType(m.Topic(b)); m.Topic(b).AddType(m.Topic(a)) }, nil, "describes no topic"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := post(t, o.prior, o.posted, o.named...)
			var refused *fragment.DocumentError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, refused.Reason, o.says)
		})
	}
}

// Ids hold inside the document: a topic is not known by them, and a statement
// keeps one only if it replaces the statement that had it.
func TestReplaceTakesNoIDsFromTheDocument(t *testing.T) {
	prior, err := fragment.NameTopics(t.Context(), read(t, sp, `<topic id="t1"><name><value>First</value></name></topic>
		<topic id="t2"><subjectIdentifier href="http://a"/><name>`+ref("itemIdentity", "#n1")+`<value>A</value></name></topic>`), sp, nil)
	require.NoError(t, err)
	made, err := fragment.Replace(t.Context(), count(t, prior), read(t, sp, `<topic id="t1"><subjectIdentifier href="http://a"/>
		<name>`+ref("itemIdentity", "#n2")+`<value>new</value></name><name>`+ref("itemIdentity", "#n1")+`<value>A</value></name></topic>
		<association>`+ref("itemIdentity", "#n3")+`<type>`+ref("subjectIdentifierRef", "http://x")+`</type><role>`+ref("itemIdentity", "#n4")+`<type>`+ref("subjectIdentifierRef", "http://x")+`</type>`+ref("subjectIdentifierRef", "http://a")+`</role></association>`), sp)
	require.NoError(t, err)
	require.Equal(t, []string{"http://a", "http://x"}, entries(made), "t1 is another topic")
	require.Empty(t, made.PutAssociations[0].ItemIdentifiers)
	require.Empty(t, made.PutAssociations[0].Roles[0].ItemIdentifiers)
	put := made.PutTopics[0]
	require.Equal(t, []tmdm.Locator{a}, put.SubjectIdentifiers)
	require.Equal(t, []tmdm.Locator{sp + "#n1"}, put.Names[0].ItemIdentifiers)
	require.Empty(t, put.Names[1].ItemIdentifiers)
}

func TestReplaceKnowsTopicsBySubjectLocator(t *testing.T) {
	located := func(name string) func(draft) {
		return func(m draft) { m.CreateTopicBySubjectLocator("http://d").AddName(name, nil) }
	}
	made, err := post(t, located("A"), located("B"))
	require.NoError(t, err)
	require.Equal(t, [3]int{0, 1, 0}, counts(made))
	made, err = post(t, located("A"), located("A"))
	require.NoError(t, err)
	require.True(t, made.Empty())
}

func TestReplaceReturnsTheErrorOfTheState(t *testing.T) {
	boom := errors.New("boom")
	n := 0
	for ; ; n++ {
		tm := tmdm.New()
		m := draft{TopicMap: tm}
		m.Named("Both", a, c).AddType(m.Topic(b))
		require.NoError(t, tm.Normalize(t.Context()))
		prior := published(t, nil, base)
		_, err := fragment.Replace(t.Context(), counted{&broken{Map: prior, after: n, err: boom}, t, prior}, tm, sp)
		if err == nil {
			break
		}
		var inUse *fragment.InUseError
		if errors.As(err, &inUse) {
			break
		}
		require.ErrorIs(t, err, boom)
	}
	require.Greater(t, n, 15, "each call has failed once")
}
