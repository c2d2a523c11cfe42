package store

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

// given are the tables whose rows cannot be derived from others, with the reasons.
var given = map[byte]string{
	keys.TableMeta: "of the store itself", keys.TableCollection: "what was decided", keys.TableSubscription: "what was decided",
	keys.TableLog: "what was published", keys.TableFirst: "what was published", keys.TableVia: "what a source has said", keys.TableExtension: "of extensions",
	keys.TableSnapshot: "what files there are",
	keys.TableTopic:    "records", keys.TableQuarantine: "what a source has said", keys.TableOwed: "what a source has said",
	keys.TableSpan: "what was read", keys.TableHeld: "what a source has said", keys.TableRejection: "what was decided",
	keys.TableDerived: "what is to be done", keys.TableInput: "what was decided", keys.TableStagedLog: "a load under way",
	keys.TableActivity: "what was done", keys.TableSample: "what was measured", keys.TableFile: "files", keys.TableChunk: "files",
	keys.TableGoingFile: "files", keys.TableLease: "of processes", keys.TableBeat: "of processes", keys.TableOpening: "what was done",
	keys.TableConsumer: "of consumers outside of the store",
	keys.TableLoad:     "of processes", keys.TableFormer: "what was decided",
}

// followingRows has, for each table with derivable rows, the rows that are damaged in the test, and the superfluous row
// that is added. It omits rows whose value cannot be derived.
var followingRows = map[byte]struct {
	damaged func(h *derivedRows, r row) bool
	added   func(h *derivedRows, r row) row
}{
	keys.TableIdentifier:  {every, longer},
	keys.TableLocator:     {every, longer},
	keys.TableAssociation: {(*derivedRows).isCopy, leading},
	keys.TableMentions:    {every, longer},
	keys.TableReified:     {every, longer},
	keys.TableIndex:       {every, longer},
	keys.TableDigest:      {every, longer},
	keys.TableDescribed:   {every, longer},
	keys.TableKey:         {every, longer},
	keys.TableFragment:    {nil, later}, // the fragment itself is given
	keys.TableLogHash:     {(*derivedRows).isInner, later},
	keys.TableBefore:      {(*derivedRows).isOfIndex, (*derivedRows).otherBefore},
	keys.TableChanged:     {every, later},
}

func every(*derivedRows, row) bool { return true }

// longer returns a row with a new key.
func longer(_ *derivedRows, r row) row {
	return row{Key: append(bytes.Clone(r.Key), "zz"...), Value: append(bytes.Clone(r.Value), 'z')}
}

// leading returns a row with a reference to the record of an association at another player. A row with an unreadable
// record is not superfluous: it may be the last row of a record.
func leading(h *derivedRows, r row) row {
	return row{Key: longer(h, r).Key, Value: append([]byte{1}, ref(1)...)}
}

// later returns a row with a number after all numbers of a table.
func later(h *derivedRows, r row) row {
	key := bytes.Clone(r.Key)
	copy(key[keys.SourceSize:], []byte{0, 0, 0, 0, 0, 1, 0, 0})
	return row{Key: key, Value: r.Value}
}

// derivedRows are the rows of a store with a row in each table of derivable rows.
type derivedRows struct {
	dir    string
	all    []row
	leaves uint64          // of the tree
	pruned map[uint64]bool // entries
}

// random returns the rows of a store after a random history.
func random(t *testing.T, seed uint64) *derivedRows {
	h, engine := &derivedRows{dir: t.TempDir()}, memory.New()
	db := openWith(t, Options{Dir: h.dir, Engine: engine, Logger: testOptions("").Logger, Indexes: indexes})
	editor := storetest.NewEditor(t, seed)
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: storetest.SP, Settings: Settings{DocumentSize: 4, Sign: "/key"}}, editor.Version(&merge.Memory{}), nil)
	require.NoError(t, err)
	next := func(n int) {
		for range n {
			var prior fragment.Source
			require.NoError(t, db.View(t.Context(), "m", func(v *View) error {
				next := editor.Version(v.Source())
				prior = next
				return nil
			}))
			publishMap(t, db, "m", prior.(*fragment.Map))
		}
	}
	next(30)
	takeSnapshot(t, db, "m", 2)
	require.Positive(t, prune(t, db, "m", Retention{Entries: 60}))
	state, hub := reifiedState(t), named(ref(20), "hub")
	hub.SubjectIdentifiers = append(hub.SubjectIdentifiers, "http://example.org/other")
	hub.SubjectLocators = []fragment.Ref{"http://example.org/locator"}
	require.NoError(t, state.PutTopic(hub))
	subscribe(t, db, "s", state)
	require.NoError(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
		for i := range 5 {
			if err := a.Hold(Held{ID: fmt.Sprint("record ", i), TopicSI: ref(i)}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Empty(t, checked(t, db, false))
	view(t, db, "m", func(v *View) {
		h.leaves, h.pruned = v.Hashed, map[uint64]bool{}
		for seq := range v.Horizon {
			h.pruned[seq+1] = true
		}
		for e, err := range v.Kept(1) {
			require.NoError(t, err)
			delete(h.pruned, e.Seq)
		}
	})
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
		for r, err := range tx.Scan(nil, nil) {
			require.NoError(t, err)
			h.all = append(h.all, r)
		}
		return nil
	}))
	require.NoError(t, db.Close())
	return h
}

// table returns the rows of a table.
func (h *derivedRows) table(table byte) (some []row) {
	for _, r := range h.all {
		if keys.Table(r.Key) == table && keys.SourceOf(r.Key).Number >= keys.FirstNumber {
			some = append(some, r)
		}
	}
	return some
}

// isCopy reports whether a row of an association is not that of its least player.
func (h *derivedRows) isCopy(r row) bool {
	end := len(r.Key) - len(fragment.AssociationKey{})
	return r.Value[0] == 0 && string(fragment.LeastPlayer(r.Value[1:])) != string(r.Key[keys.SourceSize:end-2])
}

// isInner reports whether a hash can be derived: the entry of its leaf exists, and the hash of the whole tree is not
// made of this row.
func (h *derivedRows) isInner(r row) bool {
	level, n := tlog.SplitStoredHashIndex(int64(keys.NumberIn(r.Key)))
	return (uint64(n)+1)<<level <= h.leaves-h.leaves%(2<<level) && (level > 0 || !h.pruned[uint64(n)+1])
}

// isOfIndex reports whether a row has the former value of a row of the identifiers, the locators, or the copies of
// associations.
func (h *derivedRows) isOfIndex(r row) bool {
	key, _, ok := keys.SourceOf(r.Key).OfBefore(r.Key)
	if !ok || len(r.Value) == 0 {
		return false
	}
	switch keys.Table(key) {
	case keys.TableIdentifier, keys.TableLocator:
		return true
	case keys.TableAssociation:
		return h.isCopy(row{Key: key, Value: r.Value[1:]})
	}
	return false
}

// otherBefore returns a row with a former identifier that no topic had.
func (h *derivedRows) otherBefore(r row) row {
	id := keys.SourceOf(r.Key)
	_, commit, _ := id.OfBefore(r.Key)
	return row{Key: id.Before(id.LocatorKey(keys.TableIdentifier, "http://example.org/nobody"), commit), Value: []byte("\x01http://example.org/x")}
}

// declaredTables returns the names of all tables, by their letters, as package keys declares them.
func declaredTables(t *testing.T) map[byte]string {
	file, err := parser.ParseFile(token.NewFileSet(), "keys/keys.go", nil, 0)
	require.NoError(t, err)
	all := map[byte]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Table") && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.CHAR {
				letter, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				all[letter[0]] = spec.Names[0].Name
			}
		}
		return true
	})
	require.Greater(t, len(all), 30)
	return all
}

// The test lists for each table whether its rows can be derived. Then each lost, changed or superfluous row is found,
// and a repair restores it. An unlisted table fails.
func TestEachRowThatFollowsFromOthersIsFoundAndMended(t *testing.T) {
	testenv.SkipUnderRace(t)
	names := declaredTables(t)
	for letter, name := range names {
		_, follows := followingRows[letter]
		require.NotEqual(t, follows, given[letter] != "", "say of the table %s whether its rows follow from others", name)
	}
	for round := range testenv.Rounds(1, 20) {
		h, rng := random(t, testenv.Seed()+uint64(round)), testenv.Rand(uint64(round))
		for _, letter := range slices.Sorted(maps.Keys(followingRows)) {
			kind := followingRows[letter]
			t.Run(names[letter], func(t *testing.T) {
				all := slices.DeleteFunc(h.table(letter), func(r row) bool { return kind.damaged != nil && !kind.damaged(h, r) })
				if kind.damaged == nil {
					all = []row{{Key: keys.Own(keys.SourceOf(h.table(keys.TableKey)[0].Key).Number).Numbered(letter, 0)}}
				}
				require.NotEmpty(t, all)
				for range testenv.Rounds(4, 20) {
					h.lose(t, rng, all, kind.damaged != nil, kind.added)
				}
			})
		}
	}
}

// lose has rows of some be lost, changed, or too many.
func (h *derivedRows) lose(t *testing.T, rng *rand.Rand, some []row, there bool, added func(*derivedRows, row) row) {
	r := some[rng.IntN(len(some))]
	without := slices.DeleteFunc(slices.Clone(h.all), func(other row) bool { return bytes.Equal(r.Key, other.Key) })
	if there {
		h.mended(t, "lost", r, without)
		changed := row{Key: r.Key, Value: append(bytes.Clone(r.Value), 0)}
		if len(r.Value) > 0 && rng.IntN(2) == 0 {
			changed.Value = bytes.Clone(r.Value)
			changed.Value[rng.IntN(len(r.Value))] ^= 1 << rng.IntN(8)
		}
		h.mended(t, "changed", r, append(without, changed))
	}
	h.mended(t, "added", added(h, r), append(slices.Clone(h.all), added(h, r)))
}

// mended holds that a row is found to be wrong among others, and mended.
func (h *derivedRows) mended(t *testing.T, how string, r row, rows []row) {
	t.Helper()
	engine := memory.New()
	w, err := engine.Bulk(t.Context())
	require.NoError(t, err)
	for _, r := range rows {
		require.NoError(t, w.Put(r.Key, r.Value))
	}
	require.NoError(t, w.Commit())
	db := openWith(t, Options{Dir: h.dir, Engine: engine, Logger: testOptions("").Logger, Indexes: indexes})
	defer db.Close()
	found := checked(t, db, false)
	require.NotEmpty(t, found, "%s: %q = %q", how, r.Key, r.Value)
	for _, f := range found {
		require.True(t, f.Repairable, "%s: %q = %q: %s", how, r.Key, r.Value, f.What)
	}
	checked(t, db, true)
	require.Empty(t, checked(t, db, false), "%s: %q = %q", how, r.Key, r.Value)
	require.Equal(t, h.following(h.all), h.following(stored(t, engine)), "%s: %q", how, r.Key)
}

func stored(t *testing.T, engine kv.Engine) (all []row) {
	reader, err := engine.Snapshot(t.Context())
	require.NoError(t, err)
	defer reader.Close()
	for r, err := range reader.Range(nil, nil, false) {
		require.NoError(t, err)
		all = append(all, cloned(r))
	}
	return all
}

// following returns the rows that follow from others.
func (h *derivedRows) following(rows []row) map[string]string {
	all := map[string]string{}
	for _, r := range rows {
		if _, follows := followingRows[keys.Table(r.Key)]; follows && keys.SourceOf(r.Key).Number >= keys.FirstNumber {
			all[string(r.Key)] = string(r.Value)
		}
	}
	return all
}
