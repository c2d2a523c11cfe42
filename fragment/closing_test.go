package fragment_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// counts returns the counts of a change: topics added, updated, deleted.
func counts(c *fragment.Change) [3]int { return [3]int{c.Added, c.Updated, c.Deleted} }

func TestATopicSIThatCeasesGetsAClosingEntry(t *testing.T) {
	for name, o := range map[string]struct {
		before, after func(draft)
		entries       []string
		counts        [3]int
	}{
		"added":                                 {func(m draft) { m.Topic(a) }, func(m draft) { m.Topic(a); m.Topic(b) }, []string{"http://b"}, [3]int{1, 0, 0}},
		"deleted":                               {func(m draft) { m.Topic(a); m.Topic(b) }, func(m draft) { m.Topic(b) }, []string{"no http://a"}, [3]int{0, 0, 1}},
		"merged":                                {func(m draft) { m.Topic(a); m.Topic(b) }, func(m draft) { m.Topic(a, b) }, []string{"http://a", "http://b of http://a"}, [3]int{0, 2, 0}},
		"split":                                 {func(m draft) { m.Topic(a, b) }, func(m draft) { m.Topic(a); m.Topic(b) }, []string{"http://a", "http://b"}, [3]int{1, 1, 0}},
		"renamed":                               {func(m draft) { m.Topic(a, b) }, func(m draft) { m.Topic(b) }, []string{"no http://a", "http://b"}, [3]int{1, 0, 1}},
		"moved":                                 {func(m draft) { m.Topic(d, b); m.Topic(c) }, func(m draft) { m.Topic(b); m.Topic(c, d) }, []string{"http://b", "http://c", "http://d of http://c"}, [3]int{1, 2, 0}},
		"exchanged":                             {func(m draft) { m.Named("A", a); m.Named("B", b) }, func(m draft) { m.Named("B", a); m.Named("A", b) }, []string{"http://a", "http://b"}, [3]int{0, 2, 0}},
		"an identifier that is no TopicSI lost": {func(m draft) { m.Topic(a, b) }, func(m draft) { m.Topic(a) }, []string{"http://a"}, [3]int{0, 1, 0}},
		"nothing":                               {func(m draft) { m.Topic(a, b) }, func(m draft) { m.Topic(a, b) }, nil, [3]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			made := change(t, o.before, o.after)
			require.Equal(t, o.entries, entries(made))
			require.Equal(t, o.counts, counts(made))
			require.Equal(t, len(made.Entries), made.Added+made.Updated+made.Deleted)
		})
	}
}

// A tombstone lists the identifiers that the topic had, the TopicSI first, but none that a live topic has now.
func TestATombstoneListsFormerIdentifiersMinusLiveOnes(t *testing.T) {
	made := change(t, func(m draft) {
		gone := m.Named("Gone", d, a, b, c)
		require.NoError(t, gone.AddSubjectLocator("http://d1"))
		require.NoError(t, gone.AddSubjectLocator("http://d2"))
		m.Named("X", x)
	}, func(m draft) {
		require.NoError(t, m.Named("X", x, b).AddSubjectLocator("http://d2"))
	})
	require.Equal(t, []string{"no http://d", "http://x"}, entries(made))
	tombstone := made.Entries[0]
	require.Equal(t, fragment.Identity{SubjectIdentifiers: []tmdm.Locator{d, a, c}, SubjectLocators: []tmdm.Locator{"http://d1"}}, tombstone.Tombstone)
	require.Equal(t, "Gone", tombstone.Title)
	require.Equal(t, fragment.Identity{}, made.Entries[1].Tombstone)
}

func TestAClosingEntryHasTheTitleOfTheOwner(t *testing.T) {
	made := change(t, func(m draft) { m.Named("A", a); m.Named("B", b) }, func(m draft) { m.Named("Both", a, b) })
	require.Equal(t, "Both", made.Entries[0].Title)
	require.Equal(t, "Both", made.Entries[1].Title)
}

// The records of a change turn the state before into the state after.
func TestTheRecordsOfAChange(t *testing.T) {
	made := change(t, func(m draft) {
		m.Topic(a).AddType(m.Topic(b))
		m.Topic(e).AddType(m.Topic(b))
		m.Associate(x, m.Topic(a), m.Topic(c))
		m.Topic(d)
	}, func(m draft) {
		m.Topic(a).AddType(m.Topic(b))
		m.Topic(e)
		m.Associate(x, m.Topic(a), m.Topic(c), m.Topic(b))
		m.Named("new", "http://new").AddType(m.Topic(b))
	})
	var put []fragment.Ref
	for _, topic := range made.PutTopics {
		put = append(put, topic.TopicSI())
	}
	require.Equal(t, []fragment.Ref{"http://new", tmdm.PSIDefaultNameType}, put, "topics whose own record changed")
	require.Equal(t, []fragment.Ref{d}, made.DeleteTopics)
	require.Len(t, made.DeleteAssociations, 2, "a typing, and the association that got another player")
	require.Len(t, made.PutAssociations, 2, "each once, not for each player")
	require.Equal(t, []string{"http://a", "http://b", "http://c", "no http://d", "http://e", "http://new", string(tmdm.PSIDefaultNameType)}, entries(made))
}

// The ids that documents give to statements are kept up to date in the records,
// or an id that moved would be at two statements. They are no news to others.
func TestAnItemIdentifierThatMovesIsWrittenAndNotPublished(t *testing.T) {
	version := func(onA, onB, onAssociation string) *tmdm.TopicMap {
		id := func(s string) string {
			if s == "" {
				return ""
			}
			return ref("itemIdentity", "#"+s)
		}
		return read(t, sp, `<topic><subjectIdentifier href="http://a"/><name>`+id(onA)+`<value>A</value></name></topic>
			<topic><subjectIdentifier href="http://b"/><name>`+id(onB)+`<value>B</value></name></topic>
			<association>`+id(onAssociation)+`<type>`+ref("subjectIdentifierRef", "http://x")+`</type>
				<role><type>`+ref("subjectIdentifierRef", "http://x")+`</type>`+ref("subjectIdentifierRef", "http://a")+`</role></association>`)
	}
	prior, err := fragment.NameTopics(t.Context(), version("n1", "", "n2"), sp, nil)
	require.NoError(t, err)
	next, err := fragment.NameTopics(t.Context(), version("n2", "n1", ""), sp, prior)
	require.NoError(t, err)
	made := diff(t, prior, next)
	require.True(t, made.Empty())
	require.Equal(t, [3]int{}, counts(made))
	require.Len(t, made.PutTopics, 2)
	require.Equal(t, []tmdm.Locator{sp + "#n2"}, made.PutTopics[0].Names[0].ItemIdentifiers)
	require.Equal(t, []tmdm.Locator{sp + "#n1"}, made.PutTopics[1].Names[0].ItemIdentifiers)
	require.Len(t, made.PutAssociations, 1)
	require.Empty(t, made.PutAssociations[0].ItemIdentifiers)
	require.Empty(t, made.DeleteAssociations)

	next, err = fragment.NameTopics(t.Context(), read(t, sp, `<topic><subjectIdentifier href="http://a"/><name><value>A</value></name></topic>
		<topic><subjectIdentifier href="http://b"/><name>`+ref("itemIdentity", "#n1")+`<value>B</value></name></topic>
		<topic><subjectIdentifier href="http://x"/></topic>`), sp, prior)
	require.NoError(t, err)
	made = diff(t, prior, next)
	require.Equal(t, []string{"http://a"}, entries(made), "for its association")
	require.Len(t, made.PutTopics, 2, "its name gave its id away all the same")
}

// The order of a document's elements, names, roles and identifiers has no meaning.
func TestTheOrderOfADocumentChangesNothing(t *testing.T) {
	for seed := range uint64(80) {
		m := draft{TopicMap: read(t, sp, `<topic id="t1"/><topic id="t2"/><topic id="t3"/><topic><subjectLocator href="http://d"/></topic>`)}
		base(m)
		tm := m.TopicMap
		editor := testedit.New(tm, sp, seed)
		for range 40 {
			editor.Edit()
		}
		var document bytes.Buffer
		_, err := xtm.Write(&document, tm, xtm.WriteOptions{Base: sp})
		require.NoError(t, err)
		first, err := xtm.Read(t.Context(), bytes.NewReader(document.Bytes()), xtm.Options{Base: sp})
		require.NoError(t, err)
		prior, err := fragment.NameTopics(t.Context(), first, sp, nil)
		require.NoError(t, err)
		next, err := fragment.NameTopics(t.Context(), shuffled(t, document.Bytes(), seed), sp, prior)
		require.NoError(t, err)
		made := diff(t, prior, next)
		require.True(t, made.Empty(), "seed %d: %v", seed, entries(made))
		require.Empty(t, made.PutTopics)
		require.Empty(t, made.PutAssociations)
		require.Empty(t, made.DeleteTopics)
		require.Empty(t, made.DeleteAssociations)
	}
}

// shuffled reads an XTM 2.1 document with everything in another order.
func shuffled(t *testing.T, document []byte, seed uint64) *tmdm.TopicMap {
	rng := rand.New(rand.NewPCG(seed, 3))
	dec := xtm.NewDecoder(bytes.NewReader(document), xtm.Options{Base: sp})
	var elements []xtm.Element
	for {
		element, err := dec.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		elements = append(elements, element)
	}
	mixList(rng, elements)
	var out bytes.Buffer
	enc := xtm.NewEncoder(&out, xtm.V21, sp)
	for _, element := range elements {
		switch element := element.(type) {
		case *xtm.Topic:
			mixList(rng, element.SubjectIdentifiers)
			mixList(rng, element.SubjectLocators)
			mixList(rng, element.Types)
			mixList(rng, element.Names)
			mixList(rng, element.Occurrences)
			for i := range element.Names {
				mixList(rng, element.Names[i].Scope)
				mixList(rng, element.Names[i].Variants)
			}
			require.NoError(t, enc.Topic(element))
		case *xtm.Association:
			mixList(rng, element.Scope)
			mixList(rng, element.Roles)
			require.NoError(t, enc.Association(element))
		}
	}
	require.NoError(t, enc.Close())
	require.NotEqual(t, document, out.Bytes())
	tm, err := xtm.Read(t.Context(), &out, xtm.Options{Base: sp})
	require.NoError(t, err)
	return tm
}

func mixList[T any](rng *rand.Rand, list []T) {
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func TestDiffReturnsTheErrorOfTheState(t *testing.T) {
	boom := errors.New("boom")
	before := func(m draft) { m.Associate(x, m.Topic(a), m.Topic(b)); m.Topic(c) }
	prior := published(t, nil, before)
	next := published(t, prior, func(m draft) { m.Associate(x, m.Topic(a), m.Topic(d)) })
	n := 0
	for ; ; n++ {
		_, err := fragment.Diff(t.Context(), &broken{Map: prior, after: n, err: boom}, next)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, boom)
	}
	require.Greater(t, n, 15, "each call has failed once")
}

// Everything in the last state is new to a publisher that has nothing, and the
// other way round.
func TestDiffFromAndToNothing(t *testing.T) {
	nothing := published(t, nil, func(draft) {})
	all := published(t, nil, base)
	topics := refs(t, all)
	added := diff(t, nothing, all)
	require.Equal(t, [3]int{len(added.Entries), 0, 0}, counts(added))
	require.Subset(t, added.Entries, slices.Collect(func(yield func(fragment.Entry) bool) {
		for _, ref := range topics {
			if !yield(fragment.Entry{TopicSI: ref, Topic: ref, Title: topicOf(t, all, ref).Title()}) {
				return
			}
		}
	}))
	deleted := diff(t, all, nothing)
	require.Equal(t, [3]int{0, 0, len(added.Entries)}, counts(deleted))
	require.Equal(t, added.PutAssociations, deleted.DeleteAssociations)
}
