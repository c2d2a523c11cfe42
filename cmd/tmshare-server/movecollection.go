package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
)

func moveCollection() *cobra.Command {
	var r remote
	var to string
	var cancel bool
	cmd := &cobra.Command{
		Use:   "move NAME",
		Short: "Move a collection to the store of another server",
		Long: `Move the collection NAME from one running server (--server) to another (--to), which has
the same --base-url. Its log, its history, its snapshots and its addresses stay, so
followers that come by a server in front of both notice nothing. It is read all the time.
While it is copied, it is not written: writers are asked to try again (503).

If the move is interrupted, at most one of the two takes changes: run the command again to
complete it. --cancel ends it instead, and the first server goes on; this is refused once
the other one has all. What the other server refuses is ended at once.

A collection that is derived, or a replica, or that others depend on cannot be moved. The
token must be one for writing at both servers. A file that the first server follows for it
(serve --map with --watch) is to be followed by the other one.`,
		Example: `  tmshare-server collections move egov --server http://10.0.0.2:8080 \
    --to http://10.0.0.3:8080 --token-file tokens`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	cmd.Flags().StringVar(&to, "to", "", "`URL` of the other server itself, without /topicmaps")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end a move that is not complete")
	return r.command(cmd, func(ctx context.Context, args []string) error {
		other := func(address string) (*admin.Client, error) { return reach("--to", address, r.tokenFile, r.caCert) }
		if cancel == (to != "") {
			return cli.UsageError(errors.New("give either --to URL or --cancel"))
		}
		if cancel {
			kept, err := admin.CancelMove(ctx, r.server, other, args[0])
			if err != nil {
				return err
			}
			if kept.Warning != "" && !r.json {
				fmt.Fprintln(os.Stderr, "warning: "+kept.Warning)
			}
			if !kept.Kept {
				return r.print(kept, args[0]+": what had arrived at "+r.address+" is removed")
			}
			return r.print(kept, args[0]+": stays at "+r.address+", and is written there")
		}
		target, err := other(to)
		if err != nil {
			return err
		}
		moved, err := admin.Move(ctx, r.server, target, args[0])
		if err != nil {
			return err
		}
		return r.print(moved, args[0]+": moved to "+moved.To)
	})
}
