package files

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// Rows is a [Store] in the rows of an engine: a row for each file, and rows with its chunks. The chunks are written
// first, under their own identifier. So a file becomes visible as a whole, and a removed or replaced one stays readable
// until its chunks are removed an hour later. A row for each file being written, recently written, or removed has the
// time when its chunks are removed unless it is visible. Of several files written under one name at the same time, one
// is visible.
type Rows struct {
	Engine kv.Engine
	Now    func() time.Time

	reader kv.Reader // nil: the present state is read
}

// In returns a store that reads with a reader, where s has its files in the engine of the reader. So a caller that has
// a reader already needs no other.
func In(s Store, reader kv.Reader) Store {
	if rows, ok := s.(Rows); ok {
		rows.reader = reader
		return rows
	}
	return s
}

// chunkSize is the length of a chunk in bytes, except the last one of a file. It was chosen by measuring
// (docs/decisions/0021-files-of-several-nodes.md); only benchmarks set it.
var chunkSize int64 = 256 << 10

// lingering is the time for which the chunks of a removed file can still be read.
const lingering = time.Hour

// row is the value of the row of a file.
type row struct {
	ID    uuid.UUID // of its chunks; it contains the time of creation (RFC 9562 §5.7, UUID Version 7)
	Size  int64     // in bytes
	Chunk int64     // size of a chunk in bytes
}

func (r *row) made() time.Time { return madeAt(r.ID) }

func madeAt(id uuid.UUID) time.Time { return time.Unix(id.Time().UnixTime()) }

func nameKey(name string) []byte { return keys.Name(keys.TableFile, name) }

func chunkKey(id uuid.UUID, n int64) []byte {
	return binary.BigEndian.AppendUint32(append(keys.Once(keys.TableChunk), id[:]...), uint32(n))
}

// goingKey is the key of the row with the time when chunks are to be removed.
func goingKey(due time.Time, id uuid.UUID) []byte {
	return append(binary.BigEndian.AppendUint64(keys.Once(keys.TableGoingFile), uint64(due.UnixMilli())), id[:]...)
}

// unfinishedKey is the goingKey of a file that is begun now. At its time, a file that is visible keeps its chunks.
func (r *row) unfinishedKey() []byte { return goingKey(r.made().Add(Unfinished), r.ID) }

// removedKey is the goingKey of a file that is removed now.
func (s Rows) removedKey(id uuid.UUID) []byte { return goingKey(s.Now().Add(lingering), id) }

// Create implements [Store].
func (s Rows) Create(ctx context.Context, name string) (Writer, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	id, err := newID(s.Now())
	if err != nil {
		return nil, err
	}
	w := &rowsWriter{store: s, ctx: ctx, name: name, row: row{ID: id, Chunk: chunkSize}}
	if err := s.write(ctx, func(bulk kv.Writer) error { return bulk.Put(w.unfinishedKey(), nil) }); err != nil {
		return nil, err
	}
	if w.bulk, err = s.Engine.Bulk(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// newID returns an identifier that contains a time.
func newID(at time.Time) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	binary.BigEndian.PutUint16(id[:], uint16(at.UnixMilli()>>32))
	binary.BigEndian.PutUint32(id[2:], uint32(at.UnixMilli()))
	return id, err
}

// rowsWriter implements [Writer].
type rowsWriter struct {
	row
	store Rows
	ctx   context.Context
	name  string
	bulk  kv.Writer
	chunk []byte // the next one
	err   error
	done  bool
}

// Write implements [io.Writer].
func (w *rowsWriter) Write(p []byte) (written int, err error) {
	if w.err == nil {
		w.err = context.Cause(w.ctx)
	}
	for len(p) > 0 && w.err == nil {
		if w.chunk == nil {
			w.chunk = make([]byte, 0, w.Chunk)
		}
		n := min(len(p), cap(w.chunk)-len(w.chunk))
		w.chunk = append(w.chunk, p[:n]...)
		p, written = p[n:], written+n
		if len(w.chunk) == cap(w.chunk) {
			w.err = w.put()
		}
	}
	return written, w.err
}

// put writes the chunk. The engine keeps it until it is committed.
func (w *rowsWriter) put() error {
	err := w.bulk.Put(chunkKey(w.ID, w.Size/w.Chunk), w.chunk)
	w.Size += int64(len(w.chunk))
	w.chunk = nil
	return err
}

// Commit implements [Writer].
func (w *rowsWriter) Commit() error {
	err := w.err
	if err == nil && len(w.chunk) > 0 {
		err = w.put()
	}
	if age := w.store.Now().Sub(w.made()); err == nil && age > Unfinished/2 {
		err = fmt.Errorf("files: %s took %s to be written, and may have been taken for given up; try again", w.name,
			age.Round(time.Minute))
	}
	if err == nil {
		err = w.bulk.Commit()
	}
	if err != nil {
		w.Cancel()
		return err
	}
	w.done = true // it may show even if showing it fails: then the sweep finds out
	return w.show()
}

// show writes the row of the file. The chunks of the replaced file are removed later.
func (w *rowsWriter) show() error {
	before, err := w.store.find(w.ctx, w.name)
	if err != nil {
		return err
	}
	value, err := json.Marshal(&w.row)
	if err != nil {
		return err
	}
	return w.store.write(w.ctx, func(bulk kv.Writer) error {
		if before != nil {
			if err := bulk.Put(w.store.removedKey(before.ID), nil); err != nil {
				return err
			}
		}
		return bulk.Put(nameKey(w.name), value)
	})
}

// Cancel implements [Writer]. What it cannot remove is removed by [Store.Sweep].
func (w *rowsWriter) Cancel() {
	if w.done {
		return
	}
	w.done = true
	w.bulk.Cancel()
	_ = w.store.drop(context.WithoutCancel(w.ctx), w.ID, w.unfinishedKey())
}

// drop removes the chunks with an identifier, and then the rows that have them removed.
func (s Rows) drop(ctx context.Context, id uuid.UUID, going []byte) error {
	if err := s.Engine.DeletePrefix(ctx, append(keys.Once(keys.TableChunk), id[:]...)); err != nil {
		return err
	}
	return s.write(ctx, func(bulk kv.Writer) error {
		return errors.Join(bulk.Delete((&row{ID: id}).unfinishedKey()), bulk.Delete(going))
	})
}

// write writes a few rows without a new version, because commits elsewhere list the files.
func (s Rows) write(ctx context.Context, f func(kv.Writer) error) error {
	bulk, err := s.Engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer bulk.Cancel()
	if err := f(bulk); err != nil {
		return err
	}
	return bulk.Commit()
}

// view calls f with the present state, or with that of the reader of s.
func (s Rows) view(ctx context.Context, f func(kv.Reader) error) error {
	if s.reader != nil {
		return f(s.reader)
	}
	reader, err := s.Engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	return f(reader)
}

// find returns the row of a file; nil if there is none.
func (s Rows) find(ctx context.Context, name string) (found *row, err error) {
	err = s.view(ctx, func(r kv.Reader) error {
		value, err := r.Get(nameKey(name))
		if err != nil || value == nil {
			return err
		}
		found, err = readRow(name, value)
		return err
	})
	return found, err
}

func readRow(name string, value []byte) (*row, error) {
	r := &row{}
	if err := json.Unmarshal(value, r); err != nil || r.Chunk <= 0 || r.Size < 0 {
		return nil, errors.Join(fmt.Errorf("%w: what is known of the file %s cannot be read", kv.ErrDamaged, name), err)
	}
	return r, nil
}

// Open implements [Store].
func (s Rows) Open(ctx context.Context, name string) (File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	found, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, missing(name)
	}
	f := &rowsFile{row: *found, store: s, ctx: ctx, name: name}
	f.SectionReader = io.NewSectionReader(f, 0, f.row.Size)
	return f, nil
}

// List implements [Store].
func (s Rows) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := checkPrefix(prefix)
		if err == nil {
			err = s.view(ctx, func(r kv.Reader) error {
				for each, err := range r.Range(nameKey(prefix), nil, false) {
					if err != nil {
						return err
					}
					name := string(keys.Rest(each.Key))
					found, err := readRow(name, each.Value)
					if err != nil {
						return err
					}
					if !yield(Info{name, found.Size, found.made()}, nil) {
						return nil
					}
				}
				return nil
			})
		}
		if err != nil {
			yield(Info{}, err)
		}
	}
}

// Remove implements [Store].
func (s Rows) Remove(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	found, err := s.find(ctx, name)
	if err != nil || found == nil {
		return err
	}
	return s.write(ctx, func(bulk kv.Writer) error {
		return errors.Join(bulk.Delete(nameKey(name)), bulk.Put(s.removedKey(found.ID), nil))
	})
}

// Sweep implements [Store].
func (s Rows) Sweep(ctx context.Context, before time.Time) error {
	due := before.Add(Unfinished) // for writers that began before that, and files removed an hour before now
	going, shown := map[string]uuid.UUID{}, map[uuid.UUID]bool{}
	err := s.view(ctx, func(r kv.Reader) error {
		for each, err := range r.Range(keys.Once(keys.TableGoingFile), nil, false) {
			if err != nil {
				return err
			}
			if !time.UnixMilli(int64(keys.NumberIn(each.Key))).Before(due) {
				break
			}
			going[string(each.Key)] = uuid.UUID(keys.Rest(each.Key)[8:])
		}
		if len(going) == 0 {
			return nil
		}
		for each, err := range r.Range(keys.Once(keys.TableFile), nil, false) {
			if err != nil {
				return err
			}
			found, err := readRow(string(keys.Rest(each.Key)), each.Value)
			if err != nil {
				return err
			}
			shown[found.ID] = true
		}
		return nil
	})
	for key, id := range going {
		switch {
		case err != nil:
		case shown[id]:
			err = s.Engine.DeletePrefix(ctx, []byte(key))
		default:
			err = s.drop(ctx, id, []byte(key))
		}
	}
	return err
}
