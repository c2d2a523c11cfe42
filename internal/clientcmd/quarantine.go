package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

func (a *app) retry() *cobra.Command {
	return &cobra.Command{
		Use:   "retry NAME [SI...]",
		Short: "Try again what is in quarantine",
		Long: `Fetch and apply again the changes of the subscription NAME that are in quarantine:
those of the topics with the subject identifiers SI, or all. Every sync does so as
well, for all of them.

With exit code 0 nothing is in quarantine any more; with 3 something still is.` + exitsOfRounds,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.run(func(ctx context.Context, args []string) error {
			topics, err := a.quarantined(ctx, args[0], args[1:])
			if err != nil {
				return err
			}
			return a.rounds(args[:1], func(ctx context.Context, name string) (*client.Round, error) {
				return a.client.Retry(ctx, name, topics...)
			}, ctx)
		}),
	}
}

func (a *app) forget() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "forget NAME SI... | forget NAME --all",
		Short: "Give up changes that are in quarantine",
		Long: `Take changes of the subscription NAME out of quarantine without applying them: those
of the topics with the subject identifiers SI, or --all. The copy stays without
them, until the next change of the topic or a replace; verify will tell.`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 1) {
				return cli.UsageError(errors.New("name the topics by their subject identifiers, or give --all"))
			}
			return nil
		},
		RunE: a.run(func(ctx context.Context, args []string) error {
			topics, err := a.quarantined(ctx, args[0], args[1:])
			if err != nil {
				return err
			}
			n, err := a.client.Forget(ctx, args[0], topics...)
			if err != nil {
				return err
			}
			return a.Tell(map[string]any{"name": args[0], "forgotten": n}, "%s: changes given up: %d", args[0], n)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all of the subscription's")
	return cmd
}

// quarantined returns the entries in quarantine of the named topics. It finds misspelt names before anything is done.
func (a *app) quarantined(ctx context.Context, name string, topics []string) (all []string, err error) {
	if _, err := a.client.Subscription(ctx, name); err != nil {
		return nil, err
	}
	list, err := a.DB.Quarantine(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, si := range topics {
		meant, _ := tmdm.Named(si)
		at := slices.IndexFunc(list, func(q store.Quarantined) bool {
			return q.TopicSI == si || slices.Contains(meant, tmdm.Locator(q.TopicSI))
		})
		if at < 0 {
			return nil, fmt.Errorf("%s: %s is not in quarantine; \"tmshare-client status -v\" lists what is", name, si)
		}
		all = append(all, list[at].TopicSI)
	}
	return all, nil
}
