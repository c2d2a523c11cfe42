// Package database opens stores that several processes share in a database. It is the only package that
// wires package postgres to the store.
package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/kv/postgres"
	"github.com/tmshare/tmshare/internal/store"
)

// Place says in which database a store is. The zero value is in none: the store is in a data folder.
type Place struct {
	URL string // as [postgres.Options] has it, without a password; search_path names the schema

	opened *metrics // of the store that was opened last
}

// AddFlags adds the flag that says where a store is.
func (p *Place) AddFlags(fl *pflag.FlagSet) {
	fl.StringVar(&p.URL, "store", "", "`URL` of a database that several processes share, postgres://USER@HOST:PORT/NAME, in place of a data folder; PGPASSWORD, or the file that PGPASSFILE names, has its password")
}

// Given reports whether the store is in a database.
func (p *Place) Given() bool { return p.URL != "" }

// String returns the address, which has no password.
func (p *Place) String() string { return postgres.Redacted(p.URL) }

// options checks the place, and says how the engine is opened.
func (p *Place) options(log *slog.Logger) (o postgres.Options, err error) {
	u, err := url.Parse(p.URL)
	if err != nil || !postgres.IsURL(p.URL) {
		return o, cli.UsageError(fmt.Errorf("%s is no address of a database (--store): write postgres://USER@HOST:PORT/NAME; a folder is named with --data", p))
	}
	if _, has := u.User.Password(); has || u.Query().Has("password") {
		return o, cli.UsageError(errors.New("leave the password out of the address of the database, as lists of processes show it; put it into PGPASSWORD, or into the file that PGPASSFILE names"))
	}
	return postgres.Options{URL: p.URL, Schema: u.Query().Get("search_path"), Logger: log}, nil
}

// Open opens the store. o.Dir is the folder of this process alone, for its socket and its temporary files; where it is
// "" there is one until the store is closed.
func (p *Place) Open(ctx context.Context, o store.Options) (db *store.DB, err error) {
	at, err := p.options(o.Logger)
	if err != nil {
		return nil, err
	}
	if err := p.workingFolder(&o); err != nil {
		return nil, err
	}
	e, err := postgres.Open(ctx, at)
	if err == nil && o.Access != store.Read {
		if err = e.Writable(ctx); err != nil {
			e.Close()
		}
	}
	if err == nil {
		o.Engine, o.Silence = e, silence
		closed := o.Closed
		o.Closed = func() error { return errors.Join(e.Close(), closed()) }
		if db, err = store.Open(ctx, o); err == nil {
			p.opened = &metrics{e, db}
			return db, nil
		}
		e.Close()
	}
	return nil, errors.Join(err, o.Closed())
}

// silence is after how long a process is taken for dead. It shows that it lives five times as often.
const silence = 5 * time.Second

// workingFolder makes the folder of this process.
func (p *Place) workingFolder(o *store.Options) (err error) {
	o.Closed = func() error { return nil }
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "tmshare-*"); err == nil {
			dir := o.Dir
			o.Closed = func() error { return os.RemoveAll(dir) }
		}
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	if who, err := control.Holder(o.Dir); err == nil {
		return fmt.Errorf("%s is the folder of another process, %s: give each process a folder of its own with --data", o.Dir, who)
	}
	return nil
}

// Migrate makes the tables of the store, or brings them to the layout of this program. It reports whether they are new.
func (p *Place) Migrate(ctx context.Context, log *slog.Logger) (made bool, err error) {
	at, err := p.options(log)
	if err != nil {
		return false, err
	}
	if made, err = postgres.Migrate(ctx, at); err != nil {
		return false, err
	}
	db, err := p.Open(ctx, store.Options{Access: store.Create, Logger: log})
	if err != nil {
		return false, err
	}
	return made, db.Close()
}
