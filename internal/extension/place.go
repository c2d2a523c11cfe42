package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store"
)

// silence is the time after which a process that shares a store counts as dead. It sends heartbeats five times as
// often.
const silence = 5 * time.Second

// AddStoreFlag adds the flag for the engine of a store, instead of a data folder.
func (a *App) AddStoreFlag(fl *pflag.FlagSet) {
	fl.StringVar(&a.Store, "store", "", "`URL` of a database that several processes share, in place of a data folder; "+
		a.forms())
}

func (a *App) engines() []kv.Opener {
	return collect(a.Extensions, func(e *Extension) []kv.Opener { return e.Engines })
}

// forms returns the syntax of the addresses of engines.
func (a *App) forms() string {
	var all []string
	for _, o := range a.engines() {
		all = append(all, o.Form)
	}
	return cmp.Or(strings.Join(all, ", or "), "this program has no extension that opens one")
}

// opener returns the opener of an address.
func (a *App) opener(address string) (*kv.Opener, error) {
	scheme, _, _ := strings.Cut(address, "://")
	for _, o := range a.engines() {
		if IsAddress(address) && slices.Contains(o.Schemes, scheme) {
			return &o, nil
		}
	}
	return nil, cli.UsageError(fmt.Errorf("%.20s… is no address of a database (--store): %s. Name a folder with --data",
		scheme, a.forms()))
}

// IsAddress reports whether a place is the address of an engine, not a folder.
func IsAddress(place string) bool { return strings.Contains(place, "://") }

// Place returns the place of the store: the address of an engine, or the data folder.
func (a *App) Place() (string, error) {
	switch {
	case a.Store != "":
		_, err := a.opener(a.Store)
		return a.Store, err
	case a.Data == "":
		return "", cli.ErrNoData
	}
	return a.Data, nil
}

// OpenAt opens the store at a place. If that is the address of an engine, o.Dir is this process's own folder for its
// socket and temporary files; "" uses one until the store is closed.
func (a *App) OpenAt(ctx context.Context, place string, o store.Options) (*store.DB, error) {
	o = Stores(a.Extensions, o)
	if !IsAddress(place) {
		o.Dir = place
		return store.Open(ctx, o)
	}
	by, err := a.opener(place)
	if err != nil {
		return nil, err
	}
	removed := func() error { return nil }
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "tmshare-*"); err != nil {
			return nil, err
		}
		removed = func() error { return os.RemoveAll(o.Dir) }
	} else if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	} else if who, err := control.Holder(o.Dir); err == nil {
		return nil, fmt.Errorf("%s is the folder of another process, %s: give each process a folder of its own with --data",
			o.Dir, who)
	}
	o.Engine, err = by.Open(ctx, place,
		kv.OpenOptions{Logger: o.Logger, ReadOnly: o.Access == store.Read, Make: o.Access == store.Restore})
	if err != nil {
		return nil, errors.Join(err, removed())
	}
	o.Silence = silence
	o.Closed = func() error { return errors.Join(o.Engine.Close(), removed()) }
	db, err := store.Open(ctx, o)
	if err != nil {
		return nil, errors.Join(err, o.Closed())
	}
	return db, nil
}
