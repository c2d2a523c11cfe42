package badger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
)

// A commit that outgrows a transaction of Badger is collected in a file, and written in parts. All parts have future
// times, so no reader sees them. Others read, and commit in other keyspaces, at earlier times. A row marks that there
// are parts. The last part removes that row, and has the version, and then the clock advances to its time. If the last
// part is missing, the commit is rolled back: after an error, or when the database is opened after a crash.

// partsKey is the key of the row with the time of the first part of an incomplete commit.
var partsKey = []byte(kv.Reserved + "P")

// openParts returns the time of the first part of an incomplete commit, or 0 if there is none.
func (r *reader) openParts() (at uint64, err error) {
	row, err := r.Get(partsKey)
	if row == nil || err != nil {
		return 0, err
	}
	if len(row) != 8 || binary.BigEndian.Uint64(row) == 0 {
		return 0, fmt.Errorf("%w: the row about parts of a commit cannot be read", kv.ErrDamaged)
	}
	return binary.BigEndian.Uint64(row), nil
}

// largeCommit is one that is being written in parts. There is one at a time.
type largeCommit struct {
	*transaction
	ended chan struct{} // is closed when it is whole, or taken back
}

// delays reports whether a commit has to wait for the large one, because one changes keyspaces of the other.
func (l *largeCommit) delays(t *transaction) bool {
	if l.narrow == nil || t.narrow == nil {
		return true
	}
	for space := range t.spaces {
		if l.spaces[space] {
			return true
		}
	}
	for _, space := range l.narrow {
		if t.spaces[space] {
			return true
		}
	}
	return false
}

// commitInParts commits a transaction that has outgrown one of Badger.
func (e *Engine) commitInParts(t *transaction) error {
	if err := t.spill(); err != nil {
		return err
	}
	select {
	case e.large <- struct{}{}:
		defer func() { <-e.large }()
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	if e.torn != 0 {
		if err := e.takeBack(); err != nil {
			return err
		}
	}
	l := &largeCommit{t, make(chan struct{})}
	if err := e.commits.begin(e, l); err != nil {
		return err
	}
	defer e.commits.end()
	return e.folder.place.Named(e.writeInParts(t))
}

func (c *commits) begin(e *Engine, l *largeCommit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := e.advance(l.transaction); err != nil {
		return err
	}
	c.large = l
	return nil
}

func (c *commits) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.large.ended)
	c.large = nil
}

// partsRow returns the row that marks parts from a time on.
func partsRow(from uint64) kv.Row {
	return kv.Row{Key: partsKey, Value: binary.BigEndian.AppendUint64(nil, from)}
}

// goAhead returns the next time that is ahead of others.
func (e *Engine) goAhead() uint64 {
	e.ahead++
	return e.ahead
}

func (e *Engine) writeInParts(t *transaction) error {
	from := e.clock.ahead()
	if err := e.write(e.clock.tick(), 0, partsRow(from)); err != nil {
		return err
	}
	e.torn, e.ahead = from, from
	err := t.spilled.copyTo(e.batchAt(e.goAhead), t.ctx, e)
	if err == nil {
		err = e.writeLastPart(t)
	}
	if err == nil {
		e.torn = 0
		e.inParts.Add(1)
		return nil
	}
	if failed := e.takeBack(); failed != nil { // the next one tries again, or the next opening
		e.log.Warn("what was written of a commit that failed is still there", "error", failed)
		if errors.Is(err, errLastPart) {
			e.stopWith(fmt.Errorf("a commit may be whole or not; that is decided when the store is opened again: %w",
				errors.Join(err, failed)))
		}
	}
	return err
}

var errLastPart = errors.New("the last part of a commit cannot be written")

// writeLastPart makes the commit visible to readers. Its version follows those of the commits made meanwhile.
func (e *Engine) writeLastPart(t *transaction) error {
	c, at := &e.commits, e.goAhead()
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.take(); e.writeGroup(g) != nil {
		c.fail(g)
	}
	if err := e.advance(t); err != nil {
		return err
	}
	if err := e.write(at, c.last.ID, versionRow(t.leads), kv.Row{Key: partsKey}); err != nil {
		c.last = kv.Version{}
		return fmt.Errorf("%w: %w", errLastPart, err)
	}
	e.clock.show(at)
	c.note(t)
	return nil
}

// takeBack rolls back parts whose last one is missing or has failed. It can be repeated after an interruption, because
// Badger keeps all rows that readers of the time before the parts would see.
func (e *Engine) takeBack() error {
	e.removing.Lock()
	defer e.removing.Unlock()
	e.commits.writing.Lock()
	defer e.commits.writing.Unlock()
	if err := e.beginToTakeBack(); err != nil {
		return err
	}
	before := e.reader(context.Background())
	defer before.Close()
	rows := e.batchAt(e.goAhead)
	defer rows.Cancel()
	if err := e.changedFrom(e.torn, func(key []byte) error { return rows.restore(before, key) }); err != nil {
		return err
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	version, err := before.Get(versionKey)
	if err != nil {
		return err
	}
	at := e.goAhead()
	if err := e.write(at, 0, kv.Row{Key: versionKey, Value: version}, kv.Row{Key: partsKey}); err != nil {
		return err
	}
	e.clock.show(at)
	e.torn = 0
	return nil
}

// beginToTakeBack writes the mark of the parts again, because the last one may exist although Badger reported an error.
func (e *Engine) beginToTakeBack() error { return e.write(e.goAhead(), 0, partsRow(e.torn)) }

// restore writes the row of a key as a reader sees it.
func (b *batch) restore(r *reader, key []byte) error {
	value, err := r.Get(key)
	if err != nil {
		return err
	}
	return apply([]kv.Row{{Key: key, Value: value}}, b)
}

// changedFrom calls f with the key of each row that was written or removed from some time on, but for those of the
// engine's own.
func (e *Engine) changedFrom(time uint64, f func(key []byte) error) (err error) {
	defer panicked(&err)
	e.users.RLock()
	defer e.users.RUnlock()
	all := e.badger.NewTransactionAt(math.MaxUint64, false)
	defer all.Discard()
	o := badgerdb.DefaultIteratorOptions
	o.PrefetchValues, o.AllVersions, o.SinceTs = false, true, time-1
	it := all.NewIterator(o)
	defer it.Close()
	var last []byte // its other versions follow
	for it.Rewind(); it.Valid(); it.Next() {
		if item := it.Item(); !bytes.Equal(item.Key(), last) && !kv.IsReserved(item.Key()) {
			last = item.KeyCopy(nil)
			if err := f(last); err != nil {
				return err
			}
		}
	}
	return nil
}

// spilled is a file without a name that has the changes of a commit, in the order in which they came.
type spilled struct {
	file   *os.File
	buffer *bufio.Writer
	meter  meter
}

func newSpilled(folder string) (*spilled, error) {
	f, err := durable.Temporary(folder)
	if err != nil {
		return nil, err
	}
	return &spilled{file: f, buffer: bufio.NewWriterSize(f, 64<<10)}, nil
}

func (s *spilled) close() { s.file.Close() }

// add adds changes: of those of one key the last counts.
func (s *spilled) add(changes []kv.Row, e *Engine) error {
	var head [2 * binary.MaxVarintLen64]byte
	for _, c := range changes {
		value := uint64(0) // a deleted row
		if c.Value != nil {
			value = uint64(len(c.Value)) + 1
		}
		lengths := binary.AppendUvarint(binary.AppendUvarint(head[:0], uint64(len(c.Key))), value)
		for _, piece := range [][]byte{lengths, c.Key, c.Value} {
			if _, err := s.buffer.Write(piece); err != nil {
				return err
			}
		}
		if err := s.meter.add(len(c.Key)+len(c.Value), e); err != nil {
			return err
		}
	}
	return nil
}

// copyTo writes all changes to a batch, and flushes that.
func (s *spilled) copyTo(to *batch, ctx context.Context, e *Engine) error {
	defer to.Cancel()
	if err := s.buffer.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(s.file, 64<<10)
	for {
		c, err := readChange(r)
		if err == io.EOF {
			return to.Flush()
		}
		if err = errors.Join(err, context.Cause(ctx)); err == nil {
			err = s.meter.add(len(c.Key)+len(c.Value), e)
		}
		if err == nil {
			err = apply([]kv.Row{c}, to)
		}
		if err != nil {
			return err
		}
	}
}

// readChange reads a change written by add. It returns io.EOF after the last change.
func readChange(r *bufio.Reader) (c kv.Row, err error) {
	key, err := binary.ReadUvarint(r)
	if err != nil {
		return c, err
	}
	value, err := binary.ReadUvarint(r)
	if err != nil {
		return c, noEnd(err)
	}
	if key > kv.MaxKey || value > kv.MaxValue+1 {
		return c, errors.New("the file with the changes of a commit is not as it was written")
	}
	c.Key = make([]byte, key)
	if _, err := io.ReadFull(r, c.Key); err != nil || value == 0 {
		return c, noEnd(err)
	}
	c.Value = make([]byte, value-1)
	_, err = io.ReadFull(r, c.Value)
	return c, noEnd(err)
}

func noEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
