package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

const languageNamespace = "https://github.com/tmshare/tmshare/ns/1/language/" // docs/rdf.md

// labelled returns a topic with preferred labels, and an alternative one that is the first of all names.
func labelled(i int, english, german string) *fragment.Topic {
	t := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(i)}}, Names: []fragment.Name{
		{Value: "A", Type: titles.AltLabel, Scope: []fragment.Ref{languageNamespace + "en"}},
	}}
	for language, value := range map[fragment.Ref]string{"en": english, "de": german} {
		if value != "" {
			t.Names = append(t.Names, fragment.Name{Value: value, Type: titles.PrefLabel, Scope: []fragment.Ref{languageNamespace + language}})
		}
	}
	t.Canonical()
	return t
}

func titlesOf(t *testing.T, db *DB, name string) (titles []string) {
	t.Helper()
	require.NoError(t, db.View(t.Context(), name, func(v *View) error {
		one := []string{}
		for e, err := range v.Entries(1) {
			require.NoError(t, err)
			titles = append(titles, e.Title)
		}
		for seq := v.Horizon + 1; seq <= v.Head; seq++ {
			e, err := v.Entry(seq)
			require.NoError(t, err)
			require.NoError(t, v.SetTitle(e))
			one = append(one, e.Title)
		}
		require.Equal(t, one, titles)
		return nil
	}))
	return titles
}

// The titles of entries are in the language of most preferred labels of the first version, and stay in it.
func TestTitlesAreInTheLanguageOfTheMap(t *testing.T) {
	first := &merge.Memory{}
	for _, topic := range []*fragment.Topic{labelled(0, "zero", "null"), labelled(1, "one", "eins"), labelled(2, "", "zwei"), labelled(6, "", "sechs"), labelled(3, "three", "")} {
		require.NoError(t, first.PutTopic(topic))
	}
	change := func() *fragment.Change {
		return &fragment.Change{
			PutTopics: []*fragment.Topic{labelled(4, "four", "vier")}, DeleteTopics: []fragment.Ref{ref(0)}, Added: 1, Deleted: 1, Updated: 1,
			Entries: []fragment.Entry{
				{TopicSI: ref(0), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(0)}}},
				{TopicSI: ref(1), Topic: ref(1)}, // by an association
				{TopicSI: ref(4), Topic: ref(4)},
			},
		}
	}
	want := []string{"null", "eins", "zwei", "three", "sechs", "null", "eins", "vier"}
	db := openAt(t, tick())
	for name, begin := range map[string]func(name string) *Collection{
		"created": func(name string) *Collection { return collectionOf(t, db, name, first) },
		"filled": func(name string) *Collection {
			collectionOf(t, db, name, &merge.Memory{})
			c, err := db.FillCollection(t.Context(), name, first)
			require.NoError(t, err)
			return c
		},
		"published": func(name string) *Collection {
			collectionOf(t, db, name, &merge.Memory{})
			c := &fragment.Change{}
			for topic, err := range first.Topics() {
				require.NoError(t, err)
				c.PutTopics = append(c.PutTopics, topic)
				c.Entries = append(c.Entries, fragment.Entry{TopicSI: topic.TopicSI(), Topic: topic.TopicSI()})
			}
			return publish(t, db, name, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "de", begin(name).Language)
			publish(t, db, name, change())
			require.Equal(t, want, titlesOf(t, db, name))

			set(t, db, name, func(s *Settings) { s.Language = "en" })
			publish(t, db, name, &fragment.Change{
				PutTopics: []*fragment.Topic{labelled(5, "five", "fünf")}, DeleteTopics: []fragment.Ref{ref(1)}, Added: 1, Deleted: 1,
				Entries: []fragment.Entry{
					{TopicSI: ref(1), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(1)}}}, {TopicSI: ref(5), Topic: ref(5)},
				},
			})
			assert.Equal(t, append(want, "one", "five"), titlesOf(t, db, name), "those of before stay")
		})
	}

	c, err := db.CreateCollection(t.Context(), Collection{Name: "chosen", SP: sp, Settings: Settings{Language: "en"}}, first, nil)
	require.NoError(t, err)
	assert.Equal(t, "en", c.Language, "its owner has decided")
	assert.Equal(t, []string{"zero", "one", "zwei", "three", "sechs"}, titlesOf(t, db, "chosen"))
	_, err = db.ChangeSettings(t.Context(), "chosen", func(s *Settings) error { s.Language = "English!"; return nil })
	assert.ErrorContains(t, err, `language (--language): "English!" is no language tag: give one of BCP 47, such as en or pt-BR`)
}

// A map without a language gets that of a commit that writes at least half as many topics as it has. Later commits do
// not change this language, or one chosen by the owner.
func TestALanguageIsFoundInLaterVersions(t *testing.T) {
	db := openAt(t, tick())
	write := func(name string, topics ...*fragment.Topic) string {
		c := &fragment.Change{PutTopics: topics}
		for _, topic := range topics {
			c.Entries = append(c.Entries, fragment.Entry{TopicSI: topic.TopicSI(), Topic: topic.TopicSI(), Title: topic.Title()})
		}
		return publish(t, db, name, c).Language
	}
	bare := &merge.Memory{}
	for i := range 4 {
		require.NoError(t, bare.PutTopic(labelled(i, "", "")))
	}
	collectionOf(t, db, "bare", bare)
	assert.Empty(t, write("bare", labelled(1, "one", "")), "one topic of four")
	assert.Equal(t, "de", write("bare", labelled(0, "zero", "null"), labelled(2, "", "zwei")), "two of four")
	assert.Equal(t, []string{"A", "A", "A", "A", "one", "null", "zwei"}, titlesOf(t, db, "bare"), "from this commit on")
	assert.Equal(t, "de", write("bare", labelled(0, "zero", ""), labelled(1, "one", ""), labelled(2, "two", "")), "it stays")

	collectionOf(t, db, "chosen", bare)
	set(t, db, "chosen", func(s *Settings) { s.Language = "fr" })
	assert.Equal(t, "fr", write("chosen", labelled(0, "zero", "null"), labelled(2, "", "zwei")))
}

// The title of a topic without names is its label that is a resource, also without any language.
func TestTitlesAreLabelsThatAreResources(t *testing.T) {
	const subject, object = "http://www.w3.org/1999/02/22-rdf-syntax-ns#subject", "http://www.w3.org/1999/02/22-rdf-syntax-ns#object"
	topic := func(si fragment.Ref, text string) *fragment.Topic {
		made := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{si}}}
		if text != "" {
			made.Occurrences = []fragment.Occurrence{{Value: text, Datatype: tmdm.XSDString, Type: titles.LiteralForm}}
		}
		made.Canonical()
		return made
	}
	leads := func(from, typ, to fragment.Ref) *fragment.Association {
		a := &fragment.Association{Type: typ, Roles: []fragment.Role{{Type: subject, Player: from}, {Type: object, Player: to}}}
		a.Canonical()
		return a
	}
	first := &merge.Memory{}
	for _, put := range []*fragment.Topic{topic(ref(0), ""), topic(ref(1), "one"), topic(titles.XLPrefLabel, ""), topic(ref(2), ""), topic(ref(3), "broader")} {
		require.NoError(t, first.PutTopic(put))
	}
	other := topic(ref(4), "")
	other.Names = []fragment.Name{{Value: "of the default type", Type: tmdm.PSIDefaultNameType}}
	require.NoError(t, first.PutTopic(other))
	for _, put := range []*fragment.Association{leads(ref(0), titles.XLPrefLabel, ref(1)), leads(ref(4), titles.XLPrefLabel, ref(1)), leads(ref(2), "http://x/broader", ref(3)), leads(ref(9), titles.XLPrefLabel, ref(2))} {
		require.NoError(t, first.PutAssociation(put))
	}
	db := openAt(t, tick())
	collectionOf(t, db, "m", first)
	want := []string{"one", "one", string(ref(2)), "broader", "one", titles.XLPrefLabel}
	assert.Equal(t, want, titlesOf(t, db, "m"), "by the first version")
	publish(t, db, "m", &fragment.Change{
		PutTopics: []*fragment.Topic{topic(ref(1), "uno"), topic(ref(5), ""), topic(titles.XLAltLabel, "")}, DeleteTopics: []fragment.Ref{ref(4)},
		PutAssociations: []*fragment.Association{leads(ref(5), titles.XLAltLabel, ref(1))}, DeleteAssociations: []*fragment.Association{leads(ref(4), titles.XLPrefLabel, ref(1))},
		Added: 2, Updated: 1, Deleted: 1,
		Entries: []fragment.Entry{
			{TopicSI: ref(1), Topic: ref(1), Title: "uno"}, {TopicSI: ref(5), Topic: ref(5), Title: string(ref(5))},
			{TopicSI: ref(4), Deleted: true, Title: "of the default type", Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(4)}}},
		},
	})
	assert.Equal(t, append(want, "uno", "uno", "one"), titlesOf(t, db, "m"), "entries of before keep theirs")
	require.NoError(t, db.View(t.Context(), "m", func(v *View) error {
		title, err := v.State().Title(ref(0))
		assert.Equal(t, "uno", title, "the concept has no entry, and its title is the new one")
		return err
	}))
}

// The title of a nameless topic in a feed is no name in a replica, for any length; a name is used unchanged.
func TestReplicasTakeNoLabelForAName(t *testing.T) {
	db := openAt(t, tick())
	src := &merge.Memory{}
	sis := []fragment.Ref{ref(0), titles.XLPrefLabel, "http://example.org/.well-known/genid/b1", fragment.Ref("http://example.org/" + strings.Repeat("long", 100))}
	for i, si := range sis {
		topic := labelled(i, []string{"zero", "", "", ""}[i], "")
		topic.SubjectIdentifiers, topic.Names = []fragment.Ref{si}, topic.Names[:len(topic.Names)-min(i, 1)]
		require.NoError(t, src.PutTopic(topic))
	}
	origin := collectionOf(t, db, "origin", src)
	var log []Logged
	var want []Entry
	view(t, db, "origin", func(v *View) {
		want = entries(t, v)
		for _, e := range want {
			log = append(log, Logged{ID: origin.ID(&e).URN(), TopicSI: e.TopicSI, Title: e.Label(), Updated: e.Updated, Digest: e.Digest})
		}
	})
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "s", SP: sp, Replica: true}))
	replicate(t, db, "s", origin, log)
	named := 0
	view(t, db, "s", func(v *View) {
		for i, e := range entries(t, v) {
			assert.Equal(t, want[i].Named(), e.Named(), e.TopicSI)
			assert.Equal(t, want[i].Title, e.Title, "programs get the identifier")
			assert.Equal(t, want[i].Label(), e.Label())
			if e.Named() {
				named++
			}
		}
	})
	assert.Equal(t, 1, named)
}

// BenchmarkTitles compares the cost of reading a first entry in a map of topics with names and in one whose topics have
// labels that are resources. These have entries, too, which cost less.
func BenchmarkTitles(b *testing.B) {
	db, n := openAt(b, time.Now), MapSize()
	names, labels := network(b, n), network(b, n)
	for _, property := range []fragment.Ref{titles.XLPrefLabel, titles.LiteralForm} {
		require.NoError(b, labels.PutTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{property}}}))
	}
	for i := range n {
		concept := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(i)}}}
		label := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(n + i)}}, Occurrences: []fragment.Occurrence{
			{Value: fmt.Sprint("Topic ", i), Datatype: tmdm.XSDString, Type: titles.LiteralForm},
		}}
		require.NoError(b, labels.PutTopic(concept))
		require.NoError(b, labels.PutTopic(label))
		leads := &fragment.Association{Type: titles.XLPrefLabel, Roles: []fragment.Role{
			{Type: "http://www.w3.org/1999/02/22-rdf-syntax-ns#subject", Player: ref(i)}, {Type: "http://www.w3.org/1999/02/22-rdf-syntax-ns#object", Player: ref(n + i)},
		}}
		leads.Canonical()
		require.NoError(b, labels.PutAssociation(leads))
	}
	collectionOf(b, db, "names", names)
	collectionOf(b, db, "labels", labels)
	read := func(name string) time.Duration {
		least := time.Hour
		for range 5 {
			view(b, db, name, func(v *View) {
				begin, named := testenv.CPUTime(), 0
				for e, err := range v.Entries(1) {
					if err != nil {
						b.Fatal(err)
					}
					if e.Named() {
						named++
					}
				}
				least = min(least, (testenv.CPUTime()-begin)/time.Duration(named))
				require.Equal(b, n*map[string]int{"names": 1, "labels": 2}[name], named)
			})
		}
		return least
	}
	for b.Loop() {
		byName, byLabel := read("names"), read("labels")
		b.ReportMetric(float64(byLabel)/float64(byName), "ratio")
		b.ReportMetric(byName.Seconds()*1e6, "µs/name")
	}
}
