package words

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	terms "github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// listOf returns the list of a language, each heading before its topics, by their names.
func listOf(t require.TestingT, s records.State, tag string) (all []string) {
	letters, err := Letters(s, tag)
	require.NoError(t, err)
	for _, letter := range letters {
		all = append(all, "= "+letter)
		for ref, err := range UnderLetter(s, tag, letter) {
			require.NoError(t, err)
			topic, err := s.Topic(ref)
			require.NoError(t, err)
			name, ok := NameIn(topic, tag)
			require.True(t, ok)
			all = append(all, name)
		}
	}
	return all
}

// Each language sorts its letters as it does, and has those as headings that are letters of their own there.
func TestTopicsAreListedAsTheirLanguageSorts(t *testing.T) {
	names := []string{"10 kronor", "2 kronor", "Zebra", "ålder", "Äpple", "apa", "Éclair", "eld", " blad", "blå", "Öl", "(x)", "-streck", "Ёлка", "ель", "жук", "東京", "Æbler", "straße", "Strasse", "N'golo", "ñandú", "nota", "nube"}
	for tag, want := range map[string]string{
		"de": `= #|-streck|(x)|= 0–9|10 kronor|2 kronor|= A|Æbler|ålder|apa|Äpple|= B|blå| blad|= E|Éclair|eld|= N|N'golo|ñandú|nota|nube|= O|Öl|= S|straße|Strasse|= Z|Zebra|= Е|Ёлка|ель|= Ж|жук|= 東|東京`,
		"sv": `= #|-streck|(x)|= 0–9|10 kronor|2 kronor|= A|apa|= B| blad|blå|= E|Éclair|eld|= N|N'golo|ñandú|nota|nube|= S|straße|Strasse|= Z|Zebra|= Å|ålder|= Ä|Æbler|Äpple|= Ö|Öl|= Е|Ёлка|ель|= Ж|жук|= 東|東京`,
		"da": `= #|-streck|(x)|= 0–9|10 kronor|2 kronor|= A|apa|= B| blad|blå|= E|Éclair|eld|= N|N'golo|ñandú|nota|nube|= S|straße|Strasse|= Z|Zebra|= Æ|Æbler|Äpple|= Ø|Öl|= Å|ålder|= Е|Ёлка|ель|= Ж|жук|= 東|東京`,
		"es": `= #|-streck|(x)|= 0–9|10 kronor|2 kronor|= A|Æbler|ålder|apa|Äpple|= B|blå| blad|= E|Éclair|eld|= N|N'golo|nota|nube|= Ñ|ñandú|= O|Öl|= S|straße|Strasse|= Z|Zebra|= Е|Ёлка|ель|= Ж|жук|= 東|東京`,
	} {
		db := indexed(memory.New())
		id := keys.Source{Number: 3, Generation: 4}
		require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
			for i, name := range names {
				require.NoError(t, records.In(tx, id).PutTopic(&fragment.Topic{
					Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{tmdm.Locator(fmt.Sprintf("http://x/%02d", i))}},
					Names:    []fragment.Name{{Value: name, Type: tmdm.PSIDefaultNameType, Scope: []fragment.Ref{terms.LanguageNamespace + fragment.Ref(tag)}}},
				}))
			}
			return nil
		}))
		require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
			require.Equal(t, strings.ReplaceAll(want, "|", "\n"), strings.Join(listOf(t, records.In(tx, id), tag), "\n"), tag)
			languages, err := Languages(records.In(tx, id))
			require.Equal(t, []string{tag}, languages)
			return err
		}))
	}
}

// Each topic is listed once in each language in which it has the best of its names, and in the order of the language,
// whatever its names begin with.
func TestEachTopicIsListedOnce(t *testing.T) {
	beginning := rapid.SampledFrom([]string{"a", "Å", "ä", "B", "z", "0", "9x", "5", "(", "-", " ", "'", "ß", "Æ", "Ё", "е", "東", "\u0301", "\u200d", "Ñ", "ﬁ", "½", "\U0001F600", "ا", "𝔄", "~", "/", ":"})
	testenv.Check(t, 100, 2_000, func(t *rapid.T) {
		db := indexed(memory.New())
		id := keys.Source{Number: 3, Generation: 4}
		var topics []*fragment.Topic
		require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
			for i := range rapid.IntRange(0, 60).Draw(t, "topics") {
				topic := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{tmdm.Locator(fmt.Sprintf("http://x/%03d", i))}}}
				for range rapid.IntRange(0, 3).Draw(t, "names") {
					n := fragment.Name{Value: strings.Join(rapid.SliceOfN(beginning, 1, 4).Draw(t, "name"), ""), Type: tmdm.PSIDefaultNameType}
					if tag := rapid.SampledFrom([]string{"", "sv", "sv-FI", "ru"}).Draw(t, "language"); tag != "" {
						n.Scope = []fragment.Ref{terms.LanguageNamespace + fragment.Ref(tag)}
					}
					topic.Names = append(topic.Names, n)
				}
				topic.Canonical()
				topics = append(topics, topic)
				require.NoError(t, records.In(tx, id).PutTopic(topic))
			}
			return nil
		}))
		require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
			var there []string
			for _, tag := range []string{"", "ru", "sv"} {
				type one struct{ key, ref, name string }
				var in []one
				for _, topic := range topics {
					if name, ok := NameIn(topic, tag); ok {
						in = append(in, one{alphabetOf(tag).key(name), string(topic.TopicSI()), name})
					}
				}
				slices.SortFunc(in, func(a, b one) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.ref, b.ref)) })
				want, got := []string{}, []string{}
				for _, o := range in {
					want = append(want, o.name)
				}
				for _, line := range listOf(t, records.In(tx, id), tag) {
					if !strings.HasPrefix(line, "= ") {
						got = append(got, line)
					}
				}
				require.Equal(t, want, got, tag)
				if len(in) > 0 {
					there = append(there, tag)
				}
			}
			languages, err := Languages(records.In(tx, id))
			require.Equal(t, there, languages)
			return err
		}))
	})
}
