package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
)

func (a *app) sync() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sync [NAME...]",
		Short: "Bring subscriptions up to date",
		Long: `Do one round of the named subscriptions, or of all: a clean start from the newest
snapshot the first time, then only what has changed.

What could not be applied stays for the next round; nothing is skipped. A change
that is broken by itself goes into quarantine, does not keep the others back, and
is tried again in each round.

` + extension.DoubtHelp("topics", "Two readings of a server of this program confirm it, of others three,") + `

With exit code 0 all are in step; 3: in doubt, or in step but for what is in quarantine; 4: a copy is
not what its source states.` + exitsOfRounds,
		Example: `  tmshare-client sync
  tmshare-client sync egov --confirm            # what the doubt about egov would take away is gone
  tmshare-client sync egov --max-delete all     # however much that is`,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if a.Confirm && len(args) == 0 {
				return cli.UsageError(errors.New("--confirm: name the subscriptions whose doubts you have seen"))
			}
			a.spareMemory(cmd, args)
			return nil
		},
		RunE: a.run(func(ctx context.Context, args []string) error {
			round := a.client.Sync
			if a.Confirm {
				round = a.client.Confirm
			}
			return a.rounds(args, round, ctx)
		}),
	}
	fl := cmd.Flags()
	a.AddConfirm(fl)
	a.AddFlags(fl, "topics")
	fl.BoolVar(&a.acceptMoves, "accept-moves", false, acceptMovesUsage)
	return cmd
}

func (a *app) replace() *cobra.Command {
	return &cobra.Command{
		Use:   "replace NAME...",
		Short: "Replace sources as a whole by the servers' newest snapshots",
		Long: `Do a clean replacement of the named subscriptions: the newest snapshot and what came
after it are loaded beside the present state, which is shown until the new one is
complete. Other sources are not touched.` + exitsOfRounds,
		Args:   cli.Args(cobra.MinimumNArgs(1)),
		PreRun: a.spareMemory,
		RunE:   a.run(func(ctx context.Context, args []string) error { return a.rounds(args, a.client.Replace, ctx) }),
	}
}

// exitsOfRounds is in the help of commands that do rounds.
var exitsOfRounds = cli.Exits(cli.Quarantined, cli.Differs, cli.Unreachable)

// GCPercent is the default of GOGC, unless it is set, in a process that loads snapshots: much of the database's buffers
// becomes garbage soon. Commands that hold a whole map do not change it: they need more memory in any case, and it
// would make them slower.
const GCPercent = 50

// spareMemory sets it for commands of this process, not for those executed for other processes.
func (a *app) spareMemory(*cobra.Command, []string) {
	if a.Held == nil && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(GCPercent)
	}
}

// rounds does a round of each subscription; one that fails does not keep the
// others from theirs.
func (a *app) rounds(args []string, round func(context.Context, string) (*client.Round, error),
	ctx context.Context) error {
	a.Became = "what is applied stays, and the next sync goes on from there"
	names, err := a.names(ctx, args)
	if err != nil {
		return err
	}
	var failed []error
	var quarantined, different, doubted []string
	done := []*client.Round{}
	for _, name := range names {
		r, err := round(ctx, name)
		if doubt, ok := errors.AsType[*follow.DoubtError](err); ok && r != nil {
			done = append(done, r)
			doubted = append(doubted, fmt.Sprintf("%s: %v. %s", name, doubt, advice(name, doubt.Doubt)))
			continue
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			done = append(done, &client.Round{Name: name, Error: err.Error()})
			if ctx.Err() != nil {
				break
			}
			continue
		}
		done = append(done, r)
		if r.Differs {
			different = append(different, name)
		}
		if r.Quarantined > 0 {
			quarantined = append(quarantined, quarantineOf(name, r.Quarantined))
		}
		if a.Quiet && r.Reason != "" && r.Reason != client.AskedFor { // cron's mail should say it
			fmt.Fprintf(a.Command.ErrOrStderr(), "%s: replaced as a whole: %s\n", name, r.Reason)
		}
		if a.Quiet && r.Unproven != "" && r.Quarantined == 0 {
			fmt.Fprintf(a.Command.ErrOrStderr(), "%s: not proven: %s\n", name, r.Unproven)
		}
		if !a.JSON {
			a.Printf("%s: %s\n", name, describe(r))
		}
	}
	synced := map[string]bool{}
	for _, r := range done {
		synced[r.Name] = r.Error == ""
	}
	unmatched, err := a.Merged().Unmatched(ctx)
	for _, name := range names {
		if unmatched[name] != "" && synced[name] {
			a.Display.Line(name + ": " + unmatched[name])
		}
	}
	failed = append(failed, err, a.Followed(ctx, synced))
	if a.JSON {
		failed = append(failed, a.Print(done))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if len(different) > 0 {
		return &cli.ExitError{Code: cli.Differs}
	}
	if quarantined = append(doubted, quarantined...); len(doubted) > 0 && !a.JSON {
		return &cli.ExitError{Code: cli.Quarantined, Err: errors.New(strings.Join(quarantined, "\n"))}
	}
	return a.inQuarantine(quarantined)
}

// advice returns what to do about the doubt of a subscription.
func advice(name string, d *follow.Doubt) string {
	return d.Advice(func(flag string) string { return fmt.Sprintf("\"tmshare-client sync %s %s\"", name, flag) })
}

func describe(r *client.Round) string {
	text := describeChange(r)
	switch {
	case r.Quarantined > 0:
		return fmt.Sprintf("%s; but %s in quarantine: \"tmshare-client status -v\" says why", text,
			countTopics(r.Quarantined))
	case r.Repaired > 0:
		text += fmt.Sprintf("; %s had to be repaired", countTopics(r.Repaired))
	}
	switch {
	case r.Proven:
		return text + ", proven"
	case r.Unproven != "":
		return text + "; not proven: " + r.Unproven
	}
	return text
}

func describeChange(r *client.Round) string {
	text := describeEntries(r)
	if r.Removed > 0 {
		text += fmt.Sprintf("; %s removed", countTopics(r.Removed))
	}
	if r.Unusable > 0 {
		text += fmt.Sprintf("; %d of the records are in no format that can be read, or that was asked for", r.Unusable)
	}
	return text
}

func describeEntries(r *client.Round) string {
	at := feeds.FormatTime(r.Mark)
	switch {
	case r.Ahead && r.Entries == 0:
		return "nothing new; in step, though all times of the source are later than now"
	case r.Ahead:
		return fmt.Sprintf("%d changes, %d fragments applied; in step, though all times of the source are later than now",
			r.Entries, r.Applied)
	case r.Mark.IsZero():
		return fmt.Sprintf("%d changes, %d fragments applied; in step with an empty source", r.Entries, r.Applied)
	case r.CleanStart && !r.Snapshot:
		return fmt.Sprintf("loaded as a whole, %d fragments applied; in step as of %s", r.Applied, at)
	case r.CleanStart && r.Applied > 0:
		return fmt.Sprintf("loaded from a snapshot, then %d fragments applied; in step as of %s", r.Applied, at)
	case r.CleanStart:
		return fmt.Sprintf("loaded from a snapshot; in step as of %s", at)
	case r.Entries > 0:
		return fmt.Sprintf("%d changes, %d fragments applied; in step as of %s", r.Entries, r.Applied, at)
	}
	return fmt.Sprintf("nothing new; in step as of %s", at)
}
