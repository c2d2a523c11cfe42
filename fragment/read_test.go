package fragment_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

func readFragment(t testing.TB, doc string, topicSI fragment.Ref) *fragment.Fragment {
	t.Helper()
	f, err := fragment.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: sp, URI: "http://fragment"}, topicSI)
	require.NoError(t, err)
	return f
}

const head = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`

// randomMap is a map of some size in which everything occurs.
func randomMap(t testing.TB, seed uint64) *fragment.Map {
	m := draft{TopicMap: tmdm.New()}
	base(m)
	editor := testedit.New(m.TopicMap, sp, seed)
	for range 80 {
		editor.Edit()
	}
	var doc bytes.Buffer // written and read once, so that it is as a document can say it
	_, err := xtm.Write(&doc, m.TopicMap, xtm.WriteOptions{Base: sp})
	require.NoError(t, err)
	tm, err := xtm.Read(t.Context(), &doc, xtm.Options{Base: sp})
	require.NoError(t, err)
	named, err := fragment.NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)
	return named
}

// A topic that is written in XTM 2.1 and read again gives its record, the records of its associations, and the
// identifiers of all other topics.
func TestAFragmentComesBackAsTheRecordsItWasMadeOf(t *testing.T) {
	for seed := range uint64(25) {
		m := randomMap(t, seed)
		for topic := range m.Topics() {
			ref := topic.TopicSI()
			f := readFragment(t, string(written(t, m, ref, false)), ref)
			require.Equal(t, ref, f.TopicSI)
			require.Equal(t, topic, f.Topic)
			require.Equal(t, associationsOf(t, m, ref, fragment.Parts[:]...), f.Associations)
			for _, stub := range f.Stubs {
				require.NotEqual(t, ref, stub.TopicSI())
				id, err := m.Identity(stub.TopicSI())
				require.NoError(t, err)
				require.Equal(t, id.TopicSI(), stub.TopicSI())
				require.ElementsMatch(t, id.SubjectIdentifiers, stub.SubjectIdentifiers)
				require.ElementsMatch(t, id.SubjectLocators, stub.SubjectLocators)
			}
			without := readFragment(t, string(written(t, m, ref, true)), ref)
			require.Equal(t, associationsOf(t, m, ref, fragment.AsInstance, fragment.AsPlayer), without.Associations)
		}
	}
}

// A snapshot has all records, as 2.1 without any loss, and the map that is made
// of it is the map that it was made of.
func TestASnapshotComesBackAsTheMapItWasMadeOf(t *testing.T) {
	withIDs := published(t, nil, func(m draft) {
		base(m)
		for association := range m.Associations() { // a typing among them
			require.NoError(t, tmdm.AddItemIdentifier(association.Roles()[0], tmdm.Locator(fmt.Sprintf("%s#role-in-%p", sp, association))))
		}
	})
	for seed := range uint64(25) {
		m := withIDs
		if seed > 0 {
			m = randomMap(t, seed)
		}
		var doc bytes.Buffer
		require.NoError(t, fragment.WriteSnapshot(&doc, m, fragment.Form{Version: xtm.V21, SP: sp}))
		read, err := fragment.ReadSnapshot(t.Context(), bytes.NewReader(doc.Bytes()), xtm.Options{Base: sp})
		require.NoError(t, err)
		made := diff(t, m, read)
		require.True(t, made.Empty(), "%v", entries(made))
		require.Empty(t, made.PutTopics, "byte for byte")
		require.Empty(t, made.PutAssociations)
		require.Equal(t, canonical(t, m.TopicMap()), canonical(t, read.TopicMap()))
	}
}

// A map that passes the check of published maps comes back from fragments and snapshots, whatever values it
// has.
func TestWhatPassesTheCheckIsPublishedAsItIs(t *testing.T) {
	came := 0
	for i, v := range testhostile.Values {
		tm := tmdm.New()
		topic, theme := tm.CreateTopicBySubjectIdentifier("http://a"), tm.CreateTopicBySubjectIdentifier("http://b c")
		name := topic.AddName("n", nil)
		switch i % 3 {
		case 0:
			name.AddVariant(v.Value, v.Datatype, theme)
		case 1:
			topic.AddOccurrence(v.Value, v.Datatype, theme, theme)
		default:
			require.NoError(t, tmdm.AddItemIdentifier(name, sp+tmdm.Locator(v.Value)))
		}
		if xtm.Check(tm) != nil {
			continue
		}
		came++
		m, err := fragment.NameTopics(t.Context(), tm, sp, nil)
		require.NoError(t, err)
		is := topicOf(t, m, "http://a")
		require.Equal(t, is, readFragment(t, string(written(t, m, "http://a", false)), "http://a").Topic, "%.100q", v)
		var doc bytes.Buffer
		require.NoError(t, fragment.WriteSnapshot(&doc, m, fragment.Form{Version: xtm.V21, SP: sp}))
		read, err := fragment.ReadSnapshot(t.Context(), &doc, xtm.Options{Base: sp})
		require.NoError(t, err)
		require.Equal(t, is, topicOf(t, read, "http://a"), "%.100q", v)
		require.NoError(t, fragment.WriteSnapshot(&doc, m, fragment.Form{Version: xtm.V10, SP: sp}))
		_, err = fragment.ReadSnapshot(t.Context(), &doc, xtm.Options{Base: sp})
		require.NoError(t, err)
	}
	require.Greater(t, came, 40)
}

func canonical(t testing.TB, tm *tmdm.TopicMap) string {
	var b strings.Builder
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: sp, OmitItemIdentifiers: true}))
	return b.String()
}

// The topic of an entry is the one with its TopicSI among the subject
// identifiers. In a closing entry that is not the topic's own TopicSI.
func TestTheTopicOfAFragmentHasTheTopicSIOfTheEntry(t *testing.T) {
	doc := head + `<topic><subjectIdentifier href="http://a"/><subjectIdentifier href="http://b"/><name><value>n</value></name></topic></topicMap>`
	f := readFragment(t, doc, b)
	require.Equal(t, b, f.TopicSI)
	require.Equal(t, a, f.Topic.TopicSI())

	_, err := fragment.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: sp, URI: "http://fragment"}, c)
	var missing *fragment.MissingTopicError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, &fragment.MissingTopicError{URI: "http://fragment", TopicSI: c}, missing)
	require.EqualError(t, err, "http://fragment: no topic of the fragment has the subject identifier http://c that its entry names")
	for _, other := range []string{
		`<topic id="a"><subjectIdentifier href="http://x"/></topic>`,
		`<topic><subjectIdentifier href="http://x"/><subjectLocator href="http://a"/></topic>`,
		`<topic><subjectIdentifier href="http://x"/><itemIdentity href="http://a"/></topic>`,
	} {
		_, err := fragment.Read(t.Context(), strings.NewReader(head+other+`</topicMap>`), xtm.Options{Base: sp}, a)
		require.ErrorAs(t, err, &missing, "no other identifier will do")
	}
}

func TestBadDocumentsAreErrors(t *testing.T) {
	for doc, reason := range map[string]string{
		`<topicMap`: "the document ends inside a tag",
		`<html/>`:   "this looks like an HTML page, not XTM",
		head + `<topic><subjectIdentifier href="http://a"/></topic>`: "the document ends inside",
	} {
		_, err := fragment.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: sp, URI: "http://fragment"}, a)
		require.ErrorContains(t, err, reason, doc)
		require.ErrorContains(t, err, "http://fragment", doc)
		var missing *fragment.MissingTopicError
		require.False(t, errors.As(err, &missing), doc)
		_, err = fragment.ReadSnapshot(t.Context(), strings.NewReader(doc), xtm.Options{Base: sp, URI: "http://fragment"})
		require.ErrorContains(t, err, reason, doc)
	}
}

// A topic with neither a subject identifier nor a subject locator is identified by its name at the source: the
// same in each document, another for each source.
func TestTopicsThatASourceDoesNotIdentify(t *testing.T) {
	read := func(base, body string, named ...tmdm.Locator) fragment.Ref {
		f, err := fragment.ReadAs(t.Context(), strings.NewReader(head+body+`</topicMap>`), xtm.Options{Base: tmdm.Locator(base), URI: "http://fragment"}, fragment.Named{ItemIdentifiers: named})
		require.NoError(t, err)
		require.True(t, f.Topic.Unidentified())
		require.False(t, strings.HasPrefix(string(f.Topic.TopicSI()), base))
		return f.Topic.TopicSI()
	}
	name := `<name><value>n</value></name></topic>`
	x := read(sp, `<topic id="x">`+name, sp+"#x")
	for _, same := range []fragment.Ref{
		read(sp, `<topic id="y"/><topic id="x">`+name, "file:/maps/old.xtm#x"), // the two have the id in common
		read(sp, `<topic><itemIdentity href="`+sp+`#x"/>`+name, sp+"#x"),
		read(sp, `<topic id="t1"><itemIdentity href="`+sp+`#x"/>`+name, sp+"#x"),
	} {
		require.Equal(t, x, same)
	}
	require.NotEqual(t, x, read(sp, `<topic id="y">`+name, sp+"#y"))
	require.NotEqual(t, x, read("http://elsewhere/", `<topic id="x">`+name, "http://elsewhere/#x"))

	m, err := fragment.ReadSnapshot(t.Context(), strings.NewReader(head+`<topic id="x"/><topic id="y"/><topic><subjectIdentifier href="http://a"/></topic></topicMap>`), xtm.Options{Base: sp})
	require.NoError(t, err)
	topic, err := m.Topic(x)
	require.NoError(t, err)
	require.NotNil(t, topic, "the snapshot calls it so too")
	topic, err = m.Topic("http://a")
	require.NoError(t, err)
	require.False(t, topic.Unidentified())
}

// Without a state in the entry, a topic with identifiers and nothing else is
// deleted, whatever else the document has.
func TestABareTopicCountsAsDeleted(t *testing.T) {
	for name, o := range map[string]struct {
		body    string
		deleted bool
	}{
		"bare":             {`<topic><subjectIdentifier href="http://a"/><subjectLocator href="http://b"/></topic>`, true},
		"with other stuff": {`<topic><subjectIdentifier href="http://a"/></topic><topic><subjectIdentifier href="http://b"/><name><value>n</value></name></topic>`, true},
		"name":             {`<topic><subjectIdentifier href="http://a"/><name><value></value></name></topic>`, false},
		"occurrence":       {`<topic><subjectIdentifier href="http://a"/><occurrence><type><subjectIdentifierRef href="http://b"/></type><resourceData/></occurrence></topic>`, false},
		"type":             {`<topic><subjectIdentifier href="http://a"/><instanceOf><subjectIdentifierRef href="http://b"/></instanceOf></topic>`, false},
		"instance":         {`<topic><subjectIdentifier href="http://a"/></topic><topic><subjectIdentifier href="http://b"/><instanceOf><subjectIdentifierRef href="http://a"/></instanceOf></topic>`, false},
		"association": {`<topic><subjectIdentifier href="http://a"/></topic><association><type><subjectIdentifierRef href="http://b"/></type>
			<role><type><subjectIdentifierRef href="http://b"/></type><subjectIdentifierRef href="http://a"/></role></association>`, false},
		"mentioned as a type": {`<topic><subjectIdentifier href="http://a"/></topic><association><type><subjectIdentifierRef href="http://a"/></type>
			<role><type><subjectIdentifierRef href="http://a"/></type><subjectIdentifierRef href="http://b"/></role></association>`, true},
	} {
		require.Equal(t, o.deleted, readFragment(t, head+o.body+`</topicMap>`, a).Deleted, name)
	}
}

// References to topics by id, which other servers write, become references by
// the first subject identifier that the document gives. The ids are forgotten.
func TestReferencesByIdBecomeReferencesBySubjectIdentifier(t *testing.T) {
	f := readFragment(t, `<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">
		<topic id="t1"><instanceOf><topicRef xlink:href="#t2"/></instanceOf>
			<subjectIdentity><subjectIndicatorRef xlink:href="http://a"/></subjectIdentity>
			<baseName id="n"><scope><topicRef xlink:href="#t3"/></scope><baseNameString>A</baseNameString></baseName></topic>
		<topic id="t2"><subjectIdentity><subjectIndicatorRef xlink:href="http://c"/><subjectIndicatorRef xlink:href="http://b"/></subjectIdentity></topic>
		<topic id="t3"><subjectIdentity><subjectIndicatorRef xlink:href="http://d"/></subjectIdentity></topic></topicMap>`, a)
	require.Equal(t, []fragment.Name{{Value: "A", Type: tmdm.PSIDefaultNameType, Scope: []fragment.Ref{d}, ItemIdentifiers: []tmdm.Locator{sp + "#n"}}}, f.Topic.Names)
	require.Equal(t, fragment.Identity{SubjectIdentifiers: []fragment.Ref{a}}, f.Topic.Identity)
	require.Len(t, f.Associations, 1)
	class, instance, ok := f.Associations[0].TypeInstance()
	require.True(t, ok)
	require.Equal(t, c, class)
	require.Equal(t, a, instance)
}

// broken is a source whose calls fail once there have been enough of them.
type broken struct {
	*fragment.Map
	after, calls int
	err          error
}

func (b *broken) fail() error {
	if b.calls++; b.calls > b.after {
		return b.err
	}
	return nil
}

func (b *broken) Topic(si fragment.Ref) (*fragment.Topic, error) {
	if err := b.fail(); err != nil {
		return nil, err
	}
	return b.Map.Topic(si)
}

func (b *broken) Identity(si fragment.Ref) (*fragment.Identity, error) {
	if err := b.fail(); err != nil {
		return nil, err
	}
	return b.Map.Identity(si)
}

func (b *broken) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	if err := b.fail(); err != nil {
		return nil, err
	}
	return b.Map.TopicBySubjectLocator(sl)
}

func (b *broken) Topics() iter.Seq2[*fragment.Topic, error] { return brokenSeq(b, b.Map.Topics()) }

func (b *broken) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return brokenSeq(b, b.Map.AssociationsOf(player, part))
}

func (b *broken) Associations() iter.Seq2[*fragment.Association, error] {
	return brokenSeq(b, b.Map.Associations())
}

// brokenSeq fails before an element, or at the end.
func brokenSeq[T any](b *broken, seq iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for x, err := range seq {
			if failed := b.fail(); failed != nil {
				yield(nil, failed)
				return
			}
			if !yield(x, err) {
				return
			}
		}
		if err := b.fail(); err != nil {
			yield(nil, err)
		}
	}
}
