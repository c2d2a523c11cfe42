// Package config is an extension: configuration files, and the command that shows settings and their origin.
package config

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
)

// Extension returns it.
func Extension() extension.Extension {
	return extension.Extension{Name: "config", Configured: read, Commands: func(a *extension.App) []*cobra.Command {
		cmd := &cobra.Command{Use: "config", Short: "Show the settings of a command, and where they come from",
			Args: cli.Args(cobra.NoArgs), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
		cmd.AddCommand(show(a))
		return cli.In(cli.Operations, cmd)
	}}
}

// Shown is a setting in the output for programs.
type Shown struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	From     string `json:"from"` // "flag", the name of a variable, a file and line, or "default"
	Variable string `json:"variable"`
	Default  string `json:"default"`
	Usage    string `json:"usage"`
}

func show(a *extension.App) *cobra.Command {
	command, program := "watch", "tmshare-client"
	if a.Serves {
		command, program = "serve", "tmshare-server"
	}
	cmd := &cobra.Command{
		Use:   "show [COMMAND] [-- FLAGS...]",
		Short: "Show what is in force for a command, and from where",
		Long: `Show what is in force for COMMAND (default: ` + command + `), and from where: from a flag, from the
environment, from the file of --config, or by default. What comes first in this order counts. All
settings are shown, also those that the help leaves out.

The file is in YAML, and its keys are the names of flags: "base-url: https://maps.example.org". A
flag that is repeatable has a list, and one that takes NAME=VALUE a mapping. What the file says
holds for all commands of the program that have such a flag. The variable
` + cli.VariableOf(program, "config") + ` names the file, too.`,
		Example: `  ` + program + ` config show
  ` + program + ` config show ` + command + ` --config /etc/tmshare/settings.yaml -- --verbose`,
		RunE: a.Apart(func(_ context.Context, args []string) error {
			root := a.Command.Root()
			if len(args) == 0 || a.Command.ArgsLenAtDash() == 0 {
				args = append([]string{command}, args...)
			}
			target, rest, err := root.Find(args)
			if err != nil || target == root {
				return cli.UsageError(
					fmt.Errorf("%s has no command %q: \"%[1]s --help\" lists them", root.Name(), args[0]))
			}
			if err := target.ParseFlags(rest); err != nil {
				return cli.UsageError(fmt.Errorf("%w\nTry \"%s --help\"", err, target.CommandPath()))
			}
			if extra := target.Flags().Args(); len(extra) > 0 { // they can be left out
				if err := target.ValidateArgs(extra); err != nil {
					return cli.UsageError(err)
				}
			}
			if err := cli.Settle(target, a.Environment(), a.Command.ErrOrStderr()); err != nil {
				return err
			}
			all := settings(root.Name(), target.Flags())
			if json, _ := a.Command.Flags().GetBool("json"); json {
				return cli.WriteJSON(a.Command.OutOrStdout(), all)
			}
			return write(a.Command.OutOrStdout(), all)
		}),
	}
	if a.Serves {
		cmd.Flags().Bool("json", false, "print JSON for programs")
	}
	return cmd
}

// settings returns the settings of a command.
func settings(program string, fl *pflag.FlagSet) (all []Shown) {
	fl.VisitAll(func(f *pflag.Flag) {
		if cli.IsCommandLineOnly(f) || f.Deprecated != "" {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		from := "default"
		if f.Changed {
			from = cmp.Or(cli.From(f), "flag")
		}
		all = append(all, Shown{f.Name, hidden(f.Value.String()), from, cli.VariableOf(program, f.Name), f.DefValue, usage})
	})
	return all
}

// secrets are the parts of a value that are hidden: passwords in addresses, even malformed ones, and in settings of
// databases.
var secrets = regexp.MustCompile(`(://[^/\s:@]*:)[^\s@]*@|((?:password|token)=)[^\s&\]]*`)

// hidden returns a value without its secrets.
func hidden(value string) string {
	return secrets.ReplaceAllStringFunc(value, func(secret string) string {
		m := secrets.FindStringSubmatch(secret)
		if m[2] != "" {
			return m[2] + "xxxxx"
		}
		return m[1] + "xxxxx@"
	})
}

func write(to io.Writer, all []Shown) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tVALUE\tFROM\tVARIABLE")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Key, cmp.Or(s.Value, "-"), s.From, s.Variable)
	}
	return w.Flush()
}
