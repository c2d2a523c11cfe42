package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/clientcmd"
)

func deriveCommand() *cobra.Command {
	var r remote
	var from []string
	var title, data string
	var expand bool
	cmd := &cobra.Command{
		Use:   "derive NAME --from A,B,...",
		Short: "Publish what several sources say together as a collection of its own",
		Long: `Publish what collections and subscriptions of a running server say together, as the
collection NAME. It has feeds and snapshots as all collections have. A change of
an input is published within a second or two: the topics that it changes, and
no others. What the owner of the node rejects is not in it.

It cannot be written. An input must not be derived itself: derive from what that is
derived from. With --expand, a subscription whose source is derived stands for that: what
the server does not have yet is subscribed to. This takes the data folder of the server.

"collections delete" removes it; the inputs stay.`,
		Example: `  tmshare-server derive all --from egov,libraries
  tmshare-server derive all --from egov,neighbours --expand --data /var/lib/tmshare`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	cmd.Flags().StringSliceVar(&from, "from", nil, "`names` of collections and subscriptions of the server")
	cmd.Flags().StringVar(&title, "title", "", "title of the collection")
	cmd.Flags().BoolVar(&expand, "expand", false, "derive from what derived sources are derived from, and follow that")
	cmd.Flags().StringVar(&data, "data", cli.StateDir("server"), "data `folder` of the server, for --expand")
	return r.command(cmd, func(ctx context.Context, args []string) error {
		if len(from) == 0 {
			return fmt.Errorf("nothing to derive %s from: name collections or subscriptions with --from", args[0])
		}
		if expand {
			var err error
			if from, err = clientcmd.Expand(ctx, cmd.Root().Name(), data, from); err != nil {
				return err
			}
		}
		change := admin.Change{"derivedFrom": from}
		if title != "" {
			change["title"] = title
		}
		s, _, err := r.server.Put(ctx, args[0], change, "")
		if err != nil {
			return err
		}
		return r.print(shown{args[0], "", s}, fmt.Sprintf("%s: derived from %s", args[0], strings.Join(from, ", ")))
	})
}
