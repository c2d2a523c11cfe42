package badger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/tmshare/tmshare/internal/kv"
)

// A commit that outgrows a transaction of Badger is first written to the journal, piece
// by piece; one row then decides it; then it is rolled forward. Readers wait
// while it is, so that they see the state before or after. After a crash, a
// decided commit is rolled forward again, which does no harm, and an undecided
// one is forgotten.

// The journal is in rows of its own.
const (
	tableJournal  = kv.Reserved + "j" // number → piece of a commit that outgrew a transaction
	tableDecision = kv.Reserved + "J" // → number of pieces: the commit is decided
)

// journalPiece is about the size in bytes of one row of the journal. Several of them fit into a
// block of a table: what does not takes three times its size while Badger makes the table.
const journalPiece = 1500

// journal is what is written of a commit before it is decided. There is one at a time.
type journal struct {
	engine *Engine
	batch  *batch
	piece  []byte
	pieces uint64
	meter  meter
	left   bool // the journal has rows that are of no use
}

// beginJournal begins a journal, once no other transaction has it, and removes what a commit
// that failed has left.
func (e *Engine) beginJournal(ctx context.Context) (*journal, error) {
	select {
	case e.journal <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := e.clearJournal(); err != nil {
		<-e.journal
		return nil, err
	}
	return &journal{engine: e, batch: e.newBatch(), left: true}, nil
}

// add writes changes that come after those that are there: of changes of one key, the last
// counts.
func (j *journal) add(changes []kv.Row) error {
	for _, c := range changes {
		j.piece = appendChange(j.piece, c)
		if len(j.piece) >= journalPiece {
			if err := j.endPiece(); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendChange(piece []byte, c kv.Row) []byte {
	if piece == nil {
		piece = make([]byte, 0, journalPiece+journalPiece/8)
	}
	piece = binary.AppendUvarint(piece, uint64(len(c.Key)))
	piece = append(piece, c.Key...)
	if c.Value == nil {
		return binary.AppendUvarint(piece, 0)
	}
	piece = binary.AppendUvarint(piece, uint64(len(c.Value))+1)
	return append(piece, c.Value...)
}

func (j *journal) endPiece() error {
	key := binary.BigEndian.AppendUint64([]byte(tableJournal), j.pieces)
	j.pieces++
	err := j.meter.add(2*len(j.piece), j.engine) // it is written again when it is carried out
	if err == nil {
		err = j.batch.Set(key, j.piece)
	}
	j.piece = nil
	return err
}

// end returns when all pieces are on disk.
func (j *journal) end() (pieces uint64, err error) {
	if err := j.endPiece(); err != nil {
		return 0, err
	}
	return j.pieces, j.batch.Flush()
}

// drop leaves the journal to others, and removes what is of no use in it.
func (j *journal) drop() {
	j.batch.Cancel()
	if j.left {
		if err := j.engine.clearJournal(); err != nil { // the next one removes it, or who opens the database
			j.engine.log.Warn("a commit that was given up is left in the journal", "error", err)
		}
	}
	<-j.engine.journal
}

// carryOut decides the commit in the journal and rolls it forward. Where that
// fails, the state is between before and after, and nothing shows it: the
// database is of no use until it is opened again. The pieces are of no use then; they are removed when nobody waits any more.
func (j *journal) carryOut(pieces uint64) error {
	e := j.engine
	e.view.Lock()
	defer e.view.Unlock()
	err := e.update(func(txn *badgerdb.Txn) error {
		return txn.Set([]byte(tableDecision), binary.BigEndian.AppendUint64(nil, pieces))
	})
	if err != nil {
		err = fmt.Errorf("commit: %w", err)
		if failed := e.clearJournal(); failed != nil { // it may be decided after all
			j.left = false
			e.unusable = errors.Join(err, failed)
			return e.unusable
		}
		return err
	}
	j.left = false
	e.journaled.Add(1)
	if err := e.rollForward(pieces); err != nil {
		e.unusable = fmt.Errorf("a commit is decided, but could not be carried out; it will be when the store is opened again: %w", err)
		return e.unusable
	}
	j.left = true
	return nil
}

var errCorruptJournal = fmt.Errorf("%w: the journal of a commit cannot be read", kv.ErrDamaged)

// readPiece is the inverse of what appendChange makes.
func readPiece(piece []byte) ([]kv.Row, error) {
	var changes []kv.Row
	for len(piece) > 0 {
		var c kv.Row
		n, size := binary.Uvarint(piece)
		if size <= 0 || n > uint64(len(piece)-size) {
			return nil, errCorruptJournal
		}
		c.Key, piece = piece[size:size+int(n)], piece[size+int(n):]
		n, size = binary.Uvarint(piece)
		if size <= 0 || n > uint64(len(piece)-size)+1 {
			return nil, errCorruptJournal
		}
		piece = piece[size:]
		if n > 0 {
			c.Value, piece = piece[:n-1:n-1], piece[n-1:]
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// rollForward carries out the decided commit. The pieces stay.
func (e *Engine) rollForward(pieces uint64) error {
	r := e.reader(context.Background())
	defer r.Close()
	batch := e.newBatch()
	defer batch.Cancel()
	found := uint64(0)
	for row, err := range r.rows(rowRange{prefix: []byte(tableJournal), own: true}) {
		if err != nil {
			return err
		}
		found++
		changes, err := readPiece(append([]byte(nil), row.Value...)) // the batch keeps them
		if err != nil {
			return err
		}
		if err := apply(changes, batch); err != nil {
			return err
		}
	}
	if found != pieces {
		return fmt.Errorf("%w: %d pieces, not %d", errCorruptJournal, found, pieces)
	}
	if err := batch.Flush(); err != nil {
		return err
	}
	return e.undecide()
}

// undecide removes the decision: there is no commit to carry out.
func (e *Engine) undecide() error {
	return e.update(func(txn *badgerdb.Txn) error { return txn.Delete([]byte(tableDecision)) })
}

// clearJournal removes the decision first, then the pieces: a crash between the
// two leaves pieces that nothing decides.
func (e *Engine) clearJournal() error {
	if err := e.undecide(); err != nil {
		return err
	}
	return e.deletePrefix(context.Background(), []byte(tableJournal))
}

// decided returns how many pieces the journal has of a commit that is decided. No process
// that ended well leaves one.
func (e *Engine) decided() (pieces uint64, ok bool, err error) {
	r := e.reader(context.Background())
	defer r.Close()
	row, err := r.Get([]byte(tableDecision))
	if row == nil || err != nil {
		return 0, false, err
	}
	if len(row) != 8 {
		return 0, false, errCorruptJournal
	}
	return binary.BigEndian.Uint64(row), true, nil
}

// recoverJournal finishes a commit that a crash interrupted, or forgets it.
func (e *Engine) recoverJournal() error {
	pieces, decided, err := e.decided()
	if err != nil {
		return err
	}
	if decided {
		e.log.Info("finishing a commit that was interrupted")
		if err := e.rollForward(pieces); err != nil {
			return err
		}
	}
	return e.deletePrefix(context.Background(), []byte(tableJournal))
}
