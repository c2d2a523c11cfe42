package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// contradictions are pairs of contradictory flags.
var contradictions = [][2]string{{"quiet", "verbose"}, {"no-merge", "root"}, {"previous", "base"}}

// checkContradictions returns an error where flags contradict each other.
func checkContradictions(flags *pflag.FlagSet) error {
	given := func(name string) bool {
		f := flags.Lookup(name)
		return f != nil && f.Changed && f.Value.String() != "false" && f.Value.String() != ""
	}
	for _, pair := range contradictions {
		if given(pair[0]) && given(pair[1]) {
			return UsageError(fmt.Errorf("--%s and --%s contradict each other: give one of them", pair[0], pair[1]))
		}
	}
	return nil
}

// checkValues returns an error for a negative number or time, which no flag allows, and for an invalid host.
func checkValues(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if hosts, are := f.Value.(pflag.SliceValue); are && f.Name == "host" && err == nil {
			for _, host := range hosts.GetSlice() {
				if host == "" || strings.ContainsAny(host, "/@ ") {
					err = UsageError(fmt.Errorf("--host %s: write a host, with a port or without, as in example.org", host))
				}
			}
		}
		if slices.Contains([]string{"int", "int64", "float64", "duration"}, f.Value.Type()) &&
			strings.HasPrefix(f.Value.String(), "-") && err == nil {
			err = UsageError(fmt.Errorf("--%s %s: it cannot be negative; leave the sign out", f.Name, f.Value))
		}
	})
	return err
}

// remedies are the remedies for errors of the system, which lack them.
var remedies = []struct {
	cause  error
	remedy string
}{
	{fs.ErrNotExist, "name what is there, or make its folder first"},
	{fs.ErrPermission, "look who may read and write it, or name another one"},
	{syscall.EISDIR, "name a file in it"},
	{syscall.ENOTDIR, "a part of the path is a file: name another path"},
	{syscall.ENOSPC, "free some space on the disk"},
	{syscall.EROFS, "name a place that can be written to"},
	{syscall.EADDRINUSE, "stop the program that listens there, or give another address"},
	{syscall.EADDRNOTAVAIL, "give an address of this machine"},
	{syscall.ECONNREFUSED, "check the address, and that the server runs"},
}

// withRemedies returns the text of an error. It appends the remedy to each line that ends with an error of the system,
// or with one that knows its remedy.
func withRemedies(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] += remedy(err, line)
	}
	return strings.Join(lines, "\n")
}

func remedy(err error, line string) string {
	var known interface {
		error
		Remedy() string
	}
	if errors.As(err, &known) && known.Remedy() != "" && strings.HasSuffix(line, known.Error()) {
		return "; " + known.Remedy()
	}
	var address *net.AddrError
	if errors.As(err, &address) && strings.HasSuffix(line, address.Err) {
		return "; write HOST:PORT, as in 127.0.0.1:8080"
	}
	for _, r := range remedies {
		var number syscall.Errno
		if errors.Is(err, r.cause) && errors.As(err, &number) && strings.HasSuffix(line, number.Error()) {
			return "; " + r.remedy
		}
	}
	return ""
}

// Args wraps a check of positional arguments to return a usage error that names the missing ones.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		switch {
		case strings.Contains(err.Error(), "arg(s)"): // too few or too many: cobra does not say which there are
			err = fmt.Errorf("%s; write %s", countArguments(cmd, args, err), cmd.UseLine())
		case cmd.HasSubCommands():
			err = fmt.Errorf("%w%s", err, similar(cmd, args[0]))
		case strings.HasPrefix(err.Error(), "unknown command"): // it has none
			err = fmt.Errorf("%q is left over; write %s", args[0], cmd.UseLine())
		}
		return UsageError(fmt.Errorf("%w\nTry \"%s --help\"", err, cmd.CommandPath()))
	}
}

// countArguments names the missing or superfluous arguments, by the usage line of a command.
func countArguments(cmd *cobra.Command, args []string, otherwise error) string {
	var all, needed []string
	complete := true // the line has arguments only
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(strings.TrimLeft(word, "[{"), "-") || strings.HasPrefix(word, "{") || word == "|" ||
			word == "[flags]" {
			complete = word == "[flags]"
			break
		}
		if all = append(all, word); !strings.HasPrefix(word, "[") {
			needed = append(needed, word)
		}
	}
	switch {
	case len(args) < len(needed):
		return missing(needed[len(args):])
	case complete && len(args) > len(all):
		return fmt.Sprintf("%q is left over", args[len(all)])
	}
	return otherwise.Error()
}

// similar returns a question for the command that may be meant.
func similar(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2 // as cobra has it for the commands of the root
	all := cmd.SuggestionsFor(word)
	if len(all) == 0 {
		return commandsOf(cmd)
	}
	return fmt.Sprintf("; did you mean %q?", cmd.CommandPath()+" "+all[0])
}

// commandsOf names the commands of one that has only those.
func commandsOf(cmd *cobra.Command) string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return "; there are " + strings.Join(names, ", ")
}

func missing(words []string) string {
	if len(words) == 1 {
		return words[0] + " is missing"
	}
	return strings.Join(words, " and ") + " are missing"
}
