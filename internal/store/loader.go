package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/tmshare/tmshare/fragment"
)

// load writes records, each of which comes once, into a new generation, in no
// single transaction: nothing shows a generation until a commit switches to it,
// and one that nothing switched to is removed when the database is opened.
// progress, if not nil, is told from time to time how many records are written.
// Memory does not grow with the number of records.
func (db *DB) load(ctx context.Context, id sourceID, records iter.Seq2[fragment.Record, error], progress func(records int)) error {
	l := loading{db: db, id: id, mentions: map[fragment.Ref]uint64{}, most: maxMentions}
	return l.load(ctx, records, progress)
}

// loading writes the rows of a new generation.
type loading struct {
	db       *DB
	id       sourceID
	batch    *badger.WriteBatch
	mentions map[fragment.Ref]uint64 // not written yet
	most     int                     // so many of them at a time
	begun    bool                    // some mentions are written
}

// maxMentions bounds the counts of mentions that are held in memory. Types and
// themes are few, but there may be as many reifiers as statements.
const maxMentions = 50_000

// maxPending bounds the transactions of a batch that are waiting to be written,
// each of about 2 MB.
const maxPending = 4

func (l *loading) load(ctx context.Context, records iter.Seq2[fragment.Record, error], progress func(records int)) error {
	l.begin()
	defer func() { l.batch.Cancel() }()
	written := 0
	for ahead, err := range readAhead(ctx, records) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for _, r := range ahead {
			if err := l.write(r); err != nil {
				return fmt.Errorf("store: %w", err)
			}
			if written++; progress != nil && written%1000 == 0 {
				progress(written)
			}
		}
	}
	if err := l.writeMentions(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (l *loading) begin() {
	l.batch = l.db.badger.NewWriteBatch()
	l.batch.SetMaxPendingTxns(maxPending)
}

func (l *loading) write(r fragment.Record) error {
	if r.Topic != nil {
		if err := topicRows(l.id, r.Topic, l.batch.Set); err != nil {
			return err
		}
		r.Topic.Mentions(l.mention)
	}
	if r.Association != nil {
		if err := associationRows(l.id, r.Association, l.batch.Set); err != nil {
			return err
		}
		r.Association.Mentions(l.mention)
	}
	if len(l.mentions) < l.most {
		return nil
	}
	if err := l.writeMentions(); err != nil {
		return err
	}
	l.begun = true
	l.begin()
	return nil
}

func (l *loading) mention(ref fragment.Ref) {
	if n, ok := l.mentions[ref]; ok {
		l.mentions[ref] = n + 1
	} else {
		l.mentions[fragment.Ref(strings.Clone(string(ref)))] = 1 // not with what stood around it
	}
}

// writeMentions adds the mentions to those that are written, and ends the batch.
func (l *loading) writeMentions() error {
	t := &tx{base: l.db.badger.NewTransaction(false)} // since the end of the last batch nothing else has written them
	defer t.discard()
	for ref, n := range l.mentions {
		key := l.id.locatorKey(tableMentions, ref)
		if l.begun {
			before, err := t.stored(key)
			if err != nil {
				return err
			}
			if before != nil {
				n += binary.BigEndian.Uint64(before)
			}
		}
		if err := l.batch.Set(key, binary.BigEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
	}
	clear(l.mentions)
	return l.batch.Flush()
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
// reading them costs about as much as writing them. It ends with an error when
// ctx does.
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
					failed = ctx.Err()
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
