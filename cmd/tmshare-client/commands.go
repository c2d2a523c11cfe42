package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
)

// app is what all commands share.
type app struct {
	data        string
	hosts       []string
	lenient     bool
	json, quiet bool
	verbose     bool
	client      *client.Client
	db          *store.DB
	command     *cobra.Command
}

func addCommands(root *cobra.Command) {
	a := &app{}
	fl := root.PersistentFlags()
	fl.StringVar(&a.data, "data", cli.StateDir("client"), "data `folder`")
	fl.StringArrayVar(&a.hosts, "host", nil, "follow links to this `host` too, besides the one subscribed to (repeatable)")
	fl.BoolVar(&a.lenient, "lenient", false, "read XTM 1.0 leniently: take baseName/instanceOf as the name's type")
	fl.BoolVar(&a.json, "json", false, "print JSON for programs")
	fl.BoolVarP(&a.quiet, "quiet", "q", false, "print errors only")
	fl.BoolVarP(&a.verbose, "verbose", "v", false, "log more")
	root.AddCommand(a.subscribe(), a.sync(), a.replace(), a.status(), a.verify(), a.export())
	root.AddCommand(a.convert(), a.cxtm(), a.validate(), a.stats(), a.diff())
}

// run makes the body of a command: it opens the store, and closes it at the end
// or when the command is interrupted.
func (a *app) run(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		a.command = cmd
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the program at once
		level := slog.LevelError
		if a.verbose {
			level = slog.LevelDebug
		}
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
		if a.db, err = store.Open(store.Options{Dir: a.data, Logger: log}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, a.db.Close()) }()
		a.client, err = client.New(client.Config{
			Store: a.db, Hosts: a.hosts, Lenient: a.lenient, Logger: log,
			Report: func(line string) {
				if !a.quiet {
					fmt.Fprintln(os.Stderr, line)
				}
			},
		})
		if err != nil {
			return err
		}
		if err = body(ctx, args); err != nil && ctx.Err() != nil {
			return errors.New("interrupted; what is applied stays, and the next sync goes on from there")
		}
		return err
	}
}

// names returns the subscriptions that args name, or all.
func (a *app) names(args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	all, err := a.db.Subscriptions()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no subscriptions in %s: use \"tmshare-client subscribe URL\" first", a.data)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, nil
}

func (a *app) printf(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.command.OutOrStdout(), format, args...)
	}
}
