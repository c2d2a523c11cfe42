package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/tmshare/tmshare/internal/store"
)

// Progress is the progress of work, in bytes. Total is 0 if it is not known.
type Progress struct {
	Phase       string
	Done, Total int64
}

// Result describes a backup that was made or restored.
type Result struct {
	Path    string    `json:"path"`
	Taken   time.Time `json:"taken"` // the moment whose state it holds
	Rows    int64     `json:"rows"`
	Files   int       `json:"files"`             // of snapshots
	Bytes   int64     `json:"bytes"`             // that it takes
	Written int64     `json:"written"`           // of these, what had to be written
	Missing []string  `json:"missing,omitempty"` // files of snapshots that were lost before
}

// Make writes a backup of db to path: to a folder, if path is one or ends in a slash, else to a new file. It holds one
// state of db, and does not block reading and writing. The error is store.ErrDamaged if rows of db are damaged. A Make
// that is interrupted leaves nothing that looks like a backup.
func Make(ctx context.Context, db *store.DB, path string, progress func(Progress)) (*Result, error) {
	progress(Progress{"comparing checksums", 0, 0})
	if err := db.CompareChecksums(ctx); err != nil { // a backup must be of an undamaged store
		return nil, err
	}
	t, err := newTarget(path)
	if err != nil {
		return nil, err
	}
	defer t.abandon()
	w := &writing{ctx: ctx, progress: progress, files: map[string]file{}}
	w.chunker, err = newChunker(func(name string, packed []byte) error {
		written, err := t.put(name, packed)
		if written {
			w.written += int64(len(packed))
		}
		w.done += int64(len(packed))
		return errors.Join(err, ctx.Err())
	})
	if err != nil {
		return nil, err
	}
	m, err := w.all(db)
	if err != nil {
		return nil, err
	}
	content, name, err := m.encode()
	if err != nil {
		return nil, err
	}
	at, err := t.finish(name, content)
	if err != nil {
		return nil, err
	}
	return &Result{at, m.Taken, m.Rows, len(m.Files), m.size(), w.written, w.missing}, nil
}

// writing is a backup that is being made.
type writing struct {
	ctx      context.Context
	chunker  *chunker
	progress func(Progress)

	files         map[string]file // by path
	missing       []string
	done, written int64
}

// all writes the files and the rows. It writes most files first, because a snapshot that is superseded while rows are
// written would be gone. Files added since follow, in the state of the rows.
func (w *writing) all(db *store.DB) (m *Manifest, err error) {
	for range 5 { // a snapshot that is superseded meanwhile is not listed the next time
		w.missing = nil
		if err := db.Dump(w.ctx, w.snapshots); err != nil {
			return nil, err
		}
		if m, err = w.state(db); !errors.Is(err, errSuperseded) {
			return m, err
		}
	}
	return m, err
}

var errSuperseded = errors.New("snapshots come and go faster than they can be written to the backup: try again")

// state writes the rows of the present state. The error is errSuperseded if a file of the state that was not lost
// before is gone.
func (w *writing) state(db *store.DB) (m *Manifest, err error) {
	m = &Manifest{Format: Format, Node: db.Node()}
	err = db.Dump(w.ctx, func(d *store.Dump) error {
		m.Taken = time.Now().UTC()
		lost := w.missing
		w.missing = nil
		if err := w.snapshots(d); err != nil {
			return err
		}
		for _, path := range w.missing {
			if !slices.Contains(lost, path) {
				return errSuperseded
			}
		}
		listed, err := d.SnapshotFiles()
		if err != nil {
			return err
		}
		for _, path := range listed {
			if f, ok := w.files[path]; ok {
				m.Files = append(m.Files, f)
			}
		}
		for r, err := range d.Rows() {
			if err != nil {
				return err
			}
			if err := w.chunker.row(r); err != nil {
				return err
			}
			if m.Rows++; m.Rows%1000 == 0 {
				w.progress(Progress{"writing rows", w.done, 0})
				if err := w.ctx.Err(); err != nil {
					return err
				}
			}
		}
		m.Chunks, err = w.chunker.take()
		return err
	})
	return m, err
}

// snapshots writes the files of snapshots that were not written yet.
func (w *writing) snapshots(d *store.Dump) error {
	listed, err := d.SnapshotFiles()
	for _, path := range listed {
		if _, ok := w.files[path]; ok {
			continue
		}
		f, err := d.OpenFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			w.missing = append(w.missing, path)
			continue
		}
		if err != nil {
			return err
		}
		size, err := w.chunker.file(f)
		chunks, flushed := w.chunker.take()
		if err := errors.Join(err, flushed, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		w.files[path] = file{path, size, chunks}
		w.progress(Progress{"writing snapshots", w.done, 0})
	}
	return err
}
