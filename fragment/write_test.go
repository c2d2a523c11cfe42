package fragment_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// document holds the elements of an XTM 2.1 document in order.
type document struct {
	topics       []*xtm.Topic
	associations []*xtm.Association
}

func decode(t testing.TB, doc []byte) (found document) {
	t.Helper()
	dec := xtm.NewDecoder(bytes.NewReader(doc), xtm.Options{Base: sp})
	for {
		element, err := dec.Next()
		if err == io.EOF {
			return found
		}
		require.NoError(t, err, "%s", doc)
		switch element := element.(type) {
		case *xtm.Topic:
			element.Pos = xtm.Position{}
			found.topics = append(found.topics, element)
		case *xtm.Association:
			element.Pos = xtm.Position{}
			found.associations = append(found.associations, element)
		}
	}
}

// stubs returns the TopicSIs of all topics but the first.
func (d document) stubs() (refs []fragment.Ref) {
	for _, t := range d.topics[1:] {
		refs = append(refs, t.SubjectIdentifiers[0])
	}
	slices.Sort(refs)
	return refs
}

// TMShare, "Topic Map Fragment Data Service": a stub for each topic mentioned.
func TestAFragmentHasAStubForEveryTopicMentioned(t *testing.T) {
	const stub = tmdm.Locator("http://stub")
	name, typing := []fragment.Ref{tmdm.PSIDefaultNameType}, []fragment.Ref{tmdm.PSIInstance, tmdm.PSIType, tmdm.PSITypeInstance}
	for kind, o := range map[string]struct {
		say    func(m draft, t, mentioned *tmdm.Topic)
		others []fragment.Ref
	}{
		"name type":       {func(m draft, t, s *tmdm.Topic) { t.AddName("n", s) }, nil},
		"theme of a name": {func(m draft, t, s *tmdm.Topic) { t.AddName("n", nil, s) }, name},
		"theme of a variant": {func(m draft, t, s *tmdm.Topic) { t.AddName("n", nil).AddVariant("v", tmdm.XSDString, s) },
			name},
		"reifier of a name": {func(m draft, t, s *tmdm.Topic) { m.Reify(t.AddName("n", nil), stub) }, name},
		"reifier of a variant": {func(m draft, t, s *tmdm.Topic) {
			m.Reify(t.AddName("n", nil).AddVariant("v", tmdm.XSDString, m.Topic(c)), stub)
		},
			[]fragment.Ref{c, tmdm.PSIDefaultNameType}},
		"occurrence type":          {func(m draft, t, s *tmdm.Topic) { t.AddOccurrence("o", tmdm.XSDString, s) }, nil},
		"theme of an occurrence":   {func(m draft, t, s *tmdm.Topic) { t.AddOccurrence("o", tmdm.XSDString, m.Topic(c), s) }, []fragment.Ref{c}},
		"reifier of an occurrence": {func(m draft, t, s *tmdm.Topic) { m.Reify(t.AddOccurrence("o", tmdm.XSDString, m.Topic(c)), stub) }, []fragment.Ref{c}},
		"class": {func(m draft, t, s *tmdm.Topic) { t.AddType(s) },
			typing},
		"instance": {func(m draft, t, s *tmdm.Topic) { s.AddType(t) },
			typing},
		"association type":            {func(m draft, t, s *tmdm.Topic) { m.CreateAssociation(s).AddRole(m.Topic(c), t) }, []fragment.Ref{c}},
		"theme of an association":     {func(m draft, t, s *tmdm.Topic) { m.CreateAssociation(m.Topic(c), s).AddRole(m.Topic(c), t) }, []fragment.Ref{c}},
		"reifier of an association":   {func(m draft, t, s *tmdm.Topic) { m.Reify(m.Associate(c, t), stub) }, []fragment.Ref{c}},
		"role type":                   {func(m draft, t, s *tmdm.Topic) { m.CreateAssociation(m.Topic(c)).AddRole(s, t) }, []fragment.Ref{c}},
		"reifier of a role":           {func(m draft, t, s *tmdm.Topic) { m.Reify(m.Associate(c, t).Roles()[0], stub) }, []fragment.Ref{c}},
		"role type of another's role": {func(m draft, t, s *tmdm.Topic) { m.Associate(c, t, m.Topic(d)).AddRole(s, m.Topic(d)) }, []fragment.Ref{c, d}},
		"player":                      {func(m draft, t, s *tmdm.Topic) { m.Associate(c, t, s) }, []fragment.Ref{c}},
	} {
		t.Run(kind, func(t *testing.T) {
			m := published(t, nil, func(m draft) {
				s := m.Named("what is said of stubs", stub, b)
				require.NoError(t, s.AddSubjectLocator("http://document"))
				s.AddOccurrence("o", tmdm.XSDString, m.Topic("http://of a stub"))
				s.AddType(m.Topic("http://of a stub"))
				m.Associate("http://of a stub", s)
				o.say(m, m.Topic(a), s)
				m.Named("elsewhere", "http://elsewhere")
			})
			found := decode(t, written(t, m, a, false))
			require.Equal(t, a, found.topics[0].SubjectIdentifiers[0])
			expected := append([]fragment.Ref{stub}, o.others...)
			slices.Sort(expected)
			require.Equal(t, expected, found.stubs())
			for _, topic := range found.topics[1:] {
				if topic.SubjectIdentifiers[0] == stub {
					require.Equal(t, &xtm.Topic{SubjectIdentifiers: []tmdm.Locator{stub, b}, SubjectLocators: []tmdm.Locator{"http://document"}}, topic,
						"a stub carries all identifiers and nothing else")
				}
			}
		})
	}
}

// A topic that mentions itself is no stub, and one that is mentioned twice is one.
func TestEveryTopicComesOnce(t *testing.T) {
	m := published(t, nil, func(m draft) {
		own := m.Named("n", a)
		own.AddName("of itself", own, own)
		own.AddType(own)
		m.Associate(a, own, own)
		own.AddOccurrence("o", tmdm.XSDString, m.Topic(b), m.Topic(b))
		m.Associate(b, own, m.Topic(b))
	})
	found := decode(t, written(t, m, a, false))
	require.ElementsMatch(t, []fragment.Ref{b, tmdm.PSIInstance, tmdm.PSIType, tmdm.PSITypeInstance, tmdm.PSIDefaultNameType}, found.stubs())
}

// The whole of the topic, and whole associations: those that have it as a
// player, and no others.
func TestAFragmentIsTheTopicAndItsAssociations(t *testing.T) {
	m := published(t, nil, func(m draft) {
		topic := m.Topic(a, b)
		require.NoError(t, topic.AddSubjectLocator("http://document"))
		n := topic.AddName("name", m.Topic(c), m.Topic(d))
		n.AddVariant("http://variant", tmdm.XSDAnyURI, m.Topic(e))
		require.NoError(t, tmdm.AddItemIdentifier(n, sp+"#n1"))
		topic.AddOccurrence("12", tmdm.XSDInteger, m.Topic(c))
		topic.AddType(m.Topic(e))
		m.Associate(x, topic, m.Topic(c), m.Topic(d))
		m.Associate(x, m.Topic(c), m.Topic(d))
	})
	found := decode(t, written(t, m, b, false))
	by := xtm.SubjectIdentifier
	require.Equal(t, &xtm.Topic{
		SubjectIdentifiers: []tmdm.Locator{a, b}, SubjectLocators: []tmdm.Locator{"http://document"}, Types: []xtm.Ref{by(e)},
		Names: []xtm.Name{{Value: "name", Type: by(c), Scope: []xtm.Ref{by(d)}, ItemIdentifiers: []tmdm.Locator{sp + "#n1"},
			Variants: []xtm.Variant{{Value: "http://variant", Datatype: tmdm.XSDAnyURI, Scope: []xtm.Ref{by(d), by(e)}}}}},
		Occurrences: []xtm.Occurrence{{Value: "12", Datatype: tmdm.XSDInteger, Type: by(c)}},
	}, found.topics[0])
	require.Equal(t, []*xtm.Association{{Type: by(x), Roles: []xtm.Role{
		{Type: by(x), Player: by(a)}, {Type: by(x), Player: by(c)}, {Type: by(x), Player: by(d)}}}}, found.associations)
}

// The fragment of a class has its instances, unless the collection leaves them
// out. Other statements about types stay: those of the class itself, and typings that are not plain ones.
func TestInstancesCanBeLeftOut(t *testing.T) {
	m := published(t, nil, func(m draft) {
		class := m.Topic(a)
		m.Topic(b).AddType(class)
		m.Topic(c).AddType(class)
		class.AddType(m.Topic(d))
		m.Reify(m.Topic(e).AddType(class), x)
	})
	all := decode(t, written(t, m, a, false))
	require.Len(t, all.associations, 3)
	require.Equal(t, []xtm.Ref{xtm.SubjectIdentifier(d)}, all.topics[0].Types)
	require.Subset(t, all.stubs(), []fragment.Ref{b, c, d, e, x})
	without := decode(t, written(t, m, a, true))
	require.Len(t, without.associations, 1, "a reified typing belongs to both")
	require.Equal(t, []xtm.Ref{xtm.SubjectIdentifier(d)}, without.topics[0].Types)
	require.NotContains(t, without.stubs(), b)
	require.Subset(t, without.stubs(), []fragment.Ref{d, e, x})
	require.Equal(t, written(t, m, b, false), written(t, m, b, true), "an instance has its class")
}

// instanceOf has no room for item identifiers, so such a typing is written out.
func TestATypingWithItemIdentifiersKeepsThem(t *testing.T) {
	m := published(t, nil, func(m draft) {
		typing := m.Topic(a).AddType(m.Topic(b))
		require.NoError(t, tmdm.AddItemIdentifier(typing, sp+"#typing"))
		role := m.Topic(a).AddType(m.Topic(c))
		require.NoError(t, tmdm.AddItemIdentifier(role.Roles()[0], sp+"#role"))
		m.Topic(a).AddType(m.Topic(d))
	})
	found := decode(t, written(t, m, a, false))
	require.Equal(t, []xtm.Ref{xtm.SubjectIdentifier(d)}, found.topics[0].Types)
	require.Len(t, found.associations, 2)
}

func TestATombstoneIsIdentifiersAndNothingElse(t *testing.T) {
	id := fragment.Identity{SubjectIdentifiers: []tmdm.Locator{a, b}, SubjectLocators: []tmdm.Locator{c, d}}
	var doc bytes.Buffer
	require.NoError(t, fragment.WriteTombstone(&doc, id, fragment.Form{Version: xtm.V21, SP: sp}))
	require.Equal(t, document{topics: []*xtm.Topic{{SubjectIdentifiers: id.SubjectIdentifiers, SubjectLocators: id.SubjectLocators}}}, decode(t, doc.Bytes()))
}

// The entry knows which document it has: that of the topic that has its TopicSI
// now, or the empty one.
func TestAnEntryWritesItsDocument(t *testing.T) {
	form := fragment.Form{Version: xtm.V21, SP: sp}
	src := published(t, nil, func(m draft) { m.Named("A", a, b) })
	gone := fragment.Identity{SubjectIdentifiers: []tmdm.Locator{d}}
	var closing, live, empty, tombstone bytes.Buffer
	require.NoError(t, (&fragment.Entry{TopicSI: b, Topic: a}).Write(&closing, src, form))
	require.NoError(t, fragment.Write(&live, src, a, form))
	require.Equal(t, live.String(), closing.String())
	require.NoError(t, (&fragment.Entry{TopicSI: d, Deleted: true, Tombstone: gone}).Write(&empty, src, form))
	require.NoError(t, fragment.WriteTombstone(&tombstone, gone, form))
	require.Equal(t, tombstone.String(), empty.String())
}

func TestNothingIsWrittenOfATopicThatIsNotThere(t *testing.T) {
	var doc bytes.Buffer
	err := fragment.Write(&doc, published(t, nil, func(draft) {}), a, fragment.Form{Version: xtm.V21, SP: sp})
	require.EqualError(t, err, "no topic has the subject identifier http://a")
	require.Empty(t, doc.Bytes())
}

// errorWriter fails at once.
type errorWriter struct{ err error }

func (w errorWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWritingReturnsErrors(t *testing.T) {
	boom := errors.New("boom")
	form := fragment.Form{Version: xtm.V21, SP: sp}
	m := published(t, nil, func(m draft) {
		m.Topic(a).AddType(m.Topic(b))
		m.Topic(a).AddName("n", m.Topic(c), m.Topic(d))
		m.Associate(x, m.Topic(a), m.Topic(e))
	})
	for name, write := range map[string]func(io.Writer, fragment.Source) error{
		"fragment": func(w io.Writer, src fragment.Source) error { return fragment.Write(w, src, a, form) },
		"snapshot": func(w io.Writer, src fragment.Source) error { return fragment.WriteSnapshot(w, src, form) },
		"tombstone": func(w io.Writer, _ fragment.Source) error {
			return fragment.WriteTombstone(w, fragment.Identity{SubjectIdentifiers: []tmdm.Locator{a}}, form)
		},
	} {
		require.ErrorIs(t, write(errorWriter{boom}, m), boom, name)
		n := 0
		for ; ; n++ {
			err := write(io.Discard, &broken{Map: m, after: n, err: boom})
			if err == nil {
				break
			}
			require.ErrorIs(t, err, boom, name)
		}
		if name != "tombstone" {
			require.Greater(t, n, 10, "%s: each call has failed once", name)
		}
	}
}
