package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// withRows makes a copy of a collection in which each first entry has a row of its own, with the former title of its
// topic.
func withRows(t tester, db *DB, c *Collection, name string, titles map[fragment.Ref]string) {
	t.Helper()
	number, err := records.NextNumber(context.Background(), db.rows, nil)
	require.NoError(t, err)
	require.NoError(t, db.rows.Update(context.Background(), func(tx *txn.Tx) error {
		other := *c
		other.Name, other.Number, other.Beginning = name, number, nil
		for r, err := range tx.Scan(keys.Space(c.Number), nil) {
			require.NoError(t, err)
			key := append(keys.Space(number), r.Key[4:]...)
			switch keys.Table(r.Key) {
			case keys.TableCollection:
				continue
			case keys.TableFirst:
				for e, err := range collections.InBlock(c, r) {
					require.NoError(t, err)
					e.Untitled, e.Title = false, titles[e.TopicSI]
					require.NoError(t, tx.PutJSON(other.Log().Numbered(keys.TableLog, e.Seq), e))
				}
				continue
			}
			require.NoError(t, tx.Put(key, r.Value))
		}
		return collections.Put(tx, &other)
	}))
}

// answers returns the answers of a collection to all reads. The other arguments are drawn.
func answers(t *rapid.T, db *DB, name string, random []uint64, times []time.Time, keep Retention) (lines []string) {
	say := func(what string, values ...any) {
		for i := range values {
			if err, ok := values[i].(error); ok {
				values[i] = fmt.Sprint(errors.Is(err, ErrGone), errors.Is(err, ErrNotFound))
				require.True(t, errors.Is(err, ErrGone) || errors.Is(err, ErrNotFound), "%s: %v", what, err)
			}
		}
		b, err := json.Marshal(values)
		require.NoError(t, err)
		lines = append(lines, what+" "+string(b))
	}
	view(t, db, name, func(v *View) {
		say("state", v.Head, v.Updated, v.Run, v.Topics, v.Horizon, v.HorizonTime, v.HorizonRun, v.Remembered, v.Hashed, v.OpenDocument())
		for e, err := range v.Entries(0) {
			require.NoError(t, err)
			require.False(t, e.Untitled)
			id := v.ID(&e)
			again, err := v.EntryOf(id)
			require.NoError(t, err)
			require.NoError(t, v.SetTitle(again))
			require.Equal(t, &e, again)
			last, err := v.LastOf(e.TopicSI)
			require.NoError(t, err)
			commit, err := v.CommitOf(e.Seq)
			require.NoError(t, err)
			say("entry", e, id, e.Label(), last.Seq == e.Seq, commit, v.ShowsNow(&e), v.FormsOf(&e), e.Leaf())
		}
		for _, seq := range random {
			seq %= v.Head + 2
			e, err := titledEntry(v, seq)
			say("entry", seq, e, err)
			for e, err := range v.Entries(seq) {
				require.NoError(t, err)
				say("from", seq, e)
				break
			}
			if e == nil || err != nil {
				continue
			}
			for _, version := range Forms {
				var b bytes.Buffer
				err := v.WriteFragment(&b, e, version)
				say("fragment", b.String(), err)
				b.Reset()
				err = v.WriteRecord(&b, e, version)
				say("record", b.String(), err)
			}
			for _, at := range []func(uint64) (records.State, error){v.Past, v.PastBefore} {
				then, err := at(seq)
				if err == nil {
					topic, err := then.Topic(e.TopicSI)
					say("past", topic, err)
				} else {
					say("past", err)
				}
			}
		}
		for i := range 8 {
			say("last", last(t, v, ref(i)))
		}
		for e, err := range v.Records() {
			require.NoError(t, err)
			require.NoError(t, v.SetTitle(&e))
			say("record", e)
		}
		for n := v.OpenDocument(); n > 0; {
			run, known, err := v.DocumentRun(n)
			say("run", n, run, known, err)
			for _, run := range []uint32{run, run + 1} {
				written, err := v.WrittenIn(n, run)
				say("written", written, err)
			}
			entries, before, err := v.RecordEntries(n)
			say("records", entries, before, err)
			n = before
		}
		for i, since := range append(times, v.HorizonTime, v.Updated) {
			after := random[i] % (v.Head + 1)
			for e, err := range v.Since(since, after) {
				say("since", since, after, e, err)
			}
			first, err := v.firstSince(since)
			say("first since", first, err)
		}
		n, err := v.Prunable(keep)
		say("prunable", n, err)
		if v.Sign != "" {
			point, err := v.Checkpoint()
			require.NoError(t, err)
			say("checkpoint", point.Size, point.Root, point.Digest)
			proof, err := v.ProveLog(int64(random[0]%v.Head+1), int64(v.Head))
			say("proof", proof, err)
		}
		for key, err := range v.Changed(0, v.Head) {
			if err != nil {
				say("changed", err)
				break
			}
			say("changed", key[4:])
		}
	})
	return lines
}

func titledEntry(v *View, seq uint64) (*Entry, error) {
	e, err := v.Entry(seq)
	if err != nil {
		return nil, err
	}
	return e, v.SetTitle(e)
}

// A log that begins with blocks gives the same answers as one with a row for each entry, after any publications,
// pruning, signing and changes of formats.
func TestBlocksAnswerAsRowsOfEntriesDo(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	db := openOverEngine(t, t.TempDir(), memory.New())
	db.run.Store(0) // entries of both collections can be compared
	db.now = func() time.Time { return now }
	histories, cut := 0, 0
	testenv.Check(t, 6, 60, func(t *rapid.T) {
		histories++
		names := []string{fmt.Sprint("blocks", histories), fmt.Sprint("rows", histories)}
		topics := rapid.SampledFrom([]int{1, 7, 30, 255, 256, 257, 600}).Draw(t, "topics")
		size := rapid.SampledFrom([]int{1, 5, 40, 100, 300}).Draw(t, "size")
		src, live, titles := &merge.Memory{}, map[int]bool{}, map[fragment.Ref]string{}
		for i := range topics {
			name := rapid.SampledFrom([]string{"first", "", words(300)}).Draw(t, "name")
			topic := named(ref(i), name)
			require.NoError(t, src.PutTopic(topic))
			live[i], titles[ref(i)] = true, topic.Title()[:min(1000, len(topic.Title()))]
		}
		first := First{Source: src, Author: rapid.SampledFrom([]string{"", "somebody"}).Draw(t, "author")}
		c, err := db.CreateCollection(t.Context(), Collection{Name: names[0], SP: sp, Settings: Settings{
			DocumentSize: size, Sign: rapid.SampledFrom([]string{"", "/key"}).Draw(t, "sign"),
		}}, first, nil)
		require.NoError(t, err)
		require.EqualValues(t, topics, c.Beginning.Entries)
		withRows(t, db, c, names[1], titles)
		both := func(f func(name string)) {
			for _, name := range names {
				f(name)
			}
		}
		turn := 0
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				turn++
				renamed := map[int]string{}
				for _, i := range rapid.SliceOfN(rapid.IntRange(0, 29), 1, 20).Draw(t, "topics") {
					renamed[i] = rapid.SampledFrom([]string{fmt.Sprint("name ", turn), fmt.Sprint("name ", turn), ""}).Draw(t, "name")
				}
				was := live
				both(func(name string) {
					live = maps.Clone(was)
					publish(t, db, name, edit(live, renamed))
				})
			},
			"publish many": func(t *rapid.T) {
				turn++
				from := rapid.IntRange(0, topics-1).Draw(t, "from")
				to := rapid.IntRange(from+1, topics).Draw(t, "to")
				for i := from; i < min(to, 30); i++ {
					if !live[i] {
						return
					}
				}
				both(func(name string) { publish(t, db, name, rename(from, to, fmt.Sprint("many ", turn))) })
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(-2, 10).Draw(t, "seconds")) * time.Second)
			},
			"snapshot": func(t *rapid.T) { both(func(name string) { takeSnapshot(t, db, name, 2) }) },
			"settings": func(t *rapid.T) {
				size := rapid.SampledFrom([]int{1, 5, 40, 100, 300}).Draw(t, "size")
				path, omit := rapid.SampledFrom([]string{"", "/key"}).Draw(t, "path"), rapid.Bool().Draw(t, "omit")
				both(func(name string) {
					set(t, db, name, func(s *Settings) { s.DocumentSize, s.Sign, s.OmitInstances = size, path, omit })
				})
			},
			"offer otherwise": func(t *rapid.T) {
				forms := rapid.SampledFrom([][]xtm.Version{onlyOld, onlyNew, nil}).Draw(t, "forms")
				both(func(name string) {
					set(t, db, name, func(s *Settings) { s.RecordForms = forms })
					_, err := db.OfferRecordsAnew(t.Context(), name)
					require.NoError(t, err)
				})
			},
			"prune": func(t *rapid.T) {
				keep := Retention{Entries: rapid.Uint64Range(0, 700).Draw(t, "entries"), For: time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second}
				both(func(name string) {
					_, err := db.Prune(t.Context(), name, keep)
					require.NoError(t, err)
				})
				view(t, db, names[0], func(v *View) {
					if v.Horizon > 0 && v.Horizon < v.Beginning.Entries && v.Horizon%256 != 0 {
						cut++
					}
				})
			},
			"": func(t *rapid.T) {
				random := rapid.SliceOfN(rapid.Uint64Range(0, 2000), 6, 6).Draw(t, "entries")
				times := []time.Time{now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "ago")) * time.Second)}
				keep := Retention{Entries: random[1] % 700}
				blocks, rows := answers(t, db, names[0], random, times, keep), answers(t, db, names[1], random, times, keep)
				for i := range min(len(blocks), len(rows)) {
					require.Equal(t, rows[i], blocks[i])
				}
				require.Len(t, blocks, len(rows))
				var counts [2][]int
				for i, name := range names {
					c := readCollection(t, db, name)
					counts[i] = rowCounts(t, db, c.Number, "ek")
				}
				require.Equal(t, counts[1], counts[0], "entries that are stored")
			},
		})
		require.NoError(t, db.Check(t.Context(), false, func(f Finding) { require.Fail(t, f.Where, f.What) }, func(string) {}))
		for _, name := range names {
			require.NoError(t, db.DeleteCollection(t.Context(), name, ""))
		}
	})
	require.True(t, cut > 0 || !testenv.All(), "no horizon has cut a block")
}

func readCollection(t tester, db *DB, name string) (c Collection) {
	t.Helper()
	view(t, db, name, func(v *View) { c = v.Collection })
	return c
}

// watchedEngine fails if put does, which is called for each row of a load.
type watchedEngine struct {
	kv.Engine
	put func(key []byte) error
}

func (e *watchedEngine) Bulk(ctx context.Context) (kv.Writer, error) {
	w, err := e.Engine.Bulk(ctx)
	return &watchedWriter{w, e.put}, err
}

type watchedWriter struct {
	kv.Writer
	put func(key []byte) error
}

func (w *watchedWriter) Put(key, value []byte) error {
	if err := w.put(key); err != nil {
		return err
	}
	return w.Writer.Put(key, value)
}

// A load stopped at any row of its log leaves no rows, and the next one is whole.
func TestALoadStoppedInItsLog(t *testing.T) {
	t.Parallel()
	const topics = 300 // two blocks
	db := openUnsynced(t, t.TempDir())
	for stop := 0; ; stop++ {
		written := 0
		engine := db.rows.Engine
		db.rows.Engine = &watchedEngine{engine, func(key []byte) error {
			if table := keys.Table(key); table != keys.TableKey && table != keys.TableFirst {
				return nil
			}
			if written++; written > stop*61 {
				return errDead
			}
			return nil
		}}
		_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp}, mapOf(t, topics), nil)
		db.rows.Engine = engine
		if err == nil {
			require.Greater(t, stop, 4, "it was stopped some times")
			break
		}
		require.ErrorIs(t, err, errDead)
		require.Zero(t, rows(t, db, "ekt"))
		require.Empty(t, checked(t, db, false))
	}
	db = reopen(t, db)
	view(t, db, "m", func(v *View) { require.Len(t, entries(t, v), topics+1) })
	require.Equal(t, []int{topics + 1, topics + 1}, rowCounts(t, db, readCollection(t, db, "m").Number, "ek"))
	require.Equal(t, 2, len(rowsIn(t, db, keys.TableFirst)), "blocks")
	require.Empty(t, checked(t, db, false))
}
