package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/clientcmd/display"
	"github.com/tmshare/tmshare/internal/clientcmd/move"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/database"
	"github.com/tmshare/tmshare/internal/ext/files"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// app is what all commands share.
type app struct {
	request     *control.Request // never os.Args, os.Stdout and their like
	data        string           // the data folder; where the store is in a database, what messages call it
	store       database.Place
	hosts       []string
	maxEntries  int
	lenient     bool
	strict      bool
	json, quiet bool
	verbose     bool
	judging
	confirm bool // what the last round was in doubt about is right
	waited  bool // for commands that read, which was said

	held    *Holding // nil: the store is not open
	client  *client.Client
	db      *store.DB
	command *cobra.Command
	display *display.Display
}

func (a *app) addCommands(root *cobra.Command) {
	fl := root.PersistentFlags()
	a.addFolderFlags(fl, cli.StateDir("client"))
	fl.StringArrayVar(&a.hosts, "host", nil, "follow links to this `host` too, besides the one subscribed to (repeatable)")
	fl.BoolVar(&a.strict, "strict", false, "refuse XTM that breaks the rules of its version where what is meant is plain")
	fl.BoolVar(&a.lenient, "lenient", true, "read such XTM as it is meant, with a warning (default)")
	fl.IntVar(&a.maxEntries, "max-entries", 10_000_000, "take this `number` of entries of a feed, or of lists, in one round, at most")
	root.AddCommand(a.subscribe(), a.replicate(), a.subscriptions(), a.unsubscribe(), a.trust(), a.expand())
	root.AddCommand(a.sync(), a.replace(), a.retry(), a.forget(), a.status(), a.log(), a.verify(), a.export())
	root.AddCommand(a.topic(), a.find(), a.edit(), a.backup(), a.check())
	if a.held == nil { // what needs the store for itself, or not at all, is not executed for others
		root.AddCommand(a.restore(), a.moveCommand(), a.watch(), a.ui(), a.doctor(clientDoctor, clientDoctorExample, nil), a.harvest(), a.mirror(), VersionCommand(root.Name()))
		root.AddCommand(files.Commands(func() files.Output {
			return files.Output{JSON: a.json, Quiet: a.quiet, Verbose: a.verbose, Lenient: a.readsLeniently()}
		})...)
	}
}

// addFolderFlags adds the flags of commands that work on a data folder.
func (a *app) addFolderFlags(fl *pflag.FlagSet, data string) {
	fl.StringVar(&a.data, "data", data, "data `folder`")
	a.store.AddFlags(fl)
	cli.InPlaceOf(fl, "store", "data")
	fl.BoolVar(&a.json, "json", false, "print JSON for programs")
	fl.BoolVarP(&a.quiet, "quiet", "q", false, "print errors only")
	fl.BoolVarP(&a.verbose, "verbose", "v", false, "say more")
}

// moveCommand is the command of package move.
func (a *app) moveCommand() *cobra.Command {
	return move.Command(a.request, func(cmd *cobra.Command) move.Flags {
		a.command = cmd
		return move.Flags{Placed: cli.OnCommandLine(cmd.Flags(), "data") || cli.OnCommandLine(cmd.Flags(), "store"), JSON: a.json, Quiet: a.quiet, Logger: a.logger()}
	})
}

// patience is how long a command waits for a data folder that another process
// holds without taking commands: because it has just begun, or is about to end.
const patience = 3 * time.Second

// body is what a command that works on the store does.
type body func(ctx context.Context, args []string) error

// run makes the body of a command that changes the store. If another process
// holds that, it is executed there; else the store is open to others, in the
// same way, until the command is done.
func (a *app) run(body body) func(*cobra.Command, []string) error {
	return a.runWith(store.Write, body)
}

// runReading makes the body of a command that only reads the store. If nobody holds that, it is
// open for reading: others can read it at the same time, and who wants to write waits.
func (a *app) runReading(body body) func(*cobra.Command, []string) error {
	return a.runWith(store.Read, body)
}

// runCreating makes the body of a command that makes a data folder where there is none.
func (a *app) runCreating(body body) func(*cobra.Command, []string) error {
	return a.runWith(store.Create, body)
}

func (a *app) runWith(access store.Access, body body) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		a.command = cmd
		if a.held != nil {
			return a.work(cmd.Context(), args, body)
		}
		ctx, stop := cli.UntilInterrupted(cmd.Context())
		defer stop()
		code, err := a.reach(ctx, access)
		if err != nil {
			return err
		}
		if a.held == nil {
			return exit(code)
		}
		defer func() {
			if n := a.held.busy(); n > 0 && !a.quiet {
				fmt.Fprintf(a.command.ErrOrStderr(), "waiting for commands that others have sent: %d\n", n)
			}
			err = errors.Join(err, a.held.close(ctx, err != nil))
		}()
		return a.work(ctx, args, body)
	}
}

// exit is the end of a command that has said all that there is to say.
func exit(code int) error {
	if code == cli.OK {
		return nil
	}
	return &cli.ExitError{Code: code}
}

// reach opens the store, or has the process that holds it execute the command
// and returns the exit code.
func (a *app) reach(ctx context.Context, access store.Access) (code int, err error) {
	sent := *a.request
	sent.Env = map[string]string{dataVariable: a.data} // the default may be another there
	for name, value := range a.request.Env {
		if name != dataVariable {
			sent.Env[name] = value
		}
	}
	err = a.openOr(ctx, a.logger(), access, func() (err error) {
		code, err = control.Call(ctx, a.data, &sent)
		return err
	})
	return code, err
}

// openOr opens the store. If it is in a folder, elsewhere is tried first, again and again, unless it finds nobody. It
// waits a moment for a process that holds the folder without taking commands, and for commands that read as long as
// they do.
func (a *app) openOr(ctx context.Context, log *slog.Logger, access store.Access, elsewhere func() error) error {
	if a.store.Given() {
		return a.open(ctx, log, access)
	}
	if a.data == "" {
		return cli.ErrNoData
	}
	for deadline := time.Now().Add(patience); ; {
		if err := elsewhere(); !errors.Is(err, control.ErrNobody) {
			return err
		}
		err := a.open(ctx, log, access)
		switch {
		case !errors.Is(err, store.ErrLocked) || ctx.Err() != nil:
			return err
		case errors.Is(err, store.ErrBeingRead):
			a.waitForReaders(ctx)
		case time.Now().After(deadline):
			return err
		}
	}
}

// waitForReaders waits a moment for commands that only read: they take none of others.
func (a *app) waitForReaders(ctx context.Context) {
	if !a.waited && !a.quiet {
		a.waited = true
		fmt.Fprintf(a.command.ErrOrStderr(), "waiting for commands that read %s\n", a.data)
	}
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

const dataVariable = control.Prefix + "DATA"

// open opens the store.
func (a *app) open(ctx context.Context, log *slog.Logger, access store.Access) error {
	var damage func(error) // of a command: withDamage tells it
	if a.command.Name() != "watch" {
		damage = func(error) {}
	}
	o := store.Options{Dir: a.data, Access: access, Logger: log, Damage: damage}
	open := store.Open
	if a.store.Given() {
		o.Dir, open = "", a.store.Open
		a.data = a.store.String()
	}
	db, err := open(ctx, o)
	if err != nil {
		return err
	}
	if access == store.Read || a.store.Given() { // others need not find this process
		a.held = &Holding{db: db, owned: true}
		return nil
	}
	if a.held, err = Hold(db, a.command.CommandPath()); err != nil {
		log.Warn("other commands will not find this one, and have to wait", "error", err)
		a.held = &Holding{db: db}
	}
	a.held.owned = true
	return nil
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelError
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.command.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// work does what is to be done with an open store.
func (a *app) work(ctx context.Context, args []string, body func(context.Context, []string) error) (err error) {
	a.db = a.held.db
	a.display = display.New(a.request, a.quiet, a.json)
	defer a.display.Clear()
	a.client, err = client.New(client.Config{
		ConfirmAfter: a.confirmAfter, MaxDelete: a.maxDelete, Store: a.db, Locks: &a.held.locks, Hosts: a.hosts, MaxEntries: a.maxEntries, Lenient: a.readsLeniently(), Logger: a.logger(),
		Report: a.display.Line, Progress: a.display.Progress,
	})
	if err != nil {
		return err
	}
	defer func() { err = a.withDamage(ctx, err) }()
	err = body(ctx, args)
	if errors.As(err, new(*follow.DoubtError)) && !errors.As(err, new(*cli.ExitError)) {
		err = &cli.ExitError{Code: cli.Quarantined, Err: err}
	}
	if err != nil && ctx.Err() != nil {
		why := "interrupted"
		if cause := context.Cause(ctx); errors.Is(cause, control.ErrStopping) {
			why = cause.Error()
		}
		return errors.New(why + "; what is applied stays, and the next sync goes on from there")
	}
	return err
}

// withDamage adds to the outcome of a command that rows of the store are damaged: what it has
// said may be wrong.
func (a *app) withDamage(ctx context.Context, err error) error {
	wait := time.Second / 4
	if !a.db.DamageSoon() {
		wait = 0 // a large database is compared piece by piece, by one command after the other
	}
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	damage := a.db.Damage(ctx)
	var said *cli.ExitError
	switch {
	case damage == nil || errors.Is(err, store.ErrDamaged):
		return err
	case err == nil, errors.As(err, &said) && said.Err == nil:
		return damage
	}
	return errors.Join(err, damage)
}

// names returns the subscriptions that args name, or all.
func (a *app) names(ctx context.Context, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	all, err := a.db.Subscriptions(ctx)
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

// readsLeniently reports whether XTM that breaks rules is read as it is meant.
func (a *app) readsLeniently() bool { return a.lenient && !a.strict }
