package mapfile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// Target says where to write a map and how.
type Target struct {
	Path   string    // "-" is Stdout; what ends in .gz is gzipped
	Stdout io.Writer // default os.Stdout
	Format Format

	NameTypes  xtm.NameTypes // applies to XTM 1.0
	FailOnLoss bool          // write nothing that lacks something: a *LossError instead
}

// LossError says that a map was not written because the format cannot carry all
// of it.
type LossError struct{ Losses xtm.Losses }

func (e *LossError) Error() string {
	return fmt.Sprintf("mapfile: the format cannot carry all of the map: %d losses", e.Losses.Total())
}

// Write writes d and returns what the format could not carry. A file appears,
// or takes the place of the old one, when it is complete; an error, or the end
// of ctx, leaves everything as it was. What is no regular file is written to as
// it is.
func (t Target) Write(ctx context.Context, d *Document) (xtm.Losses, error) {
	if t.Path == "-" {
		w := t.Stdout
		if w == nil {
			w = os.Stdout
		}
		return t.direct(ctx, w, d, "standard output")
	}
	info, err := os.Stat(t.Path)
	switch {
	case err != nil: // there is no such file yet, or else creating it will say what is wrong
		return t.replace(ctx, t.Path, 0, d)
	case info.IsDir():
		return xtm.Losses{}, fmt.Errorf("mapfile: %s is a folder, not a file", t.Path)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(t.Path, os.O_WRONLY, 0)
		if err != nil {
			return xtm.Losses{}, wrap(t.Path, err)
		}
		losses, err := t.direct(ctx, f, d, t.Path)
		return losses, errors.Join(err, f.Close())
	}
	path, err := filepath.EvalSymlinks(t.Path) // a symbolic link stays one
	if err != nil {
		return xtm.Losses{}, wrap(t.Path, err)
	}
	return t.replace(ctx, path, info.Mode().Perm(), d)
}

// replace writes a file under a temporary name and renames it when it is
// complete. The mode is that of the old file, 0 where there is none.
func (t Target) replace(ctx context.Context, path string, mode os.FileMode, d *Document) (losses xtm.Losses, err error) {
	f, err := os.OpenFile(path+"."+rand.Text()+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return losses, wrap(t.Path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	defer f.Close()
	if losses, err = t.encode(ctx, f, d); err != nil {
		return losses, wrap(t.Path, err)
	}
	if t.FailOnLoss && losses.Total() > 0 {
		return losses, &LossError{losses}
	}
	if mode != 0 {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return losses, wrap(t.Path, err)
	}
	return losses, wrap(t.Path, os.Rename(f.Name(), path))
}

// direct writes to what cannot be taken back. So losses are counted before.
func (t Target) direct(ctx context.Context, w io.Writer, d *Document, name string) (xtm.Losses, error) {
	if t.FailOnLoss {
		losses, err := t.encode(ctx, io.Discard, d)
		if err != nil {
			return losses, wrap(name, err)
		}
		if losses.Total() > 0 {
			return losses, &LossError{losses}
		}
	}
	losses, err := t.encode(ctx, w, d)
	return losses, wrap(name, err)
}

func (t Target) encode(ctx context.Context, w io.Writer, d *Document) (losses xtm.Losses, err error) {
	w = &interruptible{ctx, w}
	if strings.HasSuffix(t.Path, ".gz") {
		z := gzip.NewWriter(w)
		defer func() { err = errors.Join(err, z.Close()) }()
		w = z
	}
	if v := t.Format.version(); v != "" {
		return xtm.Write(w, d.Map, xtm.WriteOptions{Version: v, Base: d.Base, NameTypes: t.NameTypes})
	}
	return losses, cxtm.Write(w, d.Map, cxtm.Options{Base: d.Base})
}

// wrap names the file as the user does.
func wrap(name string, err error) error {
	var pathErr *os.PathError
	var linkErr *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pathErr):
		err = pathErr.Err
	case errors.As(err, &linkErr):
		err = linkErr.Err
	}
	return fmt.Errorf("mapfile: writing %s: %w", name, err)
}

// interruptible writes until its context ends.
type interruptible struct {
	ctx context.Context
	w   io.Writer
}

func (i *interruptible) Write(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.w.Write(p)
}
