package clientcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
)

func (a *app) status() *cobra.Command {
	var node, history bool
	cmd := &cobra.Command{
		Use:     "status [NAME]...",
		Aliases: []string{"subscriptions"},
		Short:   "Show the subscriptions and how far each has come",
		Long: `Show the subscriptions, all or those with a NAME, a line for each: its state; how old the copy can be at
most (its lag); how many topics are in quarantine, because their last change could not be applied; and
what it is in doubt about, or why its last round failed.

Targets, and what else is kept in step with them elsewhere, have a line if somebody must look after them.

With --verbose, show all that is known of them: where the source is, the server's time up to which each
is applied, which topics are in quarantine, and why. --json has all that, too.

With --node, show the whole node: what it publishes, what it follows, and how much
disk it takes.

With --history, show what the rounds of the last day were like, in periods of five
minutes: how many there were and failed, how many entries were applied, and the
greatest lag.

With exit code 3 something is in quarantine or in doubt; with 4 a copy is not what its source states, as
of sync. "unproven" of --json has any other reason. A last round that failed is no error of this
command: it is in the output.` + cli.Exits(cli.Quarantined, cli.Differs),
		Example: `  tmshare-client status
  tmshare-client status --json | jq -r '.[] | [.name, .lagSeconds, .quarantined] | @tsv'`,
		RunE: a.runReading(func(ctx context.Context, names []string) error {
			n, err := status.OfNode(ctx, a.DB, a.client.Now(), a.Held.Serving)
			if err != nil {
				return err
			}
			list := slices.DeleteFunc(n.Follows, func(st status.Status) bool {
				return len(names) > 0 && !slices.Contains(names, st.Name)
			})
			for _, name := range names {
				if _, err := a.client.Subscription(ctx, name); err != nil {
					return err
				}
			}
			if err := a.addAsked(ctx, list); err != nil {
				return err
			}
			if history {
				if err := status.AddHistory(ctx, a.DB, list); err != nil {
					return err
				}
			}
			if node && !a.JSON {
				a.printPublished(n.Publishes)
			}
			if node && a.JSON {
				err = a.Print(n)
			} else if a.JSON {
				err = a.Print(list)
			} else if len(list) == 0 {
				a.Printf("no subscriptions in %s\n", a.Data)
			}
			var quarantined []string
			differs := false
			for i := range list {
				differs = differs || list[i].Differs
				if d := list[i].Doubt; d != nil {
					quarantined = append(quarantined, fmt.Sprintf("%s: %v", list[i].Name, d))
				}
				if list[i].Quarantined > 0 {
					quarantined = append(quarantined, quarantineOf(list[i].Name, list[i].Quarantined))
				}
				if !a.JSON && (a.Verbose || node || history) {
					a.printStatus(&list[i])
				}
			}
			if len(list) > 0 && !a.JSON && !a.Verbose && !node && !history {
				a.printLines(list)
			}
			a.printDependents(n.Dependents, names)
			if err != nil {
				return err
			}
			if node && !a.JSON {
				a.Printf("on disk\n  records      %d bytes\n  snapshots    %d bytes\n", n.Size.Records, n.Size.Snapshots)
			}
			if differs {
				return cli.Exit(cli.Differs)
			}
			return a.inQuarantine(quarantined)
		}),
		PreRunE: func(_ *cobra.Command, names []string) error {
			if node && len(names) > 0 {
				return cli.UsageError(errors.New("--node shows all: leave out the names"))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&node, "node", false, "the whole node: what it publishes and follows, and how much disk it takes")
	cmd.Flags().BoolVar(&history, "history", false, "what the rounds of the last day were like")
	return cmd
}

// asked returns the options of a subscription, as given to "subscribe".
func (a *app) asked(ctx context.Context, name string) (*status.Asked, error) {
	s, err := a.client.Subscription(ctx, name)
	if err != nil {
		return nil, err
	}
	return &status.Asked{Snapshots: s.SnapshotsFeed, Asked: s.Asked}, nil
}

// addAsked adds the options of subscriptions, and the names in their filters that their sources have not.
func (a *app) addAsked(ctx context.Context, list []status.Status) error {
	unmatched, err := a.Merged().Unmatched(ctx)
	for i := 0; i < len(list) && err == nil; i++ {
		list[i].Unmatched = unmatched[list[i].Name]
		list[i].Asked, err = a.asked(ctx, list[i].Name)
	}
	return err
}

// printLines prints a line for each subscription.
func (a *app) printLines(list []status.Status) {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tLAG\tQUARANTINE\tWHAT IS WRONG")
	for i := range list {
		st := &list[i]
		lag, quarantine, wrong := "-", "-", cmp.Or(st.Missing, st.LastError)
		if st.Lag != nil {
			lag = lagText(*st.Lag)
		}
		if st.Quarantined > 0 {
			quarantine = countTopics(st.Quarantined)
		}
		if st.Doubt != nil {
			wrong = st.Doubt.String()
		} else if wrong == "" && st.Unproven != "" {
			wrong = "not proven: " + st.Unproven
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", st.Name, st.State, lag, quarantine, cmp.Or(wrong, st.Unmatched, "-"))
	}
	table.Flush()
	a.Printf("%s", b.String())
}

// printDependents prints a line for each that needs attention, or, with --verbose, all facts. If names are given, it
// prints only those of these sources.
func (a *app) printDependents(all []store.Dependent, names []string) {
	for _, d := range all {
		switch {
		case a.JSON, len(names) > 0 && !slices.Contains(names, d.Of):
		case a.Verbose:
			a.Printf("%s, of %s\n  state        %s\n", d.Name, cmp.Or(d.Of, "the node"), cmp.Or(d.Wrong, d.State))
			for _, fact := range d.Facts {
				a.Printf("  %s\n", fact)
			}
		case d.Wrong != "" || d.State != string(status.InStep):
			a.Printf("%s, of %s: %s\n", d.Name, cmp.Or(d.Of, "the node"), cmp.Or(d.Wrong, d.State))
		}
	}
}

func (a *app) printPublished(all []status.Published) {
	for _, c := range all {
		how := "published here"
		switch {
		case c.Origin != "":
			how = "replica of " + c.Origin
		case len(c.DerivedFrom) > 0:
			if how = "derived from " + strings.Join(c.DerivedFrom, ", "); !c.Filter.Empty() {
				how += ", filtered"
			}
		}
		filling := ""
		if c.BeingFilled {
			filling = ", being filled: nobody is served before it is whole"
		}
		a.Printf("%s, %s\n  prefix       %s\n  topics       %d%s\n", c.Name, how, c.SP, c.Topics, filling)
		if c.Advice != "" {
			a.Printf("  input missing: %s\n", c.Advice)
		}
		signed := ""
		if c.Signed {
			signed = ", signed"
		}
		changed := "never"
		if c.LastChange != nil {
			changed = feeds.FormatTime(*c.LastChange)
		}
		a.Printf("  entries      %d%s\n  last change  %s\n", c.Entries, signed, changed)
	}
}

func quarantineOf(name string, topics int) string {
	return fmt.Sprintf("%s: %s in quarantine", name, countTopics(topics))
}

func countTopics(n int) string {
	if n == 1 {
		return "1 topic"
	}
	return fmt.Sprintf("%d topics", n)
}

// inQuarantine returns the result of a command after which the listed topics are in quarantine.
func (a *app) inQuarantine(list []string) error {
	if len(list) == 0 {
		return nil
	}
	end := &cli.ExitError{Code: cli.Quarantined}
	if a.Quiet && !a.JSON { // nothing was printed
		end.Err = fmt.Errorf("%s", strings.Join(list, "; "))
	}
	return end
}

func (a *app) printStatus(st *status.Status) {
	at := func(t *time.Time) string {
		if t == nil {
			return "never"
		}
		return feeds.FormatTime(*t)
	}
	a.Printf("%s\n", st.Name)
	row := func(name, format string, args ...any) {
		a.Printf("  %-12s "+format+"\n", append([]any{name}, args...)...)
	}
	row("feed", "%s", st.Feed)
	for _, at := range st.Addresses {
		row("address", "%s", at)
	}
	if st.Replica {
		row("replica", "served on here")
	}
	if st.Protocol != client.ProtocolTMShare {
		row("protocol", "%s", st.Protocol)
	}
	row("prefix", "%s", st.SP)
	for _, feed := range st.DerivedFrom {
		row("derived from", "%s", feed)
	}
	if st.Asked != nil && st.Filter != nil {
		row("filter", "%s", st.Filter)
		row("", "the copy has the whole, which is what is proven; \"export\", \"topic\" and \"find\" show the part")
		if st.Unmatched != "" {
			row("", "%s", st.Unmatched)
		}
	}
	row("state", "%s", cmp.Or(st.Missing, string(st.State)))
	if st.Doubt != nil {
		row("doubt", "%s", st.Doubt)
		row("", "%s", advice(st.Name, st.Doubt))
	}
	row("in step with", "%s", at(st.Mark))
	switch {
	case st.Proven != nil && st.Key != "":
		row("proven", "%s: the source has signed the same digest", at(st.Proven))
	case st.Proven != nil:
		row("proven", "%s: the source states the same digest", at(st.Proven))
	case st.Unproven != "":
		row("not proven", "%s", st.Unproven)
	}
	if st.Key != "" {
		name, _, _ := strings.Cut(st.Key, "+")
		row("signed", "%d entries, by %s", st.Signed, name)
	}
	if st.Ahead > 0 {
		row("", "which is later than now: changes that the server dates before that are not noticed;")
		row("", "tell its owner, and when its clock is right: \"tmshare-client replace %s\"", st.Name)
	}
	if st.Lag != nil {
		row("lag", "%s at most", lagText(*st.Lag))
	}
	row("fragments", "%d applied", st.Applied)
	if st.Unidentified > 0 {
		row("unidentified", "%s, to which the source gives no subject identifier; theirs are made here",
			countTopics(st.Unidentified))
	}
	if st.Rejected > 0 {
		unstated := ""
		if st.RejectedUnstated > 0 {
			unstated = fmt.Sprintf(", of which %d no longer stated", st.RejectedUnstated)
		}
		row("rejected", "%d%s (\"edit rejections\" lists them)", st.Rejected, unstated)
	}
	if st.Waiting > 0 {
		row("waiting", "%d records, until the source has all of their transactions", st.Waiting)
	}
	row("last change", "%s", at(st.LastChange))
	row("last check", "%s", at(st.LastCheck))
	if st.LastError != "" {
		row("last error", "%s", st.LastError)
	}
	for i := range st.History {
		a.printSample(&st.History[i])
	}
	if st.Quarantined == 0 {
		return
	}
	row("quarantine", "%s", countTopics(st.Quarantined))
	for _, q := range st.Quarantine {
		title := ""
		if q.Title != "" {
			title = fmt.Sprintf(" %q", q.Title)
		}
		a.Printf("    %s%s, of %s\n      %s\n      first %s, tried in %d rounds\n", iri.Shown(q.TopicSI), title,
			feeds.FormatTime(q.Updated), q.Error, feeds.FormatTime(q.First), q.Tries)
	}
}

func (a *app) printSample(s *sources.Sample) {
	lag := ""
	if s.Lag != nil {
		lag = ", lag " + lagText(*s.Lag)
	}
	a.Printf("  %s  rounds %d, failed %d, entries %d%s\n", feeds.FormatTime(s.From), s.Rounds, s.Failed, s.Applied, lag)
}

func lagText(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
