package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tmshare/tmshare/internal/ext/backup"
	"github.com/tmshare/tmshare/internal/kv/postgres"
	"github.com/tmshare/tmshare/internal/store"
)

// IsURL reports whether a place is the address of a database, not a folder.
func IsURL(place string) bool { return postgres.IsURL(place) }

// OpenAnywhere opens the store at a place: a folder, or the address of a database. It returns the name
// of the place without a password.
func OpenAnywhere(ctx context.Context, place string, o store.Options) (db *store.DB, name string, err error) {
	if IsURL(place) {
		p := Place{URL: place}
		db, err = p.Open(ctx, o)
		return db, p.String(), err
	}
	o.Dir = place
	if db, err = store.Open(ctx, o); errors.Is(err, store.ErrLocked) {
		err = fmt.Errorf("another program has %s open: stop it, and try again", place)
	}
	return db, place, err
}

// Target returns a place where a store is made: a folder, or the address of a database.
func Target(place string, log *slog.Logger) backup.Target {
	if !IsURL(place) {
		return backup.Folder(place, log)
	}
	p := Place{URL: place}
	return backup.Target{Name: p.String(), Open: p.create, Logger: log}
}

// create makes the tables of a store that is to be filled, and opens it for that.
func (p *Place) create(ctx context.Context, o store.Options) (*store.DB, error) {
	at, err := p.options(o.Logger)
	if err == nil {
		_, err = postgres.Migrate(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	return p.Open(ctx, o)
}
