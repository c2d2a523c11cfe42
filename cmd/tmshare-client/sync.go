package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
)

func (a *app) subscribe() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use:   "subscribe URL",
		Short: "Subscribe to a collection",
		Long: `Subscribe to the collection at URL: that of a server's overview (/topicmaps), of a
topic map feed or of a fragments feed. An overview with several collections is
answered with the list. The next sync loads the map.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: a.run(func(ctx context.Context, args []string) error {
			s, err := a.client.Subscribe(ctx, args[0], as)
			var choice *client.ChoiceError
			if errors.As(err, &choice) {
				if a.json {
					return errors.Join(a.print(choice.Collections), &cli.ExitError{Code: cli.Usage})
				}
				return &cli.ExitError{Code: cli.Usage, Err: err}
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.print(statusOf(s))
			}
			a.printf("subscribed to %s as %q; its statements begin with %s\n", s.FragmentsFeed, s.Name, s.SP)
			return nil
		}),
	}
	cmd.Flags().StringVar(&as, "as", "", "`name` of the subscription (default: from the URL)")
	return cmd
}

func (a *app) sync() *cobra.Command {
	return &cobra.Command{
		Use:   "sync [NAME...]",
		Short: "Bring subscriptions up to date",
		Long: `Do one round of the named subscriptions, or of all: a clean start from the newest
snapshot the first time, then only what has changed.

What could not be applied stays for the next round; nothing is skipped.`,
		RunE: a.run(func(ctx context.Context, args []string) error { return a.rounds(args, a.client.Sync, ctx) }),
	}
}

func (a *app) replace() *cobra.Command {
	return &cobra.Command{
		Use:   "replace NAME...",
		Short: "Replace sources as a whole by the servers' newest snapshots",
		Long: `Do a clean replacement of the named subscriptions: the newest snapshot and what came
after it are loaded beside the present state, which is shown until the new one is
complete. Other sources are not touched.`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.run(func(ctx context.Context, args []string) error { return a.rounds(args, a.client.Replace, ctx) }),
	}
}

// rounds does a round of each subscription; one that fails does not keep the
// others from theirs.
func (a *app) rounds(args []string, round func(context.Context, string) (*client.Round, error), ctx context.Context) error {
	names, err := a.names(args)
	if err != nil {
		return err
	}
	var failed []error
	done := []*client.Round{}
	for _, name := range names {
		r, err := round(ctx, name)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			done = append(done, &client.Round{Name: name, Error: err.Error()})
			if ctx.Err() != nil {
				break
			}
			continue
		}
		done = append(done, r)
		if a.quiet && r.Reason != "" && r.Reason != client.AskedFor { // cron's mail should say it
			fmt.Fprintf(os.Stderr, "%s: replaced as a whole: %s\n", name, r.Reason)
		}
		if !a.json {
			a.printf("%s: %s\n", name, describe(r))
		}
	}
	if a.json {
		failed = append(failed, a.print(done))
	}
	return errors.Join(failed...)
}

func describe(r *client.Round) string {
	at := feeds.FormatTime(r.Mark)
	switch {
	case r.CleanStart && r.Applied > 0:
		return fmt.Sprintf("loaded from a snapshot, then %d fragments applied; in step as of %s", r.Applied, at)
	case r.CleanStart:
		return fmt.Sprintf("loaded from a snapshot; in step as of %s", at)
	case r.Entries > 0:
		return fmt.Sprintf("%d changes, %d fragments applied; in step as of %s", r.Entries, r.Applied, at)
	}
	return fmt.Sprintf("nothing new; in step as of %s", at)
}

func (a *app) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Prove that subscriptions are equal to their sources",
		Long: `Fetch the server's map as of now, bring the subscription to that point, and compare
the two in canonical form (ISO 13250-4).

Exit codes: 0 equal, 4 different, 1 error.`,
		RunE: a.run(func(ctx context.Context, args []string) error {
			names, err := a.names(args)
			if err != nil {
				return err
			}
			var failed []error
			verdicts := []*client.Verdict{}
			var different []string
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
				return nil
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

// status is what is known of a subscription, for people and programs.
type status struct {
	Name       string     `json:"name"`
	Feed       string     `json:"feed"`
	SP         string     `json:"sourceLocatorPrefix"`
	State      string     `json:"state"`
	Mark       *time.Time `json:"mark,omitempty"` // the server's time
	Applied    int        `json:"applied"`
	LastCheck  *time.Time `json:"lastCheck,omitempty"`
	LastChange *time.Time `json:"lastChange,omitempty"`
	LastError  string     `json:"lastError,omitempty"`
}

func statusOf(s *store.Subscription) status {
	st := status{Name: s.Name, Feed: s.FragmentsFeed, SP: s.SP, State: "not loaded yet", LastError: s.LastError}
	if s.Staging != nil {
		st.State = "being loaded"
	}
	if s.State != nil {
		st.State = "in step"
		if s.Staging != nil {
			st.State = "being replaced"
		}
		if s.LastError != "" {
			st.State = "last round failed"
		}
		st.Mark, st.Applied = &s.State.Mark.Updated, s.State.Applied
	}
	if !s.LastCheck.IsZero() {
		st.LastCheck = &s.LastCheck
	}
	if !s.LastChange.IsZero() {
		st.LastChange = &s.LastChange
	}
	return st
}

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the subscriptions and how far each has come",
		Args:  cli.Args(cobra.NoArgs),
		RunE: a.run(func(context.Context, []string) error {
			all, err := a.db.Subscriptions()
			if err != nil {
				return err
			}
			list := []status{}
			for i := range all {
				list = append(list, statusOf(&all[i]))
			}
			if a.json {
				return a.print(list)
			}
			for _, st := range list {
				a.printStatus(st)
			}
			if len(list) == 0 {
				a.printf("no subscriptions in %s\n", a.data)
			}
			return nil
		}),
	}
}

func (a *app) printStatus(st status) {
	at := func(t *time.Time) string {
		if t == nil {
			return "never"
		}
		return feeds.FormatTime(*t)
	}
	a.printf("%s\n  feed         %s\n  prefix       %s\n  state        %s\n  in step with %s\n  fragments    %d applied\n  last change  %s\n  last check   %s\n",
		st.Name, st.Feed, st.SP, st.State, at(st.Mark), st.Applied, at(st.LastChange), at(st.LastCheck))
	if st.LastError != "" {
		a.printf("  last error   %s\n", st.LastError)
	}
}

func (a *app) print(value any) error {
	e := json.NewEncoder(a.command.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(value)
}
