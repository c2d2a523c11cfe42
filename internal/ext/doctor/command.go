package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
)

// Extension returns the command that looks at a node as a whole, of both programs.
func Extension() extension.Extension {
	return extension.Extension{Name: "doctor", Commands: func(a *extension.App) []*cobra.Command {
		if a.Held != nil { // it runs commands in that process
			return nil
		}
		return cli.In(cli.Operations, a.OnFolder(command(a)))
	}}
}

func command(a *extension.App) *cobra.Command {
	n := Node{Program: a.Request.Program, Now: time.Now}
	long, example := aboutClient, exampleOfClient
	if a.Serves {
		n.Serving = &extension.Serving{}
		long, example = aboutServer, exampleOfServer
	}
	var checkFormats formats.Check
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what is not as it should be, and what mends it", Example: example,
		Long: long + `

Each finding is printed with what is to be done. Nothing is changed.` + cli.Exits(cli.Differs),
		Args: cli.Args(cobra.NoArgs),
		RunE: a.Apart(func(ctx context.Context, _ []string) error {
			if a.Store != "" {
				return cli.UsageError(errors.New("doctor looks at a data folder, not at a database: leave --store out. For a " +
					"database there are \"check\" and \"status\" with --store, and /readyz of its servers"))
			}
			if a.Data == "" {
				return cli.ErrNoData
			}
			n.Data, n.Formats = a.Data, a.Formats()
			if n.Serving != nil {
				maps, err := cli.Pairs("map", n.Serving.Maps)
				if err == nil {
					_, err = checkFormats(maps)
				}
				if err != nil {
					return cli.UsageError(err)
				}
			}
			n.Run = func(ctx context.Context, args ...string) control.Outcome {
				return a.Captured(ctx, append(args, "--data", a.Data)...)
			}
			ctx, stop := cli.UntilInterrupted(ctx)
			defer stop()
			r := Look(ctx, &n)
			err := ctx.Err()
			if err == nil && a.JSON {
				err = a.Print(r)
			} else if err == nil {
				err = r.Print(a.Command.OutOrStdout(), a.Quiet)
			}
			if err == nil && len(r.Findings) > 0 {
				err = cli.Exit(cli.Differs)
			}
			return err
		}),
	}
	fl := cmd.Flags()
	fl.DurationVar(&n.MaxLag, "max-lag", time.Hour, "a copy that may be older than this `time` is a finding")
	fl.BoolVar(&n.Thorough, "thorough", false, "read and compare all of the data folder, as \"check\" does")
	fl.BoolVar(&n.Offline, "offline", false, "ask no servers")
	if n.Serving != nil {
		n.Serving.AddFlags(fl)
		n.Serving.AddFiles(fl)
		n.Flags = fl
		checkFormats = a.FormatFlags(fl, formats.Use{Reads: true, Several: true})
	}
	return cmd
}

const (
	aboutClient = `Look at the data folder and at what it follows: whether the folder is whole, of this
format, closed to others and on a disk with space; whether each subscription is in
step, proven, without quarantine, and not old; whether its server answers, and its
clock agrees with the one here; whether targets are in step.`
	exampleOfClient = `  tmshare-client doctor
  tmshare-client doctor --json | jq -r '.findings[] | [.where, .remedy] | @tsv'`
	aboutServer = `Look at a server: whether its data folder is whole, of this format, closed to others
and on a disk with space; whether it runs, and answers under its own address; whether
its settings let others read tokens or write; whether collections lack inputs, or files
that they follow (--watch) are missing, broken or held back; whether targets are in step, and WebSub hubs take what
they are told;
how what it follows is, as "tmshare-client doctor" says.

A server that runs is asked for its settings; flags that are given here count more.
For one that does not run, give the flags and the environment that "serve" has.`
	exampleOfServer = `  tmshare-server doctor --listen :8080 \
    --base-url https://maps.example.org --token-file /etc/tmshare/tokens
  (set -a; . /etc/default/tmshare-server; tmshare-server doctor --data /var/lib/tmshare/server)`
)
