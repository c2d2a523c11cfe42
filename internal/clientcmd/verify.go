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
	"github.com/tmshare/tmshare/internal/iri"
)

func (a *app) verify() *cobra.Command {
	full := false
	command := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Prove that subscriptions are equal to their sources",
		Long: `Bring the subscription in step, and prove it equal to the source.

Where the server states digests of its states, the digest of the copy is compared with the last one:
that costs no request. Topics that differ are fetched anew. With --full, and where nothing is
stated, the server's map as of now is fetched, and all records of both are compared. Before that,
all rows of the copy are read: damaged rows are mended, and records that cannot be read are
removed. What is missing then is fetched anew, if the server states digests. If it does not,
"replace NAME" starts afresh.

With exit code 3 they are equal, but something is in quarantine.` + exitsOfRounds,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if err := a.DB.Damage(ctx); err != nil {
				return err
			}
			a.Became = "what is applied stays, and the next sync goes on from there"
			names, err := a.names(ctx, args)
			if err != nil {
				return err
			}
			var failed []error
			verdicts := []*client.Verdict{}
			var different, quarantined []string
			for _, name := range names {
				v, err := a.client.Verify(ctx, name, full)
				if err != nil {
					failed = append(failed, fmt.Errorf("%s: %w", name, err))
					verdicts = append(verdicts, &client.Verdict{Name: name, Error: err.Error()})
					if ctx.Err() != nil {
						break
					}
					continue
				}
				verdicts = append(verdicts, v)
				left, err := a.DB.Quarantine(ctx, name)
				if err != nil {
					return err
				}
				if len(left) > 0 {
					quarantined = append(quarantined, quarantineOf(name, len(left)))
				}
				if !v.Equal {
					different = append(different, name)
				}
				if !a.JSON {
					a.printVerdict(v, a.inRDF(ctx, name))
				}
			}
			if a.JSON {
				failed = append(failed, a.Print(verdicts))
			}
			if err := errors.Join(failed...); err != nil {
				return err
			}
			if len(different) == 0 {
				return a.inQuarantine(quarantined)
			}
			exit := &cli.ExitError{Code: cli.Differs}
			if a.Quiet { // nothing was printed
				exit.Err = fmt.Errorf("different from the server's map: %s", strings.Join(different, ", "))
			}
			return exit
		}),
	}
	command.Flags().BoolVar(&full, "full", false,
		"read all rows of the copy, fetch the server's map, and compare all records")
	return command
}

// maxDifferences is the maximum number of topics that the result lists for people.
const maxDifferences = 50

// inRDF reports whether a subscription requests only RDF: then the copy lacks what RDF cannot express.
func (a *app) inRDF(ctx context.Context, name string) bool {
	s, err := a.client.Subscription(ctx, name)
	if err != nil {
		return false
	}
	f, err := a.Formats().Served().Named(s.Format)
	return err == nil && f.Exchange != nil
}

func (a *app) printVerdict(v *client.Verdict, inRDF bool) {
	repaired := ""
	if v.Mended > 0 {
		repaired += fmt.Sprintf("; damaged rows that were mended: %d", v.Mended)
	}
	if v.Repaired > 0 {
		repaired += fmt.Sprintf("; %s had to be repaired", countTopics(v.Repaired))
	}
	if v.Replaced != "" {
		repaired += "; the source was replaced: " + v.Replaced
	}
	switch {
	case v.Equal && v.Full:
		a.Printf("%s: equal to the server's map of %s: %d topics, %d associations, state digest %s%s\n",
			v.Name, feeds.FormatTime(v.AsOf), v.Topics, v.Associations, v.Digest, repaired)
		return
	case v.Equal:
		a.Printf("%s: equal to the server's map of %s: the server states the same digest %s%s\n", v.Name,
			feeds.FormatTime(v.AsOf), v.Digest, repaired)
		return
	}
	if v.Unproven != "" && len(v.Differences) == 0 {
		a.Printf("%s: says the same as the server's map of %s, but neither is what the source states: %s%s\n", v.Name,
			feeds.FormatTime(v.AsOf), v.Unproven, repaired)
		return
	}
	a.Printf("%s: differs from the server's map of %s in %d topics (- only here, + only at the server)%s\n", v.Name,
		feeds.FormatTime(v.AsOf), len(v.Differences)+v.More, repaired)
	for i, d := range v.Differences {
		if i == maxDifferences {
			a.Printf("… and %d more topics; --json lists the first 1,000\n", len(v.Differences)+v.More-i)
			break
		}
		a.Printf("%s\n", iri.Shown(d.TopicSI))
		for _, line := range d.Here {
			a.Printf("  - %s\n", line)
		}
		for _, line := range d.Server {
			a.Printf("  + %s\n", line)
		}
	}
	if inRDF {
		a.Printf("%s: fragments in RDF carry no more, and were asked for: \"unsubscribe %[1]s\", then subscribe "+
			"without --format, to have all\n", v.Name)
		return
	}
	a.Printf("%s: \"replace %[1]s\" starts afresh from the server's newest snapshot\n", v.Name)
}
