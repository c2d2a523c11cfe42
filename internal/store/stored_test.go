package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// fewInstances is the number of rows of a class that are skipped one by one; the other is the first byte of an
// association's row with the player that has the record: see package records.
const (
	fewInstances = 100
	elsewhere    = 1
)

// hubs is a map with pairs, and with rare results of random edits: a class with more instances than are skipped one by
// one, which plays another role as well, associations of many players, a topic that is its own class, and topics of
// several identifiers or none.
func hubs(t testing.TB) *tmdm.TopicMap {
	tm := tmdm.New()
	topic := func(si string) *tmdm.Topic { return tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si)) }
	class := topic("http://example.org/class")
	crowd := tm.CreateAssociation(topic("http://z"))
	crowd.AddRole(topic("http://z"), class)
	for i := range 3 * fewInstances {
		one := topic(fmt.Sprintf("http://example.org/one/%d", i))
		one.AddType(class)
		if i%5 == 0 {
			pair := tm.CreateAssociation(topic(fmt.Sprintf("http://type/%d", i%3)))
			pair.AddRole(topic("http://a"), one)
			pair.AddRole(topic("http://z"), topic(fmt.Sprintf("http://example.org/one/%d", i*7%fewInstances)))
		}
		if i%fewInstances == 0 {
			one.AddType(topic(fmt.Sprintf("http://example.org/two/%d", i)))
			crowd.AddRole(topic("http://z"), one)
			require.NoError(t, one.AddSubjectIdentifier(tmdm.Locator(fmt.Sprintf("http://a/%d", i))))
		}
	}
	class.AddType(class)
	for i := range 5 {
		idOnly := tm.CreateTopic()
		require.NoError(t, tmdm.AddItemIdentifier(idOnly, tmdm.Locator(fmt.Sprintf("%s#i%d", sp, i))))
		idOnly.AddName(fmt.Sprint(i), nil)
		crowd.AddRole(topic("http://z"), idOnly)
	}
	require.NoError(t, tm.Normalize(t.Context()))
	return tm
}

// oneByOne hides other interfaces of a source: it is read topic by topic.
type oneByOne struct{ fragment.Source }

// A map is compared with the stored one in one pass. This has the same names and the same change as reading the store
// topic by topic, and as reading memory: in a view, in an update with earlier writes, and with missing records to which
// others refer.
func TestWhatIsReadAtOnceComesToTheSameChange(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	const versions = 8
	histories := testenv.Rounds(2, 8)
	changed, kept := 0, 0
	for seed := range uint64(histories) {
		rng := rand.New(rand.NewPCG(seed, 5))
		editor := testedit.New(hubs(t), sp, seed)
		document := func() []byte {
			var doc bytes.Buffer
			_, err := xtm.Write(&doc, editor.Map, xtm.WriteOptions{Version: xtm.V21, Base: sp})
			require.NoError(t, err)
			return doc.Bytes()
		}
		compare := func(prior fragment.Source, doc []byte) (*fragment.Change, string) {
			tm, err := xtm.Read(t.Context(), bytes.NewReader(doc), xtm.Options{Base: sp})
			require.NoError(t, err)
			next, err := fragment.NameTopics(t.Context(), tm, sp, prior)
			require.NoError(t, err)
			var named merge.Memory
			require.NoError(t, named.Load(next))
			return mustDiff(t, prior, next), storetest.Dump(t, &named)
		}
		var want merge.Memory
		same := func(stored fragment.Source, doc []byte) *fragment.Change {
			t.Helper()
			require.Implements(t, (*fragment.Stored)(nil), stored)
			require.Implements(t, (*fragment.Identifying)(nil), stored)
			change, names := compare(&want, doc)
			for what, prior := range map[string]fragment.Source{"at once": stored, "one by one": oneByOne{stored}} {
				other, otherNames := compare(prior, doc)
				require.Equal(t, names, otherNames, "%s, seed %d: names", what, seed)
				require.Equal(t, change, other, "%s, seed %d", what, seed)
			}
			return change
		}

		db := openUnsynced(t, t.TempDir())
		collection(t, db, "m", 0)
		require.NoError(t, want.Load(mapOf(t, 0)))
		for version := range versions {
			if version == 1 { // the assigned identifier is then no TopicSI, but is kept
				known, assigned := editor.Map.TopicBySubjectIdentifier("http://example.org/one/1"), editor.Map.ConstructByItemIdentifier(sp+"#i1")
				if assigned, ok := assigned.(*tmdm.Topic); ok && known != nil {
					require.NoError(t, known.Merge(assigned))
					editor.Map.Normalize(t.Context())
					kept++
				}
			}
			doc := document()
			_, err := db.Publish(t.Context(), "m", func(_ Collection, prior merge.State) (*fragment.Change, error) {
				change := same(prior, doc)
				storetest.Write(t, &want, change)
				changed += len(change.Entries)
				return change, nil
			})
			require.NoError(t, err)
			view(t, db, "m", func(v *View) { require.True(t, same(v.Source(), doc).Empty(), "the same version again") })
			for range 1 + rng.IntN(6) {
				editor.Edit()
			}
			comparedWithout(t, db, &want, rng, func(state merge.State) { same(state, document()) })
		}
	}
	require.Greater(t, kept, histories/2)
	require.Greater(t, changed, 330*histories, "some 300 topics, and what the edits change")
}

// comparedWithout takes away the records of some topics, of which some play roles,
// and an association, in an update that then fails.
func comparedWithout(t testing.TB, db *DB, want *merge.Memory, rng *rand.Rand, compare func(merge.State)) {
	undone := errors.New("undone")
	var taken []*fragment.Topic
	var gone *fragment.Association
	err := db.rows.Update(t.Context(), func(tx *txn.Tx) error {
		c, err := collections.Get(tx, "m")
		require.NoError(t, err)
		state := records.In(tx, c.SourceKey())
		players, others := byPart(t, want)
		for _, from := range [][]*fragment.Topic{players, players, others, others} {
			topic := from[rng.IntN(len(from))]
			if there, err := state.Topic(topic.TopicSI()); there == nil {
				require.NoError(t, err)
				continue
			}
			require.NoError(t, errors.Join(state.DeleteTopic(topic), want.DeleteTopic(topic)))
			taken = append(taken, topic)
		}
		for a := range want.Associations() {
			if gone = a; rng.IntN(20) == 0 {
				break
			}
		}
		require.NoError(t, errors.Join(state.DeleteAssociation(gone), want.DeleteAssociation(gone)))
		compare(state)
		return undone
	})
	require.ErrorIs(t, err, undone)
	for _, topic := range taken {
		require.NoError(t, want.PutTopic(topic))
	}
	require.NoError(t, want.PutAssociation(gone))
}

// byPart returns the topics that play in associations other than of types, and the
// others.
func byPart(t testing.TB, src fragment.Source) (players, others []*fragment.Topic) {
	for _, topic := range topicsOf(t, src) {
		plays := false
		for range src.AssociationsOf(topic.TopicSI(), fragment.AsPlayer) {
			plays = true
		}
		if plays {
			players = append(players, topic)
		} else {
			others = append(others, topic)
		}
	}
	return players, others
}

// Players are returned with all their data, if others are skipped in between.
func TestTheWalkPassesOverWhatNobodyAsksFor(t *testing.T) {
	db := openDB(t, t.TempDir())
	next, err := fragment.NameTopics(t.Context(), hubs(t), sp, nil)
	require.NoError(t, err)
	collectionOf(t, db, "m", next)
	view(t, db, "m", func(v *View) {
		src := v.Source()
		for every := 1; every < 5; every++ {
			read := 0
			walk := src.(fragment.Stored).StoredAssociations()
			func() {
				defer walk.Close()
				read = walkedEvery(t, walk, src, every)
			}()
			require.Greater(t, read, 50)
		}
	})
}

// Associations of some types are selected among all of a topic, and at most a number of these is read.
func TestAssociationsOfSomeTypes(t *testing.T) {
	db := openDB(t, t.TempDir())
	next, err := fragment.NameTopics(t.Context(), hubs(t), sp, nil)
	require.NoError(t, err)
	collectionOf(t, db, "m", next)
	found := 0
	view(t, db, "m", func(v *View) {
		types := map[fragment.Ref]bool{}
		for a, err := range v.State().Associations() {
			require.NoError(t, err)
			types[a.Type] = true
		}
		for range v.State().AllOfTypes() {
			t.Fatal("none are asked for")
		}
		for typ := range types {
			var want, got []*fragment.Association
			for a, err := range v.State().Associations() {
				require.NoError(t, err)
				if a.Type == typ {
					want = append(want, a)
				}
			}
			for a, err := range v.State().AllOfTypes("http://x/none", typ) {
				require.NoError(t, err)
				got = append(got, a)
			}
			require.Equal(t, want, got)
		}
		for _, topic := range topicsOf(t, v.State()) {
			for typ := range types {
				for _, n := range []int{3, 1000} {
					var want, got []*fragment.Association
					looked := 0
					for a, err := range v.State().AssociationsOf(topic.TopicSI(), fragment.AsPlayer) {
						require.NoError(t, err)
						if looked++; looked <= n && a.Type == typ {
							want = append(want, a)
						}
					}
					for a, err := range v.State().AssociationsOfTypes(topic.TopicSI(), n, typ, "http://x/none") {
						require.NoError(t, err)
						got = append(got, a)
					}
					require.Equal(t, want, got)
					found += len(got)
				}
			}
		}
	})
	require.Greater(t, found, 50)
}

// walkedEvery walks through the associations of some of the topics, and returns their number.
func walkedEvery(t testing.TB, walk fragment.StoredAssociations, src fragment.Source, every int) (read int) {
	for i, topic := range topicsOf(t, src) {
		if i%every != 0 {
			continue
		}
		for _, part := range []fragment.Part{fragment.AsInstance, fragment.AsPlayer} {
			for a, err := range src.AssociationsOf(topic.TopicSI(), part) {
				require.NoError(t, err)
				got, err := walk.Next(topic.TopicSI())
				require.NoError(t, err)
				want := &fragment.StoredAssociation{Part: part, Key: a.Key(), Record: fragment.MarshalAssociation(a)}
				if players := a.Players(); len(players) > records.InlinePlayers && topic.TopicSI() != players[0] {
					want.Record = nil
				}
				require.Equal(t, want, got)
				read++
			}
		}
		for range 2 {
			none, err := walk.Next(topic.TopicSI())
			require.NoError(t, err)
			require.Nil(t, none, "no more of %s", topic.TopicSI())
		}
	}
	return read
}

// What cannot be read is an error of the comparison, and names the row.
func TestDamagedRecordsAreFoundInComparing(t *testing.T) {
	for what, damage := range map[string]func(id keys.Source, key, value []byte) (newKey, newValue []byte){
		"topic":       func(_ keys.Source, key, value []byte) ([]byte, []byte) { return key, value[:len(value)-1] },
		"association": func(_ keys.Source, key, value []byte) ([]byte, []byte) { return key, append(value, 1) },
		"no form":     func(_ keys.Source, key, value []byte) ([]byte, []byte) { return key, []byte{7} },
		"nowhere": func(_ keys.Source, key, value []byte) ([]byte, []byte) {
			return key, append([]byte{elsewhere}, "http://nobody"...)
		},
		"key": func(id keys.Source, key, value []byte) ([]byte, []byte) {
			return append(id.Key(keys.TableAssociation), "http://a"...), value
		},
	} {
		db := openDB(t, t.TempDir())
		tm := tmdm.New()
		player := tm.CreateTopicBySubjectIdentifier("http://p")
		tm.CreateAssociation(player).AddRole(player, player)
		next, err := fragment.NewMap(tm, sp)
		require.NoError(t, err)
		c := collectionOf(t, db, "m", next)
		require.True(t, mustDiffStored(t, db, next).Empty())
		table := byte(keys.TableAssociation)
		if what == "topic" {
			table = keys.TableTopic
		}
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
			for r, err := range tx.Scan(c.SourceKey().Key(table), nil) {
				require.NoError(t, err)
				return tx.Put(damage(c.SourceKey(), r.Key, r.Value))
			}
			return nil
		}))
		view(t, db, "m", func(v *View) {
			_, err := fragment.Diff(t.Context(), v.Source(), next)
			require.ErrorIs(t, err, fragment.ErrCorrupt, what)
			if !strings.Contains(what, "topic") {
				require.ErrorContains(t, err, "association", what)
			}
		})
	}
}

func mustDiffStored(t testing.TB, db *DB, next *fragment.Map) (change *fragment.Change) {
	t.Helper()
	view(t, db, "m", func(v *View) { change = mustDiff(t, v.Source(), next) })
	return change
}

// document is a model of a document of the fragments feed.
type document struct{ first, size uint64 }

// cut is the naive list of documents: one is added when there is an entry for it, with the present size.
type cut struct {
	documents []document
	size      uint64
}

func (c *cut) growTo(head uint64) {
	if len(c.documents) == 0 {
		c.documents = []document{{1, c.size}}
	}
	for {
		last := c.documents[len(c.documents)-1]
		if head < last.first+last.size {
			return
		}
		c.documents = append(c.documents, document{last.first + last.size, c.size})
	}
}

// check compares all documents, entry by entry.
func (c *cut) check(t tester, got *Collection) {
	t.Helper()
	c.growTo(got.Head)
	require.Equal(t, uint64(len(c.documents)), got.OpenDocument())
	for i, want := range c.documents {
		n := uint64(i + 1)
		first, size := got.Document(n)
		require.Equal(t, want, document{first, size}, "document %d", n)
		for seq := first; seq < first+size; seq++ {
			require.Equal(t, n, got.DocumentOf(seq), "entry %d", seq)
		}
	}
	first, size := got.Document(got.OpenDocument() + 1)
	last := c.documents[len(c.documents)-1]
	require.Equal(t, document{last.first + last.size, c.size}, document{first, size}, "the next has the size that is set")
}

// After any changes of the size between entries, each entry is in one document, the documents are contiguous, and
// existing boundaries do not change.
func TestDocumentsKeepTheirBoundaries(t *testing.T) {
	t.Parallel()
	testenv.Check(t, 25, 100, func(t *rapid.T) {
		sizes := rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, 60))
		c := &Collection{Settings: Settings{DocumentSize: sizes.Draw(t, "first size")}}
		naive := &cut{size: uint64(c.DocumentSize)}
		naive.check(t, c)
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				c.Head += rapid.Uint64Range(0, 40).Draw(t, "entries")
			},
			"resize": func(t *rapid.T) {
				size := sizes.Draw(t, "size")
				c.ResizeDocuments(size)
				c.DocumentSize, naive.size = size, uint64(size)
			},
			"restart": func(t *rapid.T) {
				b, err := json.Marshal(c)
				require.NoError(t, err)
				c = &Collection{}
				require.NoError(t, json.Unmarshal(b, c))
			},
			"": func(t *rapid.T) {
				naive.check(t, c)
				require.LessOrEqual(t, len(c.Segments), len(naive.documents)+1, "what no document is in is not kept")
			},
		})
	})
}

// The same through the store, over restarts.
func TestDocumentsOfAPublishedMap(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	rng := testenv.Rand(5)
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 30)
	naive := &cut{size: 100}
	for turn := range 80 {
		switch rng.IntN(5) {
		case 0:
			db = reopen(t, db)
		case 1, 2:
			size := 1 + rng.IntN(12)
			naive.growTo(c.Head)
			naive.size = uint64(size)
			changed, err := db.ChangeSettings(t.Context(), "m", func(s *Settings) error { s.DocumentSize = size; return nil })
			require.NoError(t, err)
			require.Equal(t, c.Head, changed.Head, "it publishes nothing")
		default:
			c = publish(t, db, "m", rename(0, 1+rng.IntN(30), fmt.Sprint(turn)))
		}
		view(t, db, "m", func(v *View) {
			naive.check(t, &v.Collection)
			if v.Head > 150 {
				require.Greater(t, len(v.Segments), 1)
			}
		})
	}
	require.Greater(t, len(naive.documents), 20)
}
