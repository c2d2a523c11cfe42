// Package cli holds the common part of the two programs: the place of data, settings from the environment, and exit
// codes.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Pairs reads the values of a repeatable flag NAME=VALUE.
func Pairs(flag string, values []string) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" || value == "" {
			return nil, UsageError(fmt.Errorf("--%s %s: write NAME=VALUE, the name of a collection first", flag, v))
		}
		if _, twice := out[name]; twice {
			return nil, UsageError(fmt.Errorf("--%s %s: %s is given twice", flag, v, name))
		}
		out[name] = value
	}
	return out, nil
}

// PairsOf parses the values NAME=VALUE of a flag about maps of the command.
func PairsOf(flag string, values []string, known map[string]string,
	check func(value string) error) (map[string]string, error) {
	all, err := Pairs(flag, values)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if known[name] == "" {
			return nil, UsageError(fmt.Errorf("--%s %s=%s: there is no --map %s; name a map of the command", flag, name,
				all[name], name))
		}
		if err := check(all[name]); err != nil {
			return nil, UsageError(fmt.Errorf("--%s %s: %w", flag, name, err))
		}
	}
	return all, err
}

// UntilInterrupted returns a context that ends with the first signal to end the program. The second one ends the
// program at once.
func UntilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Environment holds the sources of flags that are not on the command line.
type Environment struct {
	Getenv func(string) string
	Read   func(path string) ([]Given, error) // reads the file of --config; nil: no such flag
}

// Given holds the values of a flag in a file, in order, with their place.
type Given struct {
	Flag   string
	Values []string
	Place  string
}

// Run executes a command in an environment and returns the exit code. Errors go to standard error, prefixed with the
// program's name.
func Run(root *cobra.Command, env Environment) int {
	if env.Read != nil {
		root.PersistentFlags().String("config", "", "`file` with values of flags, in YAML (\"config show\" lists them)")
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	is := about()
	root.Version = is.Version + " " + is.Go
	addGroups(root)
	visitFlags(root, func(f *pflag.Flag) {
		if slices.Contains([]string{"int", "int64", "uint64"}, f.Value.Type()) {
			f.Value = decimal{f.Value}
		}
	})
	out := &output{Writer: root.OutOrStdout()}
	root.SetOut(out)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		advice := howToWrite(err)
		if advice == "" && cmd != root && cmd.HasSubCommands() { // the flag may be one of a command that is mistyped
			advice = commandsOf(cmd)
		}
		return &ExitError{Usage, fmt.Errorf("%w%s\nTry \"%s --help\"", err, advice, cmd.CommandPath())}
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if data := cmd.Flags().Lookup("data"); data != nil && data.Changed && data.Value.String() == "" {
			return &ExitError{Usage, errors.New("--data is empty: name a folder")}
		}
		if err := checkContradictions(cmd.Flags()); err != nil { // before the environment, which flags override
			return err
		}
		if err := Settle(cmd, env, cmd.ErrOrStderr()); err != nil {
			return err
		}
		return checkValues(cmd.Flags())
	}
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" { // it would show something else and succeed
			c.Args = func(_ *cobra.Command, args []string) error { _, _, err := root.Find(args); return err }
		}
	}
	err := root.Execute()
	code := OK
	var exit *ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.Err == nil:
		code, err = exit.Code, nil
	case strings.HasPrefix(err.Error(), "unknown command"):
		code = Usage
		if other := ofTheOther(root, err); other != nil {
			err = other
		}
	default:
		if code = codeOf(err); code == Interrupted && exit == nil {
			err = InterruptedError("do it again")
		}
	}
	if err = out.join(err); out.failed != nil && code != Usage {
		code = Failed
	}
	if errors.Is(err, syscall.EPIPE) { // the output is closed, also for the error
		return ClosedPipe
	}
	if err != nil {
		fmt.Fprintf(root.ErrOrStderr(), "%s: %s\n", root.Name(), withRemedies(err))
	}
	return code
}

// howToWrite returns the syntax of a flag's value, if the parser's error lacks it.
func howToWrite(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return ""
	}
	switch invalid.GetFlag().Value.Type() {
	case "duration":
		return "; write a time such as 30s, 5m or 24h"
	case "int", "int64", "uint64":
		return "; write a whole number"
	case "bool":
		return "; write true or false"
	}
	return ""
}

// NotEmpty wraps a check of positional arguments, and refuses empty ones, which unset variables of a script produce.
func NotEmpty(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, arg := range args {
			if arg == "" {
				return fmt.Errorf("argument %d is empty", i+1)
			}
		}
		return check(cmd, args)
	}
}

// ErrNoData is the error for a missing data folder without a default.
var ErrNoData error = &ExitError{Usage,
	errors.New("no data folder: there is neither $XDG_STATE_HOME nor a home folder for the default; name one with --data")}

// commandLineOnly marks flags that have no environment variable.
const commandLineOnly = "tmshare_command_line_only"

// CommandLineOnly marks all flags defined so far as having no environment variable, because they select what to change.
// Commands sent to a server's process may inherit its variables, which are no such request.
func CommandLineOnly(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) { _ = flags.SetAnnotation(f.Name, commandLineOnly, nil) }) // it is there
}

// Seldom leaves flags out of the help. "config show" lists them.
func Seldom(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.MarkHidden(name) // it is there
	}
}

// InPlaceOf makes a flag replace another one. A command line has one of them at most, and the flag takes precedence
// over the other one's value in the environment.
func InPlaceOf(flags *pflag.FlagSet, flag, other string) {
	_ = flags.SetAnnotation(flag, inPlaceOf, []string{other}) // it is there
}

const (
	inPlaceOf = "in place of"
	from      = "from"
)

// OnCommandLine reports whether a flag is on the command line, and not in the environment or a file alone.
func OnCommandLine(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)
	return f.Changed && From(f) == ""
}

// From returns the variable, or the place in a file, that has set a flag; "": none.
func From(f *pflag.Flag) string { return strings.Join(f.Annotations[from], "") }

// IsCommandLineOnly reports whether a flag can only be set on the command line.
func IsCommandLineOnly(f *pflag.Flag) bool {
	_, is := f.Annotations[commandLineOnly]
	return is || f.Name == "help"
}

// VariableOf returns the environment variable of a flag of a program: TMSHARE_ and its name (--base-url:
// TMSHARE_BASE_URL). Those of --data and --config name the program too, as each program has its own.
func VariableOf(program, flag string) string {
	if flag == "data" || flag == "config" {
		flag = strings.TrimPrefix(program, "tmshare-") + "-" + flag
	}
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

const (
	variablePrefix = "TMSHARE_"
	// oldData is the variable of --data that both programs had up to version 0.1.
	oldData = variablePrefix + "DATA"
)

// Settle sets each flag that is not on the command line from its variable, unless that is empty, or else from the
// configuration file. It warns of variables with a former name.
func Settle(cmd *cobra.Command, env Environment, warn io.Writer) error {
	flags, program := cmd.Flags(), cmd.Root().Name()
	given, failed := configured(cmd, env)
	flags.VisitAll(func(f *pflag.Flag) {
		if other := f.Annotations[inPlaceOf]; len(other) > 0 && OnCommandLine(flags, other[0]) {
			if f.Changed && failed == nil {
				failed = UsageError(fmt.Errorf("--%s and --%s say two places: leave one out", f.Name, other[0]))
			}
			return
		}
		if IsCommandLineOnly(f) || f.Changed || failed != nil {
			return
		}
		name := VariableOf(program, f.Name)
		value := env.Getenv(name)
		if old := env.Getenv(oldData); f.Name == "data" && value == "" && old != "" {
			fmt.Fprintf(warn, "%s: %s is %s now, as each program has a folder of its own: set that\n", program, oldData, name)
			value = old
		}
		set := given[f.Name]
		if len(set.Values) > 1 && !strings.HasSuffix(f.Value.Type(), "Array") && !strings.HasSuffix(f.Value.Type(), "Slice") {
			failed = UsageError(fmt.Errorf("%s: %s has one value: leave the others out", set.Place, f.Name))
		}
		if value != "" {
			set = Given{f.Name, []string{value}, name}
		}
		for _, v := range set.Values {
			_ = flags.SetAnnotation(f.Name, from, []string{set.Place}) // it is there
			if err := flags.Set(f.Name, v); err != nil {
				failed = &ExitError{Usage, fmt.Errorf("%s: %w%s", set.Place, err, howToWrite(err))}
			}
		}
	})
	return failed
}

// configured returns the flags in the configuration file, by name. Each must be of some command.
func configured(cmd *cobra.Command, env Environment) (map[string]Given, error) {
	if env.Read == nil {
		return nil, nil
	}
	path := cmp.Or(cmd.Flag("config").Value.String(), env.Getenv(VariableOf(cmd.Root().Name(), "config")))
	if path == "" {
		return nil, nil
	}
	all, err := env.Read(path)
	by, known := map[string]Given{}, map[string]bool{}
	visitFlags(cmd.Root(), func(f *pflag.Flag) {
		known[f.Name] = known[f.Name] || !IsCommandLineOnly(f) && f.Name != "config"
	})
	for _, g := range all {
		if by[g.Flag] = g; !known[g.Flag] && err == nil {
			err = fmt.Errorf("%s: there is no key %q: \"%s config show COMMAND\" lists those of a command", g.Place, g.Flag,
				cmd.Root().Name())
		}
	}
	if err != nil {
		return nil, UsageError(err)
	}
	return by, nil
}

// decimal reads a number as people do: a 0 in front is no sign of another base.
type decimal struct{ pflag.Value }

func (d decimal) Set(s string) error {
	return d.Value.Set(cmp.Or(strings.TrimLeft(s, "0"), s))
}

// visitFlags calls visit with the flags of a command and of those below it.
func visitFlags(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.Flags().VisitAll(visit)
	cmd.PersistentFlags().VisitAll(visit)
	for _, c := range cmd.Commands() {
		visitFlags(c, visit)
	}
}

// StateDir returns the default data folder of a program: under XDG_STATE_HOME, or under .local/state in the home
// folder; "" without a home folder, so that data are in no unexpected place.
func StateDir(program string) string {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the XDG specification: relative ones are invalid
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "tmshare", program)
}

// LocalAuthor returns the name of the user and the host; "" if not known.
func LocalAuthor() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if name == "" || err != nil {
		return ""
	}
	return name + "@" + host
}
