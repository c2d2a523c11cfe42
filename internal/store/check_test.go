package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
)

func checked(t testing.TB, db *DB, repair bool) (found []Finding) {
	t.Helper()
	require.NoError(t, db.Check(t.Context(), repair, func(f Finding) { found = append(found, f) }, func(string) {}))
	return found
}

// checkable returns a database with everything that is checked.
func checkable(t testing.TB) (*DB, *Collection) {
	t.Helper()
	db := openDB(t, t.TempDir())
	state := reifiedState(t)
	hub := named(ref(20), "hub")
	hub.SubjectIdentifiers = append(hub.SubjectIdentifiers, "http://example.org/other")
	hub.SubjectLocators = []fragment.Ref{"http://example.org/locator"}
	require.NoError(t, state.PutTopic(hub))
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp, Settings: Settings{DocumentSize: 4}}, state, nil)
	require.NoError(t, err)
	for i := range 12 {
		publish(t, db, "m", rename(4, 6, fmt.Sprint("version ", i)))
	}
	takeSnapshot(t, db, "m", 2)
	require.Positive(t, prune(t, db, "m", Retention{Entries: 12}))
	publish(t, db, "m", rename(4, 5, "last"))
	takeSnapshot(t, db, "m", 2)
	extend(t, db, "m")
	subscribe(t, db, "s", state)
	var c *Collection
	view(t, db, "m", func(v *View) { c = &v.Collection })
	return db, c
}

// After any operations a folder is sound.
func TestASoundFolderHasNoFindings(t *testing.T) {
	db, _ := checkable(t)
	require.Empty(t, checked(t, db, false))
	require.Empty(t, checked(t, db, true))
	db = reopen(t, db)
	require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
	require.Empty(t, checked(t, db, false))
}

// A program that only reads the folder reports the remains of a crash. One that writes removes them.
func TestLeftoversAreFound(t *testing.T) {
	db, c := checkable(t)
	raw(t, db, func(w kv.Writer) error {
		return w.Put(append(keys.Source{Number: c.Number, Generation: c.Generation + 7}.Key(keys.TableTopic), "left"...), []byte("left"))
	})
	file := filepath.Join(filepath.Dir(snapshotPath(db, c, &Snapshot{})), "left"+datafolder.SnapshotEnding)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, db.Close())

	reading := testOptions(db.Dir())
	reading.Access = Read
	db = openWith(t, reading)
	found := checked(t, db, false)
	require.Len(t, found, 1)
	require.Equal(t, "interrupted loads or deletions have left 1 groups of rows and 1 files", found[0].What)
	require.True(t, found[0].Repairable)
	require.FileExists(t, file)

	db = reopen(t, db)
	require.NoFileExists(t, file)
	require.NoError(t, db.Close())
	require.Empty(t, checked(t, openWith(t, reading), false))
}

// raw changes rows past all checks.
func raw(t testing.TB, db *DB, f func(kv.Writer) error) {
	t.Helper()
	since, err := db.rows.Engine.Version(t.Context())
	require.NoError(t, err)
	w, err := db.rows.Engine.Begin(t.Context(), since)
	require.NoError(t, err)
	require.NoError(t, f(w))
	require.NoError(t, w.Commit())
}

// Each damage is found. Only rows that can be derived from others are repaired.
func TestDamageIsFoundAndRepaired(t *testing.T) {
	testenv.SkipUnderRace(t)
	sub := func(t *testing.T, db *DB) (id keys.Source) {
		subscribedTo(t, db, func(s Subscription, _ fragment.Source) { id = s.Source(s.State) })
		return id
	}
	for name, d := range map[string]struct {
		damage     func(*testing.T, *DB, *Collection)
		what       string
		repairable bool
	}{
		"a snapshot file is lost": {func(t *testing.T, db *DB, c *Collection) {
			require.NoError(t, os.Remove(listedFiles(t, db, c)[0]))
		}, "the file of a snapshot is lost", true},
		"a snapshot file is cut": {func(t *testing.T, db *DB, c *Collection) {
			require.NoError(t, os.Truncate(listedFiles(t, db, c)[0], 30))
		}, "has 30 bytes, not", true},
		"a snapshot file is altered": {func(t *testing.T, db *DB, c *Collection) {
			path := listedFiles(t, db, c)[1]
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			b[len(b)/2] ^= 1
			require.NoError(t, os.WriteFile(path, b, 0o600))
		}, "cannot be unpacked", true},
		"a snapshot file is another": {func(t *testing.T, db *DB, c *Collection) {
			path := listedFiles(t, db, c)[1]
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			b[len(b)-6] ^= 1 // in the checksum of the content
			require.NoError(t, os.WriteFile(path, b, 0o600))
		}, "has another content than was written", true},
		"an identifier leads nowhere": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error {
				return w.Delete(c.SourceKey().LocatorKey(keys.TableIdentifier, "http://example.org/other"))
			})
		}, `table 'i', .*is missing`, true},
		"a locator leads elsewhere": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error {
				return w.Put(c.SourceKey().LocatorKey(keys.TableLocator, "http://example.org/locator"), []byte(ref(1)))
			})
		}, `table 'l', .*is another one than follows from the rest`, true},
		"an association has lost a player": {func(t *testing.T, db *DB, c *Collection) {
			id := sub(t, db)
			deleteFirst(t, db, id.PlayingPrefix(ref(5), fragment.AsPlayer))
		}, `subscription s.*table 'a', .*is missing`, true},
		"an association has lost its first player": {func(t *testing.T, db *DB, c *Collection) {
			deleteFirst(t, db, c.SourceKey().PlayingPrefix(ref(4), fragment.AsPlayer))
		}, `table 'a', .*is missing`, true},
		"a count is wrong": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error {
				return w.Put(c.SourceKey().LocatorKey(keys.TableMentions, ref(2)), make([]byte, 8))
			})
		}, `table 'n', .*is another one than follows from the rest`, true},
		"a row of reifiers belongs to nothing": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error {
				return w.Put(c.SourceKey().ReifiedKey(c.SourceKey().LocatorKey(keys.TableTopic, ref(6))), nil)
			})
		}, `table 'r', .*follows from nothing`, true},
		"an entry of an index is lost": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Delete(rowsIn(t, db, keys.TableIndex)[0].Key) })
		}, `table 'W', .*is missing`, true},
		"an entry of an index is altered": {func(t *testing.T, db *DB, c *Collection) {
			r := rowsIn(t, db, keys.TableIndex)[0]
			raw(t, db, func(w kv.Writer) error { return w.Put(r.Key, append(r.Value, 0)) })
		}, `table 'W', .*is another one than follows from the rest`, true},
		"an entry of an index belongs to nothing": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Put(c.SourceKey().Index(storetest.Index.Name), nil) })
		}, `table 'W', .*follows from nothing`, true},
		"the number of topics is wrong": {func(t *testing.T, db *DB, c *Collection) {
			require.NoError(t, db.rows.Update(t.Context(), func(t *txn.Tx) error { other := *c; other.Topics += 2; return collections.Put(t, &other) }))
		}, "topics, not", true},
		"a fragment has no entry": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error {
				return w.Put(c.Log().Numbered(keys.TableFragment, c.Head+1), []byte("x"))
			})
		}, "a row of the fragments that are kept .*follows from nothing", true},
		"a topic key is lost": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Delete(collections.TopicKey(c, ref(4))) })
		}, "a row of the topic keys .*is missing", true},
		"a topic key leads nowhere": {func(t *testing.T, db *DB, c *Collection) {
			require.NoError(t, db.rows.Update(t.Context(), func(t *txn.Tx) error {
				return t.Put(collections.TopicKey(c, ref(4)), collections.LastRow(c.Head+7))
			}))
		}, "a row of the topic keys .*is another one than follows from the rest", true},
		"numbers would be given out again": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Delete(keys.Meta("next")) })
		}, "the last number that was given out is 0", true},
		"an entry is lost": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Delete(c.Log().Numbered(keys.TableLog, c.Head-3)) })
		}, "the log lacks the entries", false},
		"a topic key cannot be read": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Put(collections.TopicKey(c, ref(4)), []byte(`{"Seq":4}`)) })
		}, "a row of the topic keys .*is another one than follows from the rest", true},
		"the first row of an association cannot be read, another can": {func(t *testing.T, db *DB, c *Collection) {
			at := firstKey(t, db, c.SourceKey().PlayingPrefix(ref(4), fragment.AsPlayer))
			value := bytes.Clone(rowAt(t, db, at))
			value[0] = 1 // as if the record were elsewhere
			raw(t, db, func(w kv.Writer) error { return w.Put(at, value) })
		}, `table 'a', .*is another one than follows from the rest`, true},
		"an association cannot be read": {func(t *testing.T, db *DB, c *Collection) {
			for i := range 6 {
				at := firstKey(t, db, c.SourceKey().PlayingPrefix(ref(i), fragment.AsPlayer))
				raw(t, db, func(w kv.Writer) error { return w.Put(at, []byte{0, 255}) })
			}
		}, "the record of an association of .* cannot be read", false},
		"a topic cannot be read": {func(t *testing.T, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Put(c.SourceKey().LocatorKey(keys.TableTopic, ref(3)), []byte{255}) })
		}, "the record of the topic .* cannot be read", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, c := checkable(t)
			records := recordsOf(t, db, "m")
			d.damage(t, db, c)
			found := checked(t, db, false)
			require.NotEmpty(t, found)
			var reported []string
			lost := false
			for _, f := range found {
				reported = append(reported, f.Where+": "+f.What)
				lost = lost || !f.Repairable
				require.NotEmpty(t, f.Remedy)
			}
			require.Regexp(t, d.what, strings.Join(reported, "\n"))
			require.Equal(t, d.repairable, !lost, reported)
			checked(t, db, true)
			found = checked(t, db, false)
			require.Equal(t, d.repairable, len(found) == 0, "%v", found)
			if d.repairable {
				require.Equal(t, records, recordsOf(t, db, "m"))
				view(t, db, "m", func(v *View) {
					all, err := v.Snapshots()
					require.NoError(t, err)
					require.NotEmpty(t, all)
				})
			}
		})
	}
}

// What is wrong with blocks of first entries is found. What leads to one that cannot be read stays.
func TestDamageOfFirstEntriesIsFound(t *testing.T) {
	for name, d := range map[string]struct {
		damage     func(*testing.T, *txn.Tx, *Collection) error
		what       string
		repairable bool
	}{
		"cannot be read": {func(_ *testing.T, tx *txn.Tx, c *Collection) error {
			return tx.Put(c.Log().Numbered(keys.TableFirst, 257), []byte{255})
		}, "the first entries of the log from 257 on cannot be read", false},
		"are lost": {func(_ *testing.T, tx *txn.Tx, c *Collection) error {
			return tx.Delete(c.Log().Numbered(keys.TableFirst, 1))
		}, "the log lacks the entries 1 to 256", false},
		"one is lost": {func(t *testing.T, tx *txn.Tx, c *Collection) error {
			other := *c // its new horizon is not stored
			return collections.Prune(tx, &other, 9)
		}, "the log lacks the entries 5 to 5", false},
		"are of no load": {func(_ *testing.T, tx *txn.Tx, c *Collection) error {
			return tx.Put(c.Log().Numbered(keys.TableFirst, c.Beginning.Entries+1), []byte{2, 0, 1, 'x'})
		}, "a row of the first entries (table 'E', 301) follows from nothing", true},
		"a key leads to none": {func(_ *testing.T, tx *txn.Tx, c *Collection) error {
			return tx.Delete(collections.TopicKey(c, ref(200)))
		}, "a row of the topic keys (table 'k', ", true},
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, t.TempDir())
			collection(t, db, "m", 299)
			var fifth fragment.Ref
			view(t, db, "m", func(v *View) {
				e, err := v.Entry(5)
				require.NoError(t, err)
				fifth = e.TopicSI
			})
			c := publish(t, db, "m", &fragment.Change{
				PutTopics: []*fragment.Topic{named(fifth, "second")}, Entries: []fragment.Entry{{TopicSI: fifth, Topic: fifth, Title: "second"}}, Updated: 1,
			})
			require.Empty(t, checked(t, db, false))
			before := rows(t, db, "k")
			require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return d.damage(t, tx, c) }))
			for _, repair := range []bool{false, true} {
				found := checked(t, db, repair)
				require.NotEmpty(t, found)
				var reported []string
				lost := false
				for _, f := range found {
					reported = append(reported, f.What)
					lost = lost || !f.Repairable
				}
				require.Contains(t, strings.Join(reported, "\n"), d.what)
				require.Equal(t, d.repairable, !lost, reported)
			}
			require.Equal(t, d.repairable, len(checked(t, db, false)) == 0)
			if name != "are lost" {
				require.Equal(t, before, rows(t, db, "k"))
			}
		})
	}
}

func listedFiles(t testing.TB, db *DB, c *Collection) (files []string) {
	t.Helper()
	view(t, db, "m", func(v *View) {
		all, err := v.Snapshots()
		require.NoError(t, err)
		for i := range all {
			files = append(files, snapshotPath(db, c, &all[i]))
		}
	})
	return files
}

func deleteFirst(t testing.TB, db *DB, prefix []byte) {
	t.Helper()
	key := firstKey(t, db, prefix)
	raw(t, db, func(w kv.Writer) error { return w.Delete(key) })
}

// firstKey returns the first key with a prefix.
func firstKey(t testing.TB, db *DB, prefix []byte) (key []byte) {
	t.Helper()
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
		for r, err := range tx.Scan(prefix, nil) {
			require.NoError(t, err)
			key = r.Key
			break
		}
		return nil
	}))
	require.NotNil(t, key)
	return key
}

// What is published between a finding and its mending stays, though the finding is of the same
// row.
func TestMendingKeepsWhatOthersWroteMeanwhile(t *testing.T) {
	testenv.SkipUnderRace(t)
	put := func(key func(c *Collection) []byte) func(testing.TB, *DB, *Collection) {
		return func(t testing.TB, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Put(key(c), []byte("{}")) })
		}
	}
	more := func(t testing.TB, db *DB) { publish(t, db, "m", rename(4, 6, "meanwhile")) }
	for name, d := range map[string]struct {
		damage    func(testing.TB, *DB, *Collection)
		meanwhile func(testing.TB, *DB)
	}{
		"an entry": {put(func(c *Collection) []byte { return c.Log().Numbered(keys.TableLog, c.Head+1) }), more},
		"a topic key": {func(t testing.TB, db *DB, c *Collection) {
			require.NoError(t, db.rows.Update(t.Context(), func(t *txn.Tx) error {
				return t.Put(collections.TopicKey(c, ref(900)), collections.LastRow(c.Head))
			}))
		}, func(t testing.TB, db *DB) {
			publish(t, db, "m", &fragment.Change{
				PutTopics: []*fragment.Topic{named(ref(900), "new")}, Added: 1,
				Entries: []fragment.Entry{{TopicSI: ref(900), Topic: ref(900), Title: "new"}},
			})
		}},
		"a snapshot": {func(t testing.TB, db *DB, c *Collection) {
			publish(t, db, "m", rename(4, 6, "not in a snapshot"))
			takeSnapshot(t, db, "m", 2)
			require.NoError(t, os.Remove(listedFiles(t, db, c)[0]))
		}, func(t testing.TB, db *DB) {
			_, err := db.DropLostSnapshots(t.Context(), "m")
			require.NoError(t, err)
			takeSnapshot(t, db, "m", 2)
		}},
		"numbers": {func(t testing.TB, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error { return w.Put(keys.Meta("next"), []byte("0")) })
		}, func(t testing.TB, db *DB) {
			raw(t, db, func(w kv.Writer) error { return w.Put(keys.Meta("next"), []byte("99")) })
		}},
		"a collection": {put(func(c *Collection) []byte { return c.Log().Numbered(keys.TableLog, c.Head+1) }), func(t testing.TB, db *DB) {
			require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
			collection(t, db, "m", 2)
		}},
		"an index": {func(t testing.TB, db *DB, c *Collection) {
			raw(t, db, func(w kv.Writer) error {
				return w.Delete(c.SourceKey().LocatorKey(keys.TableIdentifier, "http://example.org/other"))
			})
		}, func(t testing.TB, db *DB) {
			require.NoError(t, db.Check(t.Context(), true, func(Finding) {}, func(string) {}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, c := checkable(t)
			d.damage(t, db, c)
			ck := &checker{db: db, ctx: t.Context(), progress: func(string) {}, folder: t.TempDir()}
			require.NoError(t, ck.all())
			require.NotEmpty(t, ck.findings)
			d.meanwhile(t, db)
			before := rows(t, db, keys.SourceTables+"cbekUsmf")
			for i := range ck.findings {
				mended, err := db.mend(ck.ctx, &ck.findings[i])
				require.NoError(t, err)
				require.False(t, mended, ck.findings[i].What)
			}
			require.Equal(t, before, rows(t, db, keys.SourceTables+"cbekUsmf"))
			require.Empty(t, checked(t, db, false))
		})
	}
}
