package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/datafolder"
)

// Scratch returns the path of a folder for files that are of no use once the database is
// closed: what an interrupted process has left there is removed when it is opened. The
// folder need not be there.
func (db *DB) Scratch() string { return filepath.Join(db.dir, datafolder.Scratch) }

// Loading says how far a load has come. First all records are read and their rows
// sorted; then these are stored.
type Loading struct {
	Records      int // that are read
	Stored, Rows int // of so many rows so many are stored; 0 of 0 while records are read
}

// load writes records, each of which comes once, into a new generation, in no
// single transaction: nothing shows a generation until a commit switches to it,
// and one that nothing switched to is removed when the database is opened.
// progress, if not nil, is told from time to time. Memory does not grow with the
// number of records: what is much goes through a file in the data folder.
func (db *DB) load(ctx context.Context, id sourceID, records iter.Seq2[fragment.Record, error], progress func(Loading)) error {
	l := db.newLoading(id)
	if progress != nil {
		l.progress = progress
	}
	if err := errors.Join(l.load(ctx, records), l.sorter.Close()); err != nil {
		return err
	}
	return nil
}

func (db *DB) newLoading(id sourceID) *loading {
	file := fmt.Sprintf("%d-%d", id.number, id.generation)
	l := &loading{db: db, id: id, mentions: map[fragment.Ref]uint64{}, most: maxMentions, progress: func(Loading) {}}
	l.sorter = extsort.Sorter{Path: filepath.Join(db.Scratch(), file), Most: maxSortMemory}
	if db.sortMemory > 0 {
		l.sorter.Most = db.sortMemory
	}
	return l
}

// loading writes the rows of a new generation, in the order of their keys as far
// as possible. Badger first keeps what is written in tables as it comes, and then
// joins those of which the keys overlap: of rows in any order, it would write each
// several times, and need much memory for that.
type loading struct {
	db       *DB
	id       sourceID
	bulk     kv.Writer
	last     []byte                  // key of the topic row that was written last
	sorter   extsort.Sorter          // of the other rows
	mentions map[fragment.Ref]uint64 // that the sorter does not have yet
	most     int                     // so many of them at a time
	progress func(Loading)
	read     int // records
}

// maxSortMemory bounds the rows that are sorted in memory, in bytes.
const maxSortMemory = 32 << 20

// maxMentions bounds the counts of mentions that are held in memory. Types and
// themes are few, but there may be as many reifiers as statements.
const maxMentions = 50_000

func (l *loading) load(ctx context.Context, records iter.Seq2[fragment.Record, error]) error {
	var err error
	if l.bulk, err = l.db.rows.Engine.Bulk(ctx); err != nil {
		return err
	}
	defer l.bulk.Cancel()
	if err := l.sort(ctx, records); err != nil {
		return err
	}
	return l.store(ctx)
}

// sort reads all records.
func (l *loading) sort(ctx context.Context, records iter.Seq2[fragment.Record, error]) error {
	for ahead, err := range readAhead(ctx, records) {
		if err == nil {
			err = cmp.Or(context.Cause(ctx), l.db.CheckFreeSpace())
		}
		if err != nil {
			return err
		}
		for _, r := range ahead {
			if err := l.add(r); err != nil {
				return err
			}
			if l.read++; l.read%1000 == 0 {
				l.progress(Loading{Records: l.read})
			}
		}
	}
	return l.addMentions()
}

func (l *loading) add(r fragment.Record) error {
	if r.Topic != nil {
		if err := topicRows(l.id, r.Topic, l.put); err != nil {
			return err
		}
		r.Topic.Mentions(l.mention)
	}
	if r.Association != nil {
		if err := associationRows(l.id, r.Association, l.put); err != nil {
			return err
		}
		r.Association.Mentions(l.mention)
	}
	if len(l.mentions) < l.most {
		return nil
	}
	return l.addMentions()
}

// put writes the rows of topics that come in the order of their keys at once: in a
// snapshot they do. Their table is behind all others.
func (l *loading) put(key, value []byte) error {
	if key[0] == tableTopic && bytes.Compare(key, l.last) > 0 {
		l.last = key
		return l.bulk.Put(key, value)
	}
	return l.sorter.Add(key, value)
}

func (l *loading) mention(ref fragment.Ref) {
	if n, ok := l.mentions[ref]; ok {
		l.mentions[ref] = n + 1
	} else {
		l.mentions[fragment.Ref(strings.Clone(string(ref)))] = 1 // not with what stood around it
	}
}

// addMentions gives the mentions to the sorter, which may have some of the same
// topics already.
func (l *loading) addMentions() error {
	for ref, n := range l.mentions {
		if err := l.sorter.Add(l.id.locatorKey(tableMentions, ref), binary.BigEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
	}
	clear(l.mentions)
	return nil
}

// store writes the rows that are sorted.
func (l *loading) store(ctx context.Context) error {
	l.mentions = nil
	stored := 0
	for r, err := range l.combined() {
		if err != nil {
			return err
		}
		if stored++; stored%1000 == 0 {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			l.progress(Loading{Records: l.read, Stored: stored, Rows: l.sorter.Count()})
		}
		if err := l.bulk.Put(r.Key, r.Value); err != nil {
			return err
		}
	}
	return l.bulk.Commit()
}

// combined iterates over the rows that are sorted. Those with one key are one: mentions of the
// same topic are added up.
func (l *loading) combined() iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		var held row
		for sorted, err := range l.sorter.Sorted() {
			r := row{Key: sorted.Key, Value: sorted.Value}
			switch {
			case err != nil:
				yield(row{}, err)
				return
			case held.Key == nil:
			case !bytes.Equal(held.Key, r.Key):
				if !yield(held, nil) {
					return
				}
			case held.Key[0] == tableMentions:
				sum := binary.BigEndian.Uint64(held.Value) + binary.BigEndian.Uint64(r.Value)
				r.Value = binary.BigEndian.AppendUint64(nil, sum)
			}
			held = r
		}
		if held.Key != nil {
			yield(held, nil)
		}
	}
}

// aheadSize is about how many bytes of records are handed on at once.
const aheadSize = 64 << 10

// weight is about the size of a record in memory.
func weight(r fragment.Record) int {
	n := 100
	if r.Topic != nil {
		for i := range r.Topic.Names {
			n += 200 + len(r.Topic.Names[i].Value)
			for j := range r.Topic.Names[i].Variants {
				n += 200 + len(r.Topic.Names[i].Variants[j].Value)
			}
		}
		for i := range r.Topic.Occurrences {
			n += 200 + len(r.Topic.Occurrences[i].Value)
		}
	}
	if r.Association != nil {
		n += 200 * len(r.Association.Roles)
	}
	return n
}

// errLeft ends what reads ahead, as nobody wants the rest.
var errLeft = errors.New("the rest is not wanted")

// readAhead iterates over records on a goroutine of its own, some of them ahead:
// reading them costs about as much as writing them. When ctx ends, it
// ends with its cause.
func readAhead(ctx context.Context, records iter.Seq2[fragment.Record, error]) iter.Seq2[[]fragment.Record, error] {
	return func(yield func([]fragment.Record, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		ahead := make(chan []fragment.Record, 4)
		var failed error
		go func() {
			defer close(ahead)
			var list []fragment.Record
			size := 0
			send := func() {
				select {
				case ahead <- list:
				case <-ctx.Done():
					failed = context.Cause(ctx)
				}
				list, size = nil, 0
			}
			for r, err := range records {
				if failed = err; failed == nil {
					failed = context.Cause(ctx)
				}
				if failed == nil {
					list = append(list, r)
					if size += weight(r); size >= aheadSize {
						send()
					}
				}
				if failed != nil {
					return
				}
			}
			send()
		}()
		defer func() { // the reader of the records has ended when this has
			cancel(errLeft)
			for range ahead {
			}
		}()
		for list := range ahead {
			if !yield(list, nil) {
				return
			}
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}
