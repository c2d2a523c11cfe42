// Package extension defines extensions, which are the optional parts of a program, and has the common part of all
// commands.
package extension

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Extension is an optional part of a program. Nil fields add nothing. It is made for each command line, and not safe
// for concurrent use.
type Extension struct {
	Name string // unique

	Protocols []follow.Protocol // by which sources of records are followed
	// Indexes are kept of the records of all sources.
	Indexes []txn.Index
	// Settings are its settings of collections.
	Settings []store.Setting
	// Flags adds flags to the command that serves.
	Flags func(*pflag.FlagSet)
	// Serve makes its part of a server from the parsed flags. It returns an error if they are invalid.
	Serve func(*server.Server) (*server.Part, error)

	// Hold receives the store that the process holds to serve it, or to run rounds of its subscriptions, before Serve
	// is called. It makes its part of the watcher's pages; nil: none.
	Hold func(*Holding) *watch.Part

	// Dependents returns its targets that depend on collections and subscriptions of a store, with their state.
	Dependents func(context.Context, *store.DB) ([]store.Dependent, error)

	// Filter passes parts of maps. FilterFlags adds the flags to select them, and returns the filter (nil: none).
	Filter      merged.Pass
	FilterFlags func(*pflag.FlagSet) func() (json.RawMessage, error)

	// Configured reads a configuration file.
	Configured func(path string) ([]cli.Given, error)

	// Followed runs its work after rounds of some subscriptions, by name.
	Followed func(ctx context.Context, a *App, subscriptions map[string]bool) error

	// Formats are its formats of topic maps, FormatFlags adds the flags for them.
	Formats     formats.Registry
	FormatFlags formats.Flags

	// Commands returns its commands for a program, which may be either: see [App.Serves].
	Commands func(*App) []*cobra.Command
	// Engines are its engines for stores, besides data folders.
	Engines []kv.Opener
	// Check does its share of the command "check", as [store.DB.Check] does that of the store.
	Check func(ctx context.Context, db *store.DB, repair bool, report func(store.Finding),
		progress func(what string)) error
	// Writes are the versions of the formats that it writes, which the command "version" shows.
	Writes []cli.Format
}

// collect returns the parts of extensions, in order.
func collect[T any](all []Extension, part func(*Extension) []T) (found []T) {
	for i := range all {
		found = append(found, part(&all[i])...)
	}
	return found
}

// Parts returns the constructors of the parts of a server, in the order of the extensions.
func Parts(all []Extension) []func(*server.Server) (*server.Part, error) {
	return collect(all, func(e *Extension) []func(*server.Server) (*server.Part, error) {
		return some(e.Serve, e.Serve != nil)
	})
}

// some returns a list of one element if it exists, or an empty one.
func some[T any](one T, there bool) []T {
	if !there {
		return nil
	}
	return []T{one}
}

// Protocols returns the protocols of extensions.
func Protocols(all []Extension) []follow.Protocol {
	return collect(all, func(e *Extension) []follow.Protocol { return e.Protocols })
}

// Settings returns the settings of collections that are those of extensions.
func Settings(all []Extension) []store.Setting {
	return collect(all, func(e *Extension) []store.Setting { return e.Settings })
}

// Stores returns o with the store's options for extensions.
func Stores(all []Extension, o store.Options) store.Options {
	o.Indexes, o.Settings, o.Protocols = Indexes(all), Settings(all), []string{}
	for i := range all {
		o.Dependents = append(o.Dependents, some(all[i].Dependents, all[i].Dependents != nil)...)
	}
	for _, p := range Protocols(all) {
		o.Protocols = append(o.Protocols, p.Name)
	}
	return o
}

// Held passes the store of the process to the extensions, and returns their parts of the watcher's pages.
func Held(all []Extension, h *Holding) []*watch.Part {
	return collect(all, func(e *Extension) []*watch.Part {
		if e.Hold == nil {
			return nil
		}
		p := e.Hold(h)
		return some(p, p != nil)
	})
}

// Indexes returns the indexes of extensions, in the order of their names.
func Indexes(all []Extension) []txn.Index {
	indexes := collect(all, func(e *Extension) []txn.Index { return e.Indexes })
	slices.SortFunc(indexes, func(a, b txn.Index) int { return strings.Compare(a.Name, b.Name) })
	return indexes
}

// Formats returns the formats of extensions.
func Formats(all []Extension) formats.Registry {
	return collect(all, func(e *Extension) []*formats.Format { return e.Formats })
}

// AddFlags adds the flags of extensions to the command that serves.
func AddFlags(all []Extension, to *pflag.FlagSet) {
	for _, e := range all {
		if e.Flags != nil {
			e.Flags(to)
		}
	}
}
