package clientcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/store"
)

// app is what all commands share.
type app struct {
	request     *control.Request // never os.Args, os.Stdout and their like
	data        string
	hosts       []string
	lenient     bool
	json, quiet bool
	verbose     bool

	held    *Holding // nil: the store is not open
	client  *client.Client
	db      *store.DB
	command *cobra.Command
	display *display
}

func (a *app) addCommands(root *cobra.Command) {
	fl := root.PersistentFlags()
	fl.StringVar(&a.data, "data", cli.StateDir("client"), "data `folder`")
	fl.StringArrayVar(&a.hosts, "host", nil, "follow links to this `host` too, besides the one subscribed to (repeatable)")
	fl.BoolVar(&a.lenient, "lenient", false, "read XTM 1.0 leniently: take baseName/instanceOf as the name's type")
	fl.BoolVar(&a.json, "json", false, "print JSON for programs")
	fl.BoolVarP(&a.quiet, "quiet", "q", false, "print errors only")
	fl.BoolVarP(&a.verbose, "verbose", "v", false, "say more")
	root.AddCommand(a.subscribe(), a.subscriptions(), a.unsubscribe())
	root.AddCommand(a.sync(), a.replace(), a.retry(), a.forget(), a.status(), a.log(), a.verify(), a.export())
	root.AddCommand(a.topic(), a.edit())
	if a.held == nil { // what needs the store for itself, or not at all, is not executed for others
		root.AddCommand(a.watch(), a.harvest(), a.mirror(), a.convert(), a.cxtm(), a.validate(), a.stats(), a.diff())
	}
}

// patience is how long a command waits for a data folder that another process
// holds without taking commands: because it has just begun, or is about to end.
const patience = 3 * time.Second

// untilInterrupted returns a context that ends with the first signal that asks the program to
// end. The second one ends it at once.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// run makes the body of a command that works on the store. If another process
// holds that, it is executed there; else the store is open to others, in the
// same way, until the command is done.
func (a *app) run(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		a.command = cmd
		if a.held != nil {
			return a.work(cmd.Context(), args, body)
		}
		ctx, stop := untilInterrupted(cmd.Context())
		defer stop()
		code, err := a.reach(ctx)
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
			err = errors.Join(err, a.held.close(ctx))
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
func (a *app) reach(ctx context.Context) (code int, err error) {
	sent := *a.request
	sent.Env = map[string]string{dataVariable: a.data} // the default may be another there
	for name, value := range a.request.Env {
		if name != dataVariable {
			sent.Env[name] = value
		}
	}
	for deadline := time.Now().Add(patience); ; {
		code, err := control.Call(ctx, a.data, &sent)
		if !errors.Is(err, control.ErrNobody) {
			return code, err
		}
		err = a.open(a.logger())
		if !errors.Is(err, store.ErrLocked) || time.Now().After(deadline) || ctx.Err() != nil {
			return 0, err
		}
	}
}

const dataVariable = control.Prefix + "DATA"

// open opens the store.
func (a *app) open(log *slog.Logger) error {
	db, err := store.Open(store.Options{Dir: a.data, Logger: log})
	if err != nil {
		return err
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
	a.display = newDisplay(a.request, a.quiet, a.json)
	defer a.display.clear()
	a.client, err = client.New(client.Config{
		Store: a.db, Locks: &a.held.locks, Hosts: a.hosts, Lenient: a.lenient, Logger: a.logger(),
		Report: a.display.line, Progress: a.display.progress,
	})
	if err != nil {
		return err
	}
	if err = body(ctx, args); err != nil && ctx.Err() != nil {
		why := "interrupted"
		if cause := context.Cause(ctx); errors.Is(cause, control.ErrStopping) {
			why = cause.Error()
		}
		return errors.New(why + "; what is applied stays, and the next sync goes on from there")
	}
	return err
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
		a.display.clear()
		fmt.Fprintf(a.command.OutOrStdout(), format, args...)
	}
}

func (a *app) print(value any) error {
	a.display.clear()
	e := json.NewEncoder(a.command.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(value)
}

func usageError(err error) error { return &cli.ExitError{Code: cli.Usage, Err: err} }
