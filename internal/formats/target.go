package formats

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/xtm"
)

// gzipEnding is that of the names of gzipped files (RFC 1952).
const gzipEnding = ".gz"

// Target is the destination of a map.
type Target struct {
	Path       string // "-" is Stdout; .gz means gzip
	Stdout     io.Writer
	FailOnLoss bool // return a *LossError instead of writing with losses
}

// Encoder writes a map, and returns the losses of its format. It may be called twice.
type Encoder func(io.Writer) (xtm.Losses, error)

// Encoder returns an Encoder of the document in a format. The base is that of the document, unless o has one.
func (d *Document) Encoder(f *Format, o WriteOptions) Encoder {
	if d.Copy != nil {
		return func(w io.Writer) (xtm.Losses, error) { return xtm.Losses{}, d.Copy.Write(w) }
	}
	o.Base = cmp.Or(o.Base, d.Base)
	return func(w io.Writer) (xtm.Losses, error) { return f.Write(w, d.Map, o) }
}

// LossError is the error for a map that was not written because of losses.
type LossError struct{ Losses xtm.Losses }

func (e *LossError) Error() string {
	return fmt.Sprintf("the format cannot carry all of the map, %d things would be lost: choose another format",
		e.Losses.Total())
}

// Write writes a map and returns the losses. A file appears, or replaces the old one, when it is complete; after an
// error, or the end of ctx, nothing has changed. It writes directly to a file that is not regular.
func (t Target) Write(ctx context.Context, encode Encoder) (xtm.Losses, error) {
	if t.Path == "-" {
		return t.direct(ctx, t.Stdout, encode, "standard output")
	}
	info, err := os.Stat(t.Path)
	switch {
	case err != nil: // there is no such file, or creating it will fail with the reason
		return t.replace(ctx, t.Path, 0, encode)
	case info.IsDir():
		return xtm.Losses{}, fmt.Errorf("%s is a folder: name a file in it", t.Path)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(t.Path, os.O_WRONLY, 0)
		if err != nil {
			return xtm.Losses{}, wrap(t.Path, err)
		}
		losses, err := t.direct(ctx, f, encode, t.Path)
		return losses, errors.Join(err, f.Close())
	}
	path, err := filepath.EvalSymlinks(t.Path) // a symbolic link stays one
	if err != nil {
		return xtm.Losses{}, wrap(t.Path, err)
	}
	return t.replace(ctx, path, info.Mode().Perm(), encode)
}

// replace writes a file under a temporary name and renames it when it is complete. The mode is that of the old file, 0
// if there is none.
func (t Target) replace(ctx context.Context, path string, mode os.FileMode,
	encode Encoder) (losses xtm.Losses, err error) {
	removeLeftovers(path)
	f, err := os.OpenFile(path+"."+rand.Text()+temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return losses, wrap(t.Path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	defer f.Close()
	if losses, err = t.encode(ctx, f, encode); err != nil {
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

// temporary ends the name under which a file is written. What is a day old is of a process that was killed.
const temporary = ".tmp"

// removeLeftovers removes the temporary files beside a file that killed processes have left.
func removeLeftovers(path string) {
	folder, name := filepath.Split(path)
	entries, _ := os.ReadDir(filepath.Clean(folder))
	for _, e := range entries {
		id, begins := strings.CutPrefix(e.Name(), name+".")
		id, ends := strings.CutSuffix(id, temporary)
		if !begins || !ends || len(id) != len(rand.Text()) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}

// direct writes to a destination that cannot be undone. So it counts losses first.
func (t Target) direct(ctx context.Context, w io.Writer, encode Encoder, name string) (xtm.Losses, error) {
	if t.FailOnLoss {
		losses, err := t.encode(ctx, io.Discard, encode)
		if err != nil {
			return losses, wrap(name, err)
		}
		if losses.Total() > 0 {
			return losses, &LossError{losses}
		}
	}
	losses, err := t.encode(ctx, w, encode)
	return losses, wrap(name, err)
}

func (t Target) encode(ctx context.Context, w io.Writer, encode Encoder) (losses xtm.Losses, err error) {
	w = durable.ContextWriter{Context: ctx, Writer: w}
	if strings.HasSuffix(t.Path, gzipEnding) {
		z := gzip.NewWriter(w)
		defer func() { err = errors.Join(err, z.Close()) }()
		w = z
	}
	return encode(w)
}

// wrap names the file as the user does, in errors of writing it.
func wrap(name string, err error) error {
	cause := causeOf(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
	case !errors.As(err, new(*os.PathError)) && !errors.As(err, new(*os.LinkError)): // it concerns the content
		return err
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("writing %s: %w; make its folder first", name, cause)
	}
	return fmt.Errorf("writing %s: %w", name, cause)
}

// causeOf returns the system's error about a file, without the temporary names.
func causeOf(err error) error {
	var pathErr *os.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &linkErr):
		return linkErr.Err
	}
	return err
}
