package words

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
)

var someSource = keys.Source{Number: 3, Generation: 4}

// keeping returns a database with some topics.
func keeping(t testing.TB, topics ...*fragment.Topic) *txn.DB {
	db := indexed(memory.New())
	require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
		for _, topic := range topics {
			require.NoError(t, records.In(tx, someSource).PutTopic(topic))
		}
		return nil
	}))
	return db
}

func viewing(t testing.TB, db *txn.DB, f func(s records.State)) {
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
		f(records.In(tx, someSource))
		return nil
	}))
}

// A word that the index lacks is replaced by similar words of the index, and found.
func TestNear(t *testing.T) {
	var topics []*fragment.Topic
	for i, name := range []string{"Catalysis", "Photocatalysis", "Oslo", "Osló fjord", "Malmö", "Iron", "Irony", "Heterogeneous catalyst", "Temperature", "a b", "東京"} {
		topics = append(topics, concept(fmt.Sprintf("http://x/%d", i), "prefLabel="+name+"@en"))
	}
	viewing(t, keeping(t, topics...), func(s records.State) {
		for query, want := range map[string][]string{
			"catalisis": {"Catalysis"}, "Olso": {"Oslo"}, "sslo": {"Oslo"}, "slo": {"Oslo"}, "ooslo": {"Oslo"}, "malmoo": {"Malmö"},
			"heterogenous catalyst": {"Heterogeneous catalyst"}, "hetreogeneous catalyzt": nil, "temprrature": {"Temperature"}, "tempruture": {"Temperature"},
			"xemprrature": nil, "nothing": nil, "ab": nil, "http://x/y": nil, "irn": {"Iron"}, "iron": {"Irony"}, "": nil, "東東": nil,
		} {
			got, err := Near(s, Parse(query), 3)
			require.NoError(t, err)
			assert.Equal(t, want, got, query)
		}
	})
}

// Similar words are found whatever the others are: all words within the distance, and no others.
func TestNearWordsAreThoseWithinTheDistance(t *testing.T) {
	testenv.Check(t, 30, 1000, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("abcé")), 3, 9, -1)
		words := rapid.SliceOfNDistinct(letters, 1, 60, rapid.ID).Draw(t, "words")
		wanted := []rune(Fold(letters.Draw(t, "wanted")))
		db := indexed(memory.New())
		require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
			for i, w := range words {
				require.NoError(t, records.In(tx, someSource).PutTopic(concept(fmt.Sprintf("http://x/%d", i), "prefLabel="+w)))
			}
			return nil
		}))
		for most := 1; most <= 2; most++ {
			want, got := map[string]int{}, map[string]int{}
			for _, w := range words {
				w = Fold(w)
				if d, _ := compareWords([]rune(w), wanted, 100); d <= most && (most == 1 || []rune(w)[0] == wanted[0]) {
					want[w] = d
				}
			}
			require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
				return eachNear(tx, someSource, Whole, wanted, most, got)
			}))
			require.Equal(t, want, got, "%q", string(wanted))
		}
	})
}

func TestMarks(t *testing.T) {
	for _, each := range []struct{ query, text, want string }{
		{"cat", "Catalysis of a cat, bobcat", "[Cat]alysis of a [cat], bobcat"},
		{"malmo", "Malmö (Malmö)", "[Malmö] ([Malmö])"},
		{"strass", "Straße", "[Straß]e"}, {"ka", "東京 kä", "東京 [kä]"},
		{"京", "東京都", "東[京]都"}, {"東京", "大東京", "大[東京]"}, {"x", "", ""}, {"é", "e\u0301tat", "[e\u0301]tat"},
		{"new york", "York, New", "[York], [New]"}, {"nothing", "else", "else"},
	} {
		got := ""
		for _, p := range Parse(each.query).Marks(each.text) {
			if p.Marked {
				got += "[" + p.Text + "]"
			} else {
				got += p.Text
			}
		}
		assert.Equal(t, each.want, got, each.query)
	}
}

// Results are counted by type and by language, each as if the other filter alone were set.
func TestCount(t *testing.T) {
	topics := []*fragment.Topic{
		concept("http://x/1", "prefLabel=Iron@en", "prefLabel=Iron@de"),
		concept("http://x/2", "prefLabel=Iron ore@en"),
		concept("http://x/3", "prefLabel=Eisen@de", "definition=iron@en"),
		concept("http://x/4", "prefLabel=Other@de", "notation=iron"),
		concept("http://x/5", "prefLabel=Steel@en"),
	}
	db := keeping(t, topics...)
	require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
		for i, topic := range topics {
			class := []fragment.Ref{"http://x/metal", "http://x/ore"}[i%2]
			require.NoError(t, records.In(tx, someSource).PutAssociation(&fragment.Association{Type: tmdm.PSITypeInstance, Roles: []fragment.Role{
				{Type: tmdm.PSIInstance, Player: topic.TopicSI()}, {Type: tmdm.PSIType, Player: class},
			}}))
		}
		return nil
	}))
	en, de := "en", "de"
	viewing(t, db, func(s records.State) {
		for _, each := range []struct {
			language  *string
			typ       fragment.Ref
			topics    int
			types     map[fragment.Ref]int
			languages map[string]int
		}{
			{nil, "", 4, map[fragment.Ref]int{"http://x/metal": 2, "http://x/ore": 2}, map[string]int{"en": 3, "de": 1, "": 1}},
			{&en, "", 3, map[fragment.Ref]int{"http://x/metal": 2, "http://x/ore": 1}, map[string]int{"en": 3, "de": 1, "": 1}},
			{&de, "http://x/metal", 1, map[fragment.Ref]int{"http://x/metal": 1}, map[string]int{"en": 2, "de": 1}},
		} {
			q := Parse("iron")
			q.Language, q.Type = each.language, each.typ
			found, err := Find(s, q.Whole(), "", MostCounted, time.Hour)
			require.NoError(t, err)
			got, err := Count(s, q, found)
			require.NoError(t, err)
			assert.Equal(t, &Counts{each.topics, each.types, each.languages, false}, got)
			found, err = Find(s, q, "", 10, time.Hour)
			require.NoError(t, err)
			assert.Len(t, found.Hits, each.topics, "as many are found")
		}
		found, err := Find(s, Parse("iron"), "", 2, time.Hour)
		require.NoError(t, err)
		got, err := Count(s, Parse("iron"), found)
		require.NoError(t, err)
		assert.True(t, got.AtLeast)
		assert.Equal(t, 2, got.Topics)
	})
}

// Notations come first, whole ones before longer ones, then labels, then definitions; each topic once, on whatever pages.
func TestStagesOfASearch(t *testing.T) {
	topics := []*fragment.Topic{
		concept("http://x/1", "prefLabel=a 1"), concept("http://x/2", "prefLabel=x", "notation=A.1.2"), concept("http://x/3", "prefLabel=y", "notation=A.1"),
		concept("http://x/4", "prefLabel=z", "definition=see section A.1 of it"), concept("http://x/5", "prefLabel=a.1", "notation=A.10", "definition=a.1"),
	}
	want := []string{"http://x/3", "http://x/2", "http://x/5", "http://x/1"}
	viewing(t, keeping(t, topics...), func(s records.State) {
		for limit := 1; limit <= 6; limit++ {
			var got []string
			for position, more := "", true; more; more = position != "" {
				found, err := Find(s, Parse("a.1"), position, limit, time.Hour)
				require.NoError(t, err)
				require.NotEmpty(t, found.Hits, "no page is empty")
				for _, h := range found.Hits {
					got = append(got, string(h.Topic.TopicSI()))
				}
				position = found.Next
			}
			assert.Equal(t, want, got, "short words find no definition; pages of %d", limit)
		}
		found, err := Find(s, Parse("section of it"), "", 10, time.Hour)
		require.NoError(t, err)
		require.Len(t, found.Hits, 1)
		assert.Equal(t, Definition, found.Hits[0].Match.Text.Kind)
		assert.True(t, slices.Contains(found.Hits[0].Topic.SubjectIdentifiers, "http://x/4"))
	})
}
