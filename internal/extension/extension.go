// Package extension says what an extension is: what may be left out of a program; and it has what all commands of a
// program share.
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

// Extension is what a program has beside its core. Fields that are nil add nothing. It is made anew for each command,
// and used by one goroutine.
type Extension struct {
	Name string // unique

	Protocols []follow.Protocol // by which sources of records are followed
	// Indexes are kept of the records of all sources.
	Indexes []txn.Index
	// Settings are those that collections have for it.
	Settings []store.Setting
	// Flags adds flags to the command that serves.
	Flags func(*pflag.FlagSet)
	// Serve makes its part of a server, once the flags are parsed. An error says what is wrong with them.
	Serve func(*server.Server) (*server.Part, error)

	// Hold is told of the store that the process holds to serve it, or to do rounds of its subscriptions, before Serve
	// is called. It makes its part of what the watcher says; nil: none.
	Hold func(*Holding) *watch.Part

	// Dependents returns what it keeps in step with collections and subscriptions of a store, and how that is.
	Dependents func(context.Context, *store.DB) ([]store.Dependent, error)

	// Filter lets parts of maps pass. FilterFlags adds the flags that say which parts, in JSON; nil: nothing is said.
	Filter      merged.Pass
	FilterFlags func(*pflag.FlagSet) func() (json.RawMessage, error)

	// Configured reads a configuration file.
	Configured func(path string) ([]cli.Given, error)

	// Followed does what comes after a command has done rounds of some subscriptions, by their names.
	Followed func(ctx context.Context, a *App, subscriptions map[string]bool) error

	// Formats are those in which it reads and writes topic maps, FormatFlags the flags that say how.
	Formats     formats.Registry
	FormatFlags formats.Flags

	// Commands returns its commands for a program, which may be either: see [App.Serves].
	Commands func(*App) []*cobra.Command
	// Engines are those in which a store may be, beside a data folder.
	Engines []kv.Opener
	// Check does its share of the command "check", as [store.DB.Check] does that of the store.
	Check func(ctx context.Context, db *store.DB, repair bool, report func(store.Finding),
		progress func(what string)) error
	// Writes are the versions of the formats that it writes, which the command "version" shows.
	Writes []cli.Format
}

// collect returns what extensions have, in their order.
func collect[T any](all []Extension, part func(*Extension) []T) (found []T) {
	for i := range all {
		found = append(found, part(&all[i])...)
	}
	return found
}

// Parts returns what makes the parts of a server, in the order of the extensions.
func Parts(all []Extension) []func(*server.Server) (*server.Part, error) {
	return collect(all, func(e *Extension) []func(*server.Server) (*server.Part, error) {
		return some(e.Serve, e.Serve != nil)
	})
}

// some returns a list of one that is there, or of none.
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

// Stores returns o with what a store keeps for extensions.
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

// Held tells the extensions of the store that the process holds, and returns their parts of what its watcher says.
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
