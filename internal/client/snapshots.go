package client

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/stream"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/xtm"
)

// snapshotDocument is the document of a snapshot.
type snapshotDocument struct {
	Open    func() (io.ReadCloser, error) // may be called twice
	Options xtm.Options
	Format  *formats.Format // nil: it is XTM
}

// readSnapshot calls use with the records of a snapshot, and again from the beginning if it cannot be read as a stream,
// but only as a whole. If that fails, too, the error is a [*wholeError].
func readSnapshot(ctx context.Context, d snapshotDocument, use func(iter.Seq2[fragment.Record, error]) error,
	noStream func(error)) error {
	if d.Format != nil {
		r, err := d.Open()
		if err != nil {
			return &wholeError{err}
		}
		defer r.Close()
		return use(d.Format.ReadSnapshot(ctx, r, d.Options))
	}
	err := use(stream.Snapshot(d.Open, d.Options))
	if !errors.Is(err, stream.ErrNotStreamable) {
		return err
	}
	noStream(err)
	r, err := d.Open()
	if err != nil {
		return &wholeError{err}
	}
	defer r.Close()
	m, err := fragment.ReadSnapshot(ctx, r, d.Options)
	if err != nil {
		return &wholeError{err}
	}
	return use(fragment.Records(m))
}

// wholeError is the error for a snapshot that cannot be read as a whole.
type wholeError struct{ error }

// Unwrap returns the reason.
func (e *wholeError) Unwrap() error { return e.error }

// noticing iterates over records. It keeps the error that ends them, and counts the topics
// that are unidentified.
func noticing(records iter.Seq2[fragment.Record, error], failed *error,
	unidentified *int) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		for r, err := range records {
			if err != nil {
				*failed = err
			} else if r.Topic != nil && r.Topic.Unidentified() {
				*unidentified++
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
