package extension

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
)

// App is the common part of a program's commands, for one command line. The program sets the first fields.
type App struct {
	Request    *control.Request // never os.Args, os.Stdout and their like
	Extensions []Extension
	Serves     bool                // the program is tmshare-server
	Execute    Execute             // a command line of tmshare-client
	Held       *Holding            // nil: the store is not open
	Serving    map[string][]string // see [Holding]

	Data                 string // the data folder; for a store in a database, its name in messages
	Store                string // the address of an engine, if the store is in no folder
	JSON, Quiet, Verbose bool

	// Flags of tmshare-client.
	Hosts      []string // that links may lead to
	MaxEntries int
	Strict     bool

	// While a command runs.
	DB      *store.DB // open, for [App.Run]
	Command *cobra.Command
	Display *Display
	Became  string // the outcome of an interrupted command; "": it is done as a whole, or not at all
	waited  bool   // for commands that read, with a message
}

// Execute executes a command line of tmshare-client and returns the exit code. held is the store that this process
// already holds, if the command line comes from another one.
type Execute func(ctx context.Context, r *control.Request, held *Holding) int

// Captured executes a command line of tmshare-client, as if it was typed, and returns how it ends.
func (a *App) Captured(ctx context.Context, args ...string) control.Outcome {
	r := *a.Request
	r.Program, r.Args = "tmshare-client", args
	return r.Capture(func() int { return a.Execute(ctx, &r, nil) })
}

// AddFolderFlags adds the flags of commands that work on a data folder, which is data by default.
func (a *App) AddFolderFlags(fl *pflag.FlagSet, data string) {
	fl.StringVar(&a.Data, "data", data, "data `folder`")
	a.AddStoreFlag(fl)
	cli.InPlaceOf(fl, "store", "data")
	fl.BoolVar(&a.JSON, "json", false, "print JSON for programs")
	fl.BoolVarP(&a.Quiet, "quiet", "q", false, "print errors only")
	fl.BoolVarP(&a.Verbose, "verbose", "v", false, "say more")
}

// OnFolder returns a command that works on a data folder, with the flags for it. All commands of tmshare-client have
// these.
func (a *App) OnFolder(cmd *cobra.Command) *cobra.Command {
	if a.Serves {
		a.AddFolderFlags(cmd.Flags(), cli.StateDir("server"))
	}
	return cmd
}

// Commands returns the commands of the extensions.
func (a *App) Commands() (all []*cobra.Command) {
	for _, e := range a.Extensions {
		if e.Commands != nil {
			all = append(all, e.Commands(a)...)
		}
	}
	return all
}

// Followed runs the work of extensions after rounds of subscriptions: those that are true.
func (a *App) Followed(ctx context.Context, subscriptions map[string]bool) error {
	var failed []error
	for _, e := range a.Extensions {
		if e.Followed != nil && ctx.Err() == nil {
			failed = append(failed, e.Followed(ctx, a, subscriptions))
		}
	}
	return errors.Join(failed...)
}

// Formats returns the formats of the extensions.
func (a *App) Formats() formats.Registry { return Formats(a.Extensions) }

// FormatFlags adds the flags of these formats to a command, as [formats.Flags] does.
func (a *App) FormatFlags(to *pflag.FlagSet, use formats.Use) formats.Check {
	var checks []formats.Check
	for _, e := range a.Extensions {
		if e.FormatFlags != nil {
			checks = append(checks, e.FormatFlags(to, use))
		}
	}
	return func(files map[string]string) (asked url.Values, err error) {
		asked = url.Values{}
		for _, check := range checks {
			one, failed := check(files)
			maps.Copy(asked, one)
			err = cmp.Or(err, failed)
		}
		return asked, err
	}
}

// Environment returns the sources of flags that are not on the command line: variables and configuration files.
func (a *App) Environment() cli.Environment {
	env := cli.Environment{Getenv: a.Request.Getenv}
	for _, e := range a.Extensions {
		if e.Configured != nil {
			env.Read = func(path string) ([]cli.Given, error) { return e.Configured(a.Request.Path(path)) }
		}
	}
	return env
}

// FilterFlags adds the flags for a part of a map. The function returns the filter; nil: all.
func (a *App) FilterFlags(fl *pflag.FlagSet) (asked func() (json.RawMessage, error)) {
	for _, e := range a.Extensions {
		if e.FilterFlags != nil {
			return e.FilterFlags(fl)
		}
	}
	return func() (json.RawMessage, error) { return nil, nil }
}

// Filter returns the function that passes parts of maps; nil: none.
func (a *App) Filter() merged.Pass {
	for _, e := range a.Extensions {
		if e.Filter != nil {
			return e.Filter
		}
	}
	return nil
}

// Merged returns the merged view of the sources of the open store.
func (a *App) Merged() merged.View {
	return merged.View{Store: a.DB, Report: a.Display.Line, Pass: a.Filter()}
}

// lockTimeout is the time for which a command waits for a data folder that another process holds without accepting
// commands, because it is starting or ending.
const lockTimeout = 3 * time.Second

// Body is the work of a command on the store.
type Body func(ctx context.Context, args []string) error

// Run makes the body of a command that works on the store. If another process holds the store, that executes the
// command; else this process accepts commands of others until the command is done. Several processes can read a store
// at the same time, and a writer waits; with [store.Create], a missing data folder is created.
func (a *App) Run(access store.Access, body Body) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		a.Command = cmd
		if a.Held != nil {
			return a.work(cmd.Context(), access, args, body)
		}
		ctx, stop := cli.UntilInterrupted(cmd.Context())
		defer stop()
		code, err := a.reach(ctx, access)
		if err != nil {
			return err
		}
		if a.Held == nil {
			return cli.Exit(code)
		}
		defer func() {
			if n := a.Held.busy(); n > 0 && !a.Quiet {
				fmt.Fprintf(a.Command.ErrOrStderr(), "waiting for commands that others have sent: %d\n", n)
			}
			err = errors.Join(err, a.Held.End(ctx, err != nil))
		}()
		return a.work(ctx, access, args, body)
	}
}

// Apart makes the body of a command that does not use the store, or opens it in its own way. It reports a closed output
// as an error.
func (a *App) Apart(body Body) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.Command = cmd
		signal.Ignore(syscall.SIGPIPE)
		a.show()
		defer a.Display.Clear()
		return body(cmd.Context(), args)
	}
}

// reach opens the store, or has the process that holds it execute the command
// and returns the exit code.
func (a *App) reach(ctx context.Context, access store.Access) (code int, err error) {
	sent := *a.Request
	sent.Env = map[string]string{}
	maps.Copy(sent.Env, a.Request.Env)
	sent.Env[cli.VariableOf(sent.Program, "data")] = a.Data                        // the default may be another there
	o := store.Options{Access: access, Logger: a.Logger(), Damage: func(error) {}} // withDamage reports it
	err = a.openOr(ctx, o, func() (err error) {
		code, err = control.Call(ctx, a.Data, &sent)
		return err
	})
	return code, err
}

// OpenAlone opens the store for a command that runs until it is stopped. It waits for a moment if another process has
// it: a short command, or the one that this one replaces.
func (a *App) OpenAlone(ctx context.Context, o store.Options) error {
	err := a.openOr(ctx, o, func() error { return control.ErrNobody })
	if errors.Is(err, store.ErrLocked) && ctx.Err() == nil {
		if who, unknown := control.Holder(a.Data); unknown == nil {
			return fmt.Errorf("%w. It is in use by %s", err, who)
		}
	}
	return err
}

// openOr opens the store. If it is in a folder, it tries elsewhere first, repeatedly, unless that finds no process. It
// waits a moment for a process that holds the folder without accepting commands, and for commands that read until they
// end.
func (a *App) openOr(ctx context.Context, o store.Options, elsewhere func() error) error {
	place, err := a.Place()
	if err != nil {
		return err
	}
	if a.Store != "" {
		return a.open(ctx, place, o)
	}
	for deadline := time.Now().Add(lockTimeout); ; {
		if err := elsewhere(); !errors.Is(err, control.ErrNobody) {
			return err
		}
		err := a.open(ctx, place, o)
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

// waitForReaders waits a moment for commands that only read, because they accept no commands.
func (a *App) waitForReaders(ctx context.Context) {
	if !a.waited && !a.Quiet {
		a.waited = true
		fmt.Fprintf(a.Command.ErrOrStderr(), "waiting for commands that read %s\n", a.Data)
	}
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

// open opens the store at a place.
func (a *App) open(ctx context.Context, place string, o store.Options) error {
	db, err := a.OpenAt(ctx, place, o)
	if err != nil {
		return err
	}
	a.Data, a.Held = place, &Holding{DB: db, Execute: a.Execute, Serving: a.Serving}
	if o.Access != store.Read && (a.Store == "" || a.Serves) { // else others need not find this process
		if err := a.Held.serve(a.Command.CommandPath()); err != nil {
			o.Logger.Warn("other commands will not find this one, and have to wait", "error", err)
		}
	}
	a.Held.owned = true
	return nil
}

// Logger returns the log of commands.
func (a *App) Logger() *slog.Logger {
	level := slog.LevelError
	if a.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.Command.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// show makes the display of a command.
func (a *App) show() { a.Display = NewDisplay(a.Request, a.Quiet, a.JSON) }

// work does the work with an open store.
func (a *App) work(ctx context.Context, access store.Access, args []string, body Body) (err error) {
	a.DB = a.Held.DB
	a.show()
	defer a.Display.Clear()
	defer func() { err = a.withDamage(ctx, err) }()
	if err = body(ctx, args); err != nil && ctx.Err() != nil {
		became := a.Became
		switch {
		case became != "":
		case access == store.Read:
			became = "nothing was changed"
		default:
			became = "it was done as a whole, or not at all"
		}
		if cause := context.Cause(ctx); errors.Is(cause, control.ErrStopping) {
			return fmt.Errorf("%w; %s", cause, became)
		}
		return cli.InterruptedError(became)
	}
	return err
}

// withDamage adds to the result of a command that rows of the store are damaged, so that its output may be wrong.
func (a *App) withDamage(ctx context.Context, err error) error {
	wait := time.Second / 4
	if !a.DB.DamageSoon() {
		wait = 0 // a large database is compared piece by piece, by one command after the other
	}
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	damage := a.DB.Damage(ctx)
	var coded *cli.ExitError
	switch {
	case damage == nil || errors.Is(err, store.ErrDamaged):
		return err
	case err == nil, errors.As(err, &coded) && coded.Err == nil:
		return damage
	}
	return errors.Join(err, damage)
}

// ReadsLeniently reports whether XTM that breaks rules is read as it is meant.
func (a *App) ReadsLeniently() bool { return !a.Strict }

// Fetcher returns a fetcher for the server of a URL, with the token in a file ("": none).
func (a *App) Fetcher(url, tokenFile string) (*fetch.Fetcher, error) {
	f := fetch.Fetcher{Hosts: a.Hosts, Logger: a.Logger()}.WithDefaults()
	var err error
	f.HTTP, err = fetch.BearerFrom(f.HTTP, url, tokenFile)
	return f, err
}

// LanguageFlag adds the flag for the languages in which a command calls topics. The locale sets it too
// ([control.Local]).
func LanguageFlag(fl *pflag.FlagSet, languages *titles.Languages) {
	fl.Var(languages, "lang",
		"call topics in these languages: `tags` with commas between them, the best first (default: that of the locale)")
}
