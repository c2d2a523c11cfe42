package demo

import (
	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns it: the command of tmshare-server.
func Extension() extension.Extension {
	return extension.Extension{Name: "demo", Commands: func(a *extension.App) []*cobra.Command {
		if !a.Serves {
			return nil
		}
		return cli.In(cli.Everyday, command(a))
	}}
}

func command(a *extension.App) *cobra.Command {
	o := Options{Parts: extension.Parts(a.Extensions), Stores: extension.Stores(a.Extensions, store.Options{})}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Walk through publishing, syncing and verifying on example maps",
		Long: `Start a server on a free loopback port with two example maps, a client and an
aggregating client. Walk through clean start, change, partial update,
deletion and verification. Everything lives in a temporary folder.

It ends with a proof of equality, and goes on serving until it is stopped; with
--once it ends there, with exit code 0 if all is equal.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.UntilInterrupted(cmd.Context())
			defer stop()
			o.Out = cmd.OutOrStdout()
			return Run(ctx, o)
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "end after the walk")
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 is a free one")
	return cmd
}
