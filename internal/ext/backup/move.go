package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/moving"
)

// Moved is the result of Move.
type Moved struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Rows  int64  `json:"rows"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"` // of rows and files
}

// Move copies a store to a target: the copy belongs to the same node, and its collections keep their epochs, so
// subscribers notice nothing. It compares all rows at the end. Then it marks the first store as moved, which only opens
// with [store.Options.EvenMoved].
//
// If anything is written to the first store meanwhile, Move returns an error. A Move that is interrupted leaves the
// first store unchanged or marked, and a target that does not open; the next Move starts again. A moved store whose
// target is in use must not be moved again, because two stores would have the same history.
func Move(ctx context.Context, from *store.DB, name string, to Target, progress func(Progress)) (_ *Moved, err error) {
	progress(Progress{"comparing checksums", 0, 0})
	if err := from.CompareChecksums(ctx); err != nil { // the copy must be of an undamaged store
		return nil, err
	}
	progress(Progress{"looking for other programs", 0, 0})
	if living, err := from.Living(ctx); err != nil {
		return nil, err
	} else if living {
		return nil, fmt.Errorf("another program uses %s: stop all programs that use it, and move it then", name)
	}
	db, err := to.open(ctx, from.Node())
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := db.Close(); err == nil {
			err = closed
		}
	}()
	m := &mover{ctx: ctx, from: from, to: db, progress: progress, Moved: Moved{From: name, To: to.Name}}
	if err := m.all(); err != nil {
		return nil, fmt.Errorf("%w; %s", err, to.remedy("move"))
	}
	return &m.Moved, nil
}

// mover is a running move.
type mover struct {
	Moved
	ctx      context.Context
	from, to *store.DB
	progress func(Progress)
}

func (m *mover) all() error {
	var since store.Version
	err := m.from.Dump(m.ctx, func(d *store.Dump) error {
		since = d.Version()
		sum := moving.NewSum()
		if err := m.to.Load(m.ctx, m.rows(d, sum)); err != nil {
			return err
		}
		m.Rows = sum.Rows
		if err := m.files(d); err != nil {
			return err
		}
		return compare(m.ctx, m.to, sum, m.progress)
	})
	if err != nil {
		return err
	}
	err = m.from.Leave(m.ctx, since, moving.Moved{To: m.To, At: time.Now()})
	if errors.Is(err, kv.ErrConflict) {
		return fmt.Errorf("somebody has written to %s meanwhile: stop all programs that use it, and move it again", m.From)
	}
	if err != nil {
		return err
	}
	return m.to.Complete(m.ctx)
}

// rows returns the rows of a state, and adds them to their digest.
func (m *mover) rows(d *store.Dump, sum *moving.Sum) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for r, err := range d.Rows() {
			if err == nil {
				sum.Add(r)
				m.Bytes += int64(len(r.Key) + len(r.Value))
				if sum.Rows%1000 == 0 {
					m.progress(Progress{"moving rows", m.Bytes, 0})
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// files copies the files of snapshots of a state, and those of ResourceSync. Files that are lost are lost at the
// target, too: checks there report them, and a server makes them again.
func (m *mover) files(d *store.Dump) error {
	names, err := d.SnapshotFiles()
	if err != nil {
		return err
	}
	made, err := files.All(m.ctx, m.from.Files(), files.Resources+"/")
	if err != nil {
		return err
	}
	for _, f := range made {
		names = append(names, f.Name)
	}
	for _, name := range names {
		f, err := d.OpenFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = errors.Join(copyFile(m.ctx, f, m.to.Files(), name), f.Close())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.Files++
		m.Bytes += f.Size()
		m.progress(Progress{"moving files", m.Bytes, 0})
	}
	return nil
}

func copyFile(ctx context.Context, from files.File, to files.Store, name string) error {
	w, err := to.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Cancel()
	if _, err := io.Copy(w, from); err != nil {
		return err
	}
	return w.Commit()
}

// compare reads all rows of a store, and returns an error unless they have a digest.
func compare(ctx context.Context, db *store.DB, want *moving.Sum, progress func(Progress)) error {
	got := moving.NewSum()
	err := db.Dump(ctx, func(d *store.Dump) error {
		done := int64(0)
		for r, err := range d.Rows() {
			if err != nil {
				return err
			}
			got.Add(r)
			done += int64(len(r.Key) + len(r.Value))
			if got.Rows%1000 == 0 {
				progress(Progress{"comparing", done, 0})
			}
		}
		return nil
	})
	if err == nil && !got.Equal(want) {
		err = fmt.Errorf("the new store has other rows than were written (%d, not %d): somebody else writes to it",
			got.Rows, want.Rows)
	}
	return err
}
