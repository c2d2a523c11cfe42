package clientcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// app is the common part of the commands of tmshare-client, besides that of all commands.
type app struct {
	*extension.App
	extension.Doubts
	client      *client.Client
	acceptMoves bool // of "sync"
}

func (a *app) addCommands(root *cobra.Command) {
	fl := root.PersistentFlags()
	a.AddFolderFlags(fl, cli.StateDir("client"))
	fl.StringArrayVar(&a.Hosts, "host", nil, "follow links to this `host` too, besides the one subscribed to (repeatable)")
	fl.BoolVar(&a.Strict, "strict", false,
		"refuse XTM that breaks rules of its version, in place of reading it as it is meant")
	fl.IntVar(&a.MaxEntries, "max-entries", 10_000_000,
		"take this `number` of entries of a feed, or of lists, in one round, at most")
	root.AddCommand(cli.In(cli.Everyday, a.subscribe(), a.replicate(), a.unsubscribe(), a.expand(),
		a.sync(), a.status(), a.verify(), a.export(), a.topic(), a.edit())...)
	root.AddCommand(cli.In(cli.Back, a.log())...)
	root.AddCommand(cli.In(cli.Operations, a.replace(), a.retry(), a.forget(), a.source(), a.trust(), a.check())...)
	if a.Held == nil { // commands that open the store themselves, or use none, are not executed for others
		root.AddCommand(cli.In(cli.Everyday, a.watch())...)
		root.AddCommand(cli.In(cli.Operations, a.version())...)
	}
	root.AddCommand(a.Commands()...)
}

// run makes the body of a command that changes the store.
func (a *app) run(body extension.Body) func(*cobra.Command, []string) error {
	return a.runWith(store.Write, body)
}

// runReading makes the body of a command that only reads the store.
func (a *app) runReading(body extension.Body) func(*cobra.Command, []string) error {
	return a.runWith(store.Read, body)
}

// runWith is [extension.App.Run] with a client.
func (a *app) runWith(access store.Access, body extension.Body) func(*cobra.Command, []string) error {
	return a.Run(access, func(ctx context.Context, args []string) (err error) {
		a.client, err = client.New(client.Config{
			Formats:      a.Formats(),
			AcceptMoves:  a.acceptMoves,
			Protocols:    extension.Protocols(a.Extensions),
			ConfirmAfter: a.ConfirmAfter, MaxDelete: a.MaxDelete, Store: a.DB, Locks: &a.Held.Locks, Hosts: a.Hosts,
			MaxEntries: a.MaxEntries, Lenient: a.ReadsLeniently(), Logger: a.Logger(),
			Report: a.Display.Line, Progress: a.Display.Progress,
		})
		if err != nil {
			return err
		}
		err = body(ctx, args)
		if errors.As(err, new(*follow.DoubtError)) && !errors.As(err, new(*cli.ExitError)) {
			err = &cli.ExitError{Code: cli.Quarantined, Err: err}
		}
		return err
	})
}

// names returns the subscriptions that args name, or all.
func (a *app) names(ctx context.Context, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	all, err := a.DB.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no subscriptions in %s: use \"tmshare-client subscribe URL\" first", a.Data)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, nil
}

// Follow returns the watcher that keeps the subscriptions of a store up to date, later ones too. Commands that change
// one wait for a round of it. c has the settings and the logger of rounds.
func Follow(h *extension.Holding, c client.Config, o watch.Options) (*watch.Watcher, error) {
	done := o.Done
	o.Done = func(name string, r *client.Round, err error) {
		if logRound(c.Logger, name, r, err); done != nil {
			done(name, r, err)
		}
	}
	c.Store, c.Locks, o.Store = h.DB, &h.Locks, h.DB
	c.Report = func(line string) { c.Logger.Info(line) }
	follower, err := client.New(c)
	if err != nil {
		return nil, err
	}
	w, err := watch.New(follower, o)
	if err == nil {
		h.Watcher.Store(w)
	}
	return w, err
}
