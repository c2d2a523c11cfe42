package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
)

func (a *app) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Prove that subscriptions are equal to their sources",
		Long: `Fetch the server's map as of now, bring the subscription to that point, and compare
the two in canonical form (ISO 13250-4).

Exit codes: 0 equal, 4 different, 1 error, 3 equal, but something is in quarantine.`,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if err := a.db.Damage(ctx); err != nil {
				return err
			}
			names, err := a.names(ctx, args)
			if err != nil {
				return err
			}
			var failed []error
			verdicts := []*client.Verdict{}
			var different, quarantined []string
			for _, name := range names {
				v, err := a.client.Verify(ctx, name)
				if err != nil {
					failed = append(failed, fmt.Errorf("%s: %w", name, err))
					verdicts = append(verdicts, &client.Verdict{Name: name, Error: err.Error()})
					if ctx.Err() != nil {
						break
					}
					continue
				}
				verdicts = append(verdicts, v)
				left, err := a.db.Quarantine(ctx, name)
				if err != nil {
					return err
				}
				if len(left) > 0 {
					quarantined = append(quarantined, quarantineOf(name, len(left)))
				}
				if !v.Equal {
					different = append(different, name)
				}
				if !a.json {
					a.printVerdict(v)
				}
			}
			if a.json {
				failed = append(failed, a.print(verdicts))
			}
			if err := errors.Join(failed...); err != nil {
				return err
			}
			if len(different) == 0 {
				return a.inQuarantine(quarantined)
			}
			exit := &cli.ExitError{Code: cli.Differs}
			if a.quiet { // nothing else has said it
				exit.Err = fmt.Errorf("different from the server's map: %s", strings.Join(different, ", "))
			}
			return exit
		}),
	}
}

// maxDifferences is how many topics a verdict for people lists.
const maxDifferences = 50

func (a *app) printVerdict(v *client.Verdict) {
	if v.Equal {
		a.printf("%s: equal to the server's map of %s: %d topics, %d associations, SHA-256 of the canonical form %s\n",
			v.Name, feeds.FormatTime(v.AsOf), v.Topics, v.Associations, v.Digest)
		return
	}
	a.printf("%s: differs from the server's map of %s in %d topics (- only here, + only at the server)\n", v.Name, feeds.FormatTime(v.AsOf), len(v.Differences))
	for i, d := range v.Differences {
		if i == maxDifferences {
			a.printf("… and %d more topics; --json lists them all\n", len(v.Differences)-i)
			break
		}
		a.printf("%s\n", d.TopicSI)
		for _, line := range d.Here {
			a.printf("  - %s\n", line)
		}
		for _, line := range d.Server {
			a.printf("  + %s\n", line)
		}
	}
}
