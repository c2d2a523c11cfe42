package clientcmd

import (
	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
)

func (a *app) replicate() *cobra.Command {
	o := client.SubscribeOptions{Replicate: true}
	cmd := &cobra.Command{
		Use:   "replicate URL [URL…]",
		Short: "Subscribe to a collection, and serve it on as a replica",
		Long: `Subscribe to the collection at URL, as "subscribe" does, and serve on what the
subscription has: "tmshare-server serve" on the same data folder publishes it under
the name of the subscription, entry for entry as its origin does. Feed id, entry ids,
times, digests and checkpoints are the origin's. So whoever follows the origin can go
on with the replica, and back:

  tmshare-client subscribe URL-OF-THE-ORIGIN URL-OF-THE-REPLICA

The collection shows when the first round is done. It is read-only: who writes to it
is told where the origin is. A replica of a replica is like any other. "unsubscribe
NAME" ends it. Further URLs are those of other replicas, to follow while the first
cannot be reached.` + cli.Exits(cli.Unreachable),
		Example: `  tmshare-client replicate http://127.0.0.1:8080/topicmaps/egov --as egov-copy`,
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		PreRunE: func(*cobra.Command, []string) error { return checkKey(o.Key) },
		RunE: a.subscribing(&o, func(s *store.Subscription) {
			a.Printf("%q replicates %s; it is served on when the first round is done\n", s.Name, s.FragmentsFeed)
			if s.TokenFile != "" {
				a.Printf("its source wants a token of readers; all may read what is served on, unless \"serve\" has "+
					"--read-token-file %s=FILE\n", s.Name)
			}
		}),
	}
	subscribeFlags(cmd.Flags(), &o, "replica")
	return cmd
}
