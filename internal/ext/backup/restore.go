package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/moving"
)

// Restore makes a store of the backup at path: a file, the newest backup of a folder, or the backup of a manifest in a
// folder. It checks the whole backup first. The store belongs to a new node, and each collection begins a new epoch. A
// Restore that is interrupted leaves a place that does not open.
func Restore(ctx context.Context, path string, to Target, progress func(Progress)) (_ *Result, err error) {
	s, m, err := open(path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if to.Dir != "" {
		if err := errors.Join(notAmongBackups(s, to.Dir), mustBeEmpty(to.Dir)); err != nil {
			return nil, err
		}
	}
	if err := verify(ctx, s, m, progress); err != nil {
		return nil, err
	}
	db, err := to.open(ctx, uuid.Nil)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, s, m, db, progress); err != nil {
		return nil, fmt.Errorf("%w; %s", err, to.remedy("restore"))
	}
	return &Result{Path: to.Name, Taken: m.Taken, Rows: m.Rows, Files: len(m.Files), Bytes: m.size()}, nil
}

// notAmongBackups refuses a data folder in the folder of the backup: no other backup could be
// written there any more.
func notAmongBackups(s source, dir string) error {
	backups, ok := s.(folderSource)
	if !ok {
		return nil
	}
	folder, err := os.Stat(backups.path)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	for above := dir; ; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err == nil && os.SameFile(info, folder) {
			return fmt.Errorf("%s is in the folder of the backups: restore into a folder outside of it with --data", dir)
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		if err := datafolder.Unfinished(dir); err != nil {
			return err
		}
		return fmt.Errorf(
			"%s is not empty: restore or move into a new folder, and put that in its place when you are content with it", dir)
	}
	return nil
}

// fill fills a store, completes and closes it.
func fill(ctx context.Context, s source, m *Manifest, db *store.DB, progress func(Progress)) (err error) {
	defer func() { err = errors.Join(err, db.Close()) }()
	w := &filling{ctx, s, progress, 0, m.size()}
	sum := moving.NewSum()
	if err := db.Load(ctx, w.rows(m.Chunks, sum)); err != nil {
		return err
	}
	if sum.Rows != m.Rows {
		return fmt.Errorf("%w: it has %d rows, not %d", ErrDamaged, sum.Rows, m.Rows)
	}
	if err := compare(ctx, db, sum, progress); err != nil {
		return err
	}
	epochs, err := db.BeginEpochs(ctx)
	if err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := w.file(db.Files(), renamed(f.Path, epochs), f); err != nil {
			return err
		}
	}
	return db.Complete(ctx)
}

// renamed returns the name of a file of snapshots in the epoch that has begun.
func renamed(name string, epochs map[uuid.UUID]uuid.UUID) string {
	folder, file := path.Split(name)
	if before, err := uuid.Parse(path.Base(folder)); err == nil {
		if now, ok := epochs[before]; ok {
			return path.Dir(path.Clean(folder)) + "/" + now.String() + "/" + file
		}
	}
	return name
}

// filling is a data folder that is being made.
type filling struct {
	ctx      context.Context
	source   source
	progress func(Progress)
	done     int64
	total    int64
}

func (w *filling) read(c chunk) ([]byte, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	packed, err := w.source.read(c)
	if err != nil {
		return nil, err
	}
	w.done += c.Size
	w.progress(Progress{"restoring", w.done, w.total})
	return unpack(packed)
}

func (w *filling) file(to files.Store, name string, f file) error {
	out, err := to.Create(w.ctx, name)
	if err != nil {
		return err
	}
	defer out.Cancel()
	for _, c := range f.Chunks {
		plain, err := w.read(c)
		if err != nil {
			return err
		}
		if _, err := out.Write(plain); err != nil {
			return err
		}
	}
	return out.Commit()
}

func (w *filling) rows(chunks []chunk, sum *moving.Sum) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for _, c := range chunks {
			plain, err := w.read(c)
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			all := rowsOf(plain, func(r store.Row, err error) bool {
				if err == nil {
					sum.Add(r)
				}
				return yield(r, err)
			})
			if !all {
				return
			}
		}
	}
}
