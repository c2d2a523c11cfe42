package backup

import (
	"context"
	"log/slog"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store"
)

// Target is the place for a new store: a data folder, which must be missing or empty, or a place in a database without
// a store.
type Target struct {
	Name string // for messages, without a password
	Dir  string // the data folder; "": it is in a database

	// Open opens a store for [store.Restore], with the options that it is given.
	Open   func(context.Context, store.Options) (*store.DB, error)
	Logger *slog.Logger
}

// Folder returns a data folder as a target.
func Folder(dir string, log *slog.Logger) Target {
	return Target{Name: dir, Dir: dir, Open: store.Open, Logger: log}
}

// open opens the store, which is of a node, or of a new one where that is Nil.
func (t *Target) open(ctx context.Context, node uuid.UUID) (*store.DB, error) {
	if t.Dir != "" {
		if err := mustBeEmpty(t.Dir); err != nil {
			return nil, err
		}
	}
	return t.Open(ctx, store.Options{Dir: t.Dir, Access: store.Restore, Node: node, Logger: t.Logger})
}

// remedy returns the advice for an incomplete target.
func (t *Target) remedy(command string) string {
	if t.Dir == "" {
		return t.Name + " is not complete: " + command + " again, which begins anew"
	}
	return t.Dir + " is not complete: remove it, and " + command + " again"
}
