package words

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/titles"
	terms "github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// indexed returns an empty database that keeps the index.
func indexed(engine kv.Engine) *txn.DB {
	db := txn.New(engine, func() error { return nil })
	db.Indexes = []txn.Index{Index()}
	if err := db.Update(context.Background(), records.PutIndexes); err != nil {
		panic(err)
	}
	return db
}

// someNames draws the names of a topic: of few words, so that many topics have them.
func someNames(t *rapid.T) (names []fragment.Name) {
	word := rapid.SampledFrom([]string{"Oslo", "OSLOFJORD", "York", "new", "Ne", "Straße", "東京都", "a", "b", "Ærlig"})
	for range rapid.IntRange(0, 3).Draw(t, "names") {
		n := fragment.Name{Value: strings.Join(rapid.SliceOfN(word, 0, 3).Draw(t, "words"), " "), Type: tmdm.PSIDefaultNameType}
		if rapid.IntRange(0, 4).Draw(t, "variant") == 0 {
			n.Variants = []fragment.Variant{{Value: word.Draw(t, "value"), Datatype: tmdm.XSDString, Scope: []fragment.Ref{"http://t"}}}
		}
		if tag := rapid.SampledFrom([]string{"", "", "en", "pt-BR"}).Draw(t, "language"); tag != "" {
			n.Scope = []fragment.Ref{terms.LanguageNamespace + fragment.Ref(tag)}
		}
		names = append(names, n)
	}
	return names
}

func someTopic(t *rapid.T, i int) *fragment.Topic {
	topic := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{fragment.Ref(fmt.Sprintf("http://x/%d", i))}}, Names: someNames(t)}
	if rapid.IntRange(0, 4).Draw(t, "identifiers") == 0 {
		topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, fragment.Ref(fmt.Sprintf("http://other/York#%d", i)),
			fragment.Ref(iri.ToLocator(fmt.Sprintf("http://x/1/%%7E%d", i))))
		topic.SubjectLocators = append(topic.SubjectLocators, fragment.Ref(fmt.Sprintf("http://x/%d/page", i)))
	}
	if rapid.IntRange(0, 4).Draw(t, "label") == 0 {
		topic.Occurrences = []fragment.Occurrence{{Value: rapid.SampledFrom([]string{"Oslo", "new York", "Ærlig"}).Draw(t, "text"), Datatype: tmdm.XSDString, Type: titles.LiteralForm,
			Scope: []fragment.Ref{terms.LanguageNamespace + "en"}}}
	}
	occurrence := func(typ, value string) {
		o := fragment.Occurrence{Value: value, Datatype: tmdm.XSDString, Type: skosNS + fragment.Ref(typ)}
		if tag := rapid.SampledFrom([]string{"", "en"}).Draw(t, "language of it"); tag != "" {
			o.Scope = []fragment.Ref{terms.LanguageNamespace + fragment.Ref(tag)}
		}
		topic.Occurrences = append(topic.Occurrences, o)
	}
	for range rapid.IntRange(0, 2).Draw(t, "notations") {
		occurrence("notation", rapid.SampledFrom([]string{"a.1", "a.1.2", "N", "n1", "a", "York"}).Draw(t, "notation"))
	}
	for range rapid.IntRange(0, 1).Draw(t, "notes") {
		occurrence(rapid.SampledFrom([]string{"definition", "note"}).Draw(t, "of"), rapid.SampledFrom([]string{"A b in York", "new in Oslo", "東京都"}).Draw(t, "note"))
	}
	topic.Canonical()
	return topic
}

// After any loads and changes, in any steps, the index has the entries of the existing topics. A search finds by it
// the same as by all topics together, best matches first.
func TestTheIndexFollowsTheRecords(t *testing.T) {
	scratch := filepath.Join(t.TempDir(), "x")
	testenv.Check(t, 40, 2_000, func(t *rapid.T) {
		db := indexed(memory.New())
		id := keys.Source{Number: 3, Generation: 4}
		topics := map[int]*fragment.Topic{}
		var loaded []fragment.Record
		for _, i := range rapid.Permutation(numbers(rapid.IntRange(0, 300).Draw(t, "loaded"))).Draw(t, "order") {
			topics[i] = someTopic(t, i)
			loaded = append(loaded, fragment.Record{Topic: topics[i]})
		}
		o := records.Loader{Engine: db.Engine, Scratch: scratch, Ready: func() error { return nil }, Indexes: db.Indexes}
		require.NoError(t, o.Load(t.Context(), id, func(yield func(fragment.Record, error) bool) {
			for _, r := range loaded {
				if !yield(r, nil) {
					return
				}
			}
		}, nil))
		same(t, db, id, topics)
		for range rapid.IntRange(0, 4).Draw(t, "commits") {
			require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
				s := records.In(tx, id)
				for range rapid.IntRange(1, 30).Draw(t, "changes") {
					i := rapid.IntRange(0, 320).Draw(t, "topic")
					if topics[i] != nil && rapid.IntRange(0, 2).Draw(t, "deletes") == 0 {
						require.NoError(t, s.DeleteTopic(topics[i]))
						delete(topics, i)
						continue
					}
					topics[i] = someTopic(t, i)
					require.NoError(t, s.PutTopic(topics[i]))
					if rapid.IntRange(0, 9).Draw(t, "looks") == 0 { // it is looked at meanwhile
						require.Equal(t, entriesOf(topics), storedEntries(t, tx, id))
					}
				}
				return nil
			}))
			same(t, db, id, topics)
		}
		damaged(t, db, id, topics)
	})
}

// damaged has a row of the index be lost, changed, or too many. It is found and mended.
func damaged(t *rapid.T, db *txn.DB, id keys.Source, topics map[int]*fragment.Topic) {
	var rows []kv.Row
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
		for r, err := range tx.Scan(id.Index(name), nil) {
			require.NoError(t, err)
			rows = append(rows, r)
		}
		return nil
	}))
	if len(rows) == 0 {
		return
	}
	r := rapid.SampledFrom(rows).Draw(t, "row")
	key, value := bytes.Clone(r.Key), bytes.Clone(r.Value)
	how := rapid.SampledFrom([]string{"lost", "changed", "too many"}).Draw(t, "how")
	switch at := rapid.IntRange(0, max(8*len(value)-1, 0)).Draw(t, "bit"); {
	case how == "lost":
		value = nil
	case how == "too many":
		key = append(key, "zz"...)
	case len(value) > 0:
		value[at/8] ^= 1 << (at % 8)
	default:
		value = []byte("x")
	}
	require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
		if value == nil {
			return tx.Delete(key)
		}
		return tx.Put(key, value)
	}))
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
		whole, err := records.Whole(tx, id, "", 0)
		require.False(t, whole, "%s: %q = %q", how, r.Key, r.Value)
		return err
	}))
	require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
		mended, err := records.MendDerived(tx, id, "", 0)
		require.True(t, mended)
		return err
	}))
	same(t, db, id, topics)
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// same checks that the index of a source is that of some topics.
func same(t *rapid.T, db *txn.DB, id keys.Source, topics map[int]*fragment.Topic) {
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
		ok, err := records.Whole(tx, id, "", 0)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, entriesOf(topics), storedEntries(t, tx, id))
		for _, text := range []string{"oslo", "new york", "n", "strasse", "京都", "york a", "http://x/1", "http://x/1/%7E", "http://x/1/%7E1", "a b oslo", "nothing", "a.1", "in york", "in"} {
			limit := rapid.IntRange(1, 60).Draw(t, "limit")
			q := Parse(text)
			finds(t, records.In(tx, id), topics, q, limit, time.Hour)
			finds(t, records.In(tx, id), topics, q, limit, 0)
			language := rapid.SampledFrom([]string{"", "en", "pt"}).Draw(t, "in")
			if q.Language = &language; q.Locators == nil {
				finds(t, records.In(tx, id), topics, q, limit, time.Hour)
			}
		}
		return nil
	}))
}

func finds(t *rapid.T, s records.State, topics map[int]*fragment.Topic, q Query, limit int, within time.Duration) {
	var got, want []string
	var last *Match
	for position, pages := "", 0; ; pages++ {
		require.Less(t, pages, 1000)
		found, err := Find(s, q, position, limit, within)
		require.NoError(t, err)
		if n := rapid.IntRange(1, limit).Draw(t, "first"); len(found.Hits) > 0 { // the rest is found behind some of it
			found = found.First(n)
			found.Ended = found.Ended && found.Next != ""
		}
		require.LessOrEqual(t, len(found.Hits), limit+1)
		for _, h := range found.Hits {
			got = append(got, string(h.Topic.TopicSI()))
			if last != nil && within > 0 && q.Locators == nil && (len(q.Words) > 1 || h.Match.tier == ofNotation) && h.Match.tier < ofText {
				require.LessOrEqual(t, last.Compare(h.Match), 0, "%q", q.Text)
			}
			last = &h.Match
		}
		require.Equal(t, within == 0 && found.Ended, found.Ended)
		if position = found.Next; position == "" {
			require.False(t, found.Ended)
			break
		}
	}
	for _, topic := range topics {
		_, ok := q.Match(topic)
		if q.Locators != nil {
			ok = slices.ContainsFunc(slices.Concat(topic.SubjectIdentifiers, topic.SubjectLocators), func(l tmdm.Locator) bool {
				return strings.HasPrefix(iri.Shown(string(l)), q.Text)
			})
		}
		if ok {
			want = append(want, string(topic.TopicSI()))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got, "%q", q.Text)
}

func entriesOf(topics map[int]*fragment.Topic) []string {
	all := map[string]bool{}
	for _, topic := range topics {
		for _, e := range allEntries(topic) {
			all[string(appendEntry(nil, e, topic.TopicSI()))] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(all))...)
}

func storedEntries(t *rapid.T, tx *txn.Tx, id keys.Source) []string {
	all := []string{}
	for _, rank := range "0123456CLT" {
		for entry, err := range entriesWith(tx, id, []byte{byte(rank)}, nil) {
			require.NoError(t, err)
			all = append(all, string(entry))
		}
	}
	return all
}

// A single word is found in this order, on whatever pages.
func TestWhatIsFoundIsRanked(t *testing.T) {
	db := indexed(memory.New())
	id := keys.Source{Number: 3, Generation: 4}
	order := []string{"OSLO", "Oslo kommune", "Oslo, fylke og by", "Gamle Oslo", "Osloborg", "Oslofjorden nord", "Nye Oslofjorden"}
	require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
		for i, name := range order {
			require.NoError(t, records.In(tx, id).PutTopic(&fragment.Topic{
				Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{tmdm.Locator(fmt.Sprintf("http://x/%d", i))}},
				Names:    []fragment.Name{{Value: name, Type: tmdm.PSIDefaultNameType}, {Value: "also Oslofjordby", Type: tmdm.PSIDefaultNameType}},
			}))
		}
		return nil
	}))
	for limit := 1; limit <= len(order)+1; limit++ {
		var got []string
		require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
			for position := ""; ; {
				found, err := Find(records.In(tx, id), Parse("oslo"), position, limit, Within)
				require.NoError(t, err)
				for _, h := range found.Hits {
					got = append(got, h.Match.Text.Value)
				}
				if position = found.Next; position == "" {
					return nil
				}
			}
		}))
		require.Equal(t, order[:len(got)], got)
		require.Len(t, got, len(order))
	}
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
		for _, position := range []string{"x", "????", "AAAA", "eP______"} {
			_, err := Find(records.In(tx, id), Parse("oslo"), position, 10, Within)
			require.ErrorIs(t, err, ErrPosition, position)
		}
		return nil
	}))
}

// counted counts how often the record of a topic is read.
type counted struct {
	kv.Engine
	reads int
}

func (c *counted) Snapshot(ctx context.Context) (kv.Reader, error) {
	r, err := c.Engine.Snapshot(ctx)
	return countedReader{r, c}, err
}

type countedReader struct {
	kv.Reader
	engine *counted
}

func (r countedReader) Get(key []byte) ([]byte, error) {
	if keys.Table(key) == keys.TableTopic {
		r.engine.reads++
	}
	return r.Reader.Get(key)
}

// The record of a topic is read once for a page of results, however many of its words or identifiers begin as the query
// does; twice if an identifier matches, which is looked up as it stands and in normal form. One more read finds if
// there are labels that are resources.
func TestATopicIsReadOnceForAPageOfResults(t *testing.T) {
	engine := &counted{Engine: memory.New()}
	db := indexed(engine)
	id := keys.Source{Number: 3, Generation: 4}
	const topics, each = 5, 200
	require.NoError(t, db.Update(t.Context(), func(tx *txn.Tx) error {
		for i := range topics {
			topic := &fragment.Topic{}
			for j := range each {
				topic.Names = append(topic.Names, fragment.Name{Value: fmt.Sprintf("n%d many", 1000+j), Type: tmdm.PSIDefaultNameType})
				topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, fragment.Ref(fmt.Sprintf("http://x/%d/%d", i, j)))
				topic.SubjectLocators = append(topic.SubjectLocators, fragment.Ref(fmt.Sprintf("http://x/%d/%d", i, j)))
			}
			topic.Canonical()
			require.NoError(t, records.In(tx, id).PutTopic(topic))
		}
		return nil
	}))
	for query, most := range map[string]int{"n1": topics + 1, "many": topics + 1, "n many": topics + 1, "nothing n": topics, "http://x/": 2*topics + 2, "http://x/1": 2*topics + 2} {
		require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
			engine.reads = 0
			found, err := Find(records.In(tx, id), Parse(query), "", 100, time.Hour)
			require.NoError(t, err)
			require.Empty(t, found.Next, query)
			require.LessOrEqual(t, engine.reads, most, query)
			return nil
		}))
	}
}

// A search by words in an index that was left behind finds nothing, and returns the reason. Identifiers need no
// index.
func TestAnIndexThatWasLeftBehindFindsNothing(t *testing.T) {
	db := indexed(memory.New())
	id := keys.Source{Number: 3, Generation: 4}
	put := func(i int) error {
		return db.Update(t.Context(), func(tx *txn.Tx) error {
			return records.In(tx, id).PutTopic(&fragment.Topic{
				Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{tmdm.Locator(fmt.Sprintf("http://x/%d", i))}},
				Names:    []fragment.Name{{Value: "Oslo", Type: tmdm.PSIDefaultNameType}},
			})
		})
	}
	require.NoError(t, put(1))
	all := db.Indexes
	db.Indexes = nil // as in another program
	require.NoError(t, put(2))
	db.Indexes = all
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
		_, err := Find(records.In(tx, id), Parse("oslo"), "", 10, Within)
		require.ErrorIs(t, err, ErrLeftBehind)
		found, err := Find(records.In(tx, id), Parse("http://x/2"), "", 10, Within)
		require.Len(t, found.Hits, 1)
		return err
	}))
}
