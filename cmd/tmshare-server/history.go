package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// aboutTimes is the part about times in the help of commands with past states.
const aboutTimes = `A time is one of RFC 3339, such as 2026-11-23T14:05:00Z or 2026-11-23T15:05:00+01:00;
a date alone is its first moment, in UTC; and so are today and yesterday. 2h or 3d is so long ago.
In place of the time of a state, give the number of a commit, which "log" shows. A state
can be had as far back as history is kept (--keep-entries, --keep-for): the error says since
when that is. A time to come is refused, as nobody knows what will be then.`

// times are times on a command line.
type times struct {
	all     []time.Time
	commits map[int]uint64 // numbers of commits in place of times; nil: not allowed
	most    int
}

func (t *times) add(cmd *cobra.Command, most int, name, usage string) {
	t.most = most
	cmd.Flags().Var(t, name, usage)
}

// states is add for states of a collection: numbers of commits will do.
func (t *times) states(r *remote, cmd *cobra.Command, most int, name, usage string) {
	r.states, t.commits = t, map[int]uint64{}
	t.add(cmd, most, name, usage)
}

// String implements [pflag.Value].
func (t *times) String() string { return "" }

// Type implements [pflag.Value].
func (t *times) Type() string { return "time" }

// Set implements [pflag.Value].
func (t *times) Set(text string) error {
	if len(t.all) == t.most {
		return fmt.Errorf("it is given too often: at most %d times", t.most)
	}
	if commit, err := strconv.ParseUint(text, 10, 64); err == nil && t.commits != nil {
		t.commits[len(t.all)] = commit
		t.all = append(t.all, time.Time{})
		return nil
	}
	at, err := history.ParseAgo(text, time.Now())
	t.all = append(t.all, at)
	return err
}

// find finds the times of commits of a collection.
func (t *times) find(ctx context.Context, server *admin.Client, name string) error {
	for i, commit := range t.commits {
		list, err := server.History(ctx, name, admin.Query{Commits: true, Before: commit + 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(list.Commits) == 0 || list.Commits[0].Commit != commit {
			return fmt.Errorf("%s has no commit %d, or does not keep it any more; "+
				"\"tmshare-server log %[1]s\" lists those that are there", name, commit)
		}
		if t.all[i], err = history.ParseTime(list.Commits[0].Time); err != nil {
			return err
		}
	}
	return nil
}

// first returns the first time, or the zero time.
func (t *times) first() time.Time { return t.nth(0) }

func (t *times) nth(n int) (at time.Time) {
	if n < len(t.all) {
		at = t.all[n]
	}
	return at
}

func historyCommand() *cobra.Command {
	var r remote
	return r.changes(&cobra.Command{
		Use:   "history NAME [SUBJECT-IDENTIFIER]",
		Short: "Show who changed what when, and how, the newest first",
		Long: `Show what has changed in the collection NAME, or in one topic of it, the newest
first: for each entry of the log what the topic says that it did not say before (+),
and what it says no longer (-).

` + aboutTimes,
		Example: `  tmshare-server history egov https://psi.egov.example.org/service/dog-licence
  tmshare-server history egov --since 2026-11-01 --limit 0`,
		Args: cli.Args(cli.NotEmpty(cobra.RangeArgs(1, 2))),
	}, true)
}

func logCommand() *cobra.Command {
	var r remote
	return r.changes(&cobra.Command{
		Use:   "log NAME",
		Short: "List the commits, the newest first",
		Long: `List the commits of the collection NAME, the newest first: when each was published, by whom and why,
and how many topics it has added, updated and deleted. With --entries, list the entries of the log:
which topics changed when, with the numbers of their commits. "history" shows how they changed.

` + aboutTimes,
		Example: `  tmshare-server log egov --since 2h
  tmshare-server log egov --author Alice --since yesterday --entries`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}, false)
}

// changes completes a command that lists changes.
func (r *remote) changes(cmd *cobra.Command, words bool) *cobra.Command {
	var since times
	limit := 0
	var author string
	entries := words
	var languages titles.Languages
	since.add(cmd, 1, "since", "only changes from this `time` on")
	cmd.Flags().StringVar(&author, "author", "", "only changes by this `name`")
	if !words {
		cmd.Flags().BoolVar(&entries, "entries", false, "list the entries of the log, one for each topic that has changed")
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "show this `number` at most, 0: all")
	return r.reading(cmd, &languages, func(ctx context.Context, args []string) error {
		q := admin.Query{Since: since.first(), Limit: limit, Words: words, Commits: !entries, Author: author,
			Languages: languages}
		if len(args) > 1 {
			q.SI = args[1]
		}
		list, err := r.server.History(ctx, args[0], q)
		if err != nil {
			return err
		}
		if r.json {
			return r.print(list, "")
		}
		w := bufio.NewWriter(r.out)
		for i := range list.Changes {
			writeChange(w, &list.Changes[i])
		}
		clientcmd.WriteCommits(w, list)
		return w.Flush()
	})
}

// reading is command for commands that title topics in the languages of the reader, which default to the locale.
func (r *remote) reading(cmd *cobra.Command, languages *titles.Languages,
	body func(ctx context.Context, args []string) error) *cobra.Command {
	r.command(cmd, body)
	extension.LanguageFlag(cmd.Flags(), languages) // after the flags with variables
	return cmd
}

// writeChange writes a change as people read it.
func writeChange(w io.Writer, c *history.Change) {
	if c.Updated != "" {
		fmt.Fprintf(w, "%s ", c.Updated)
	}
	fmt.Fprintf(w, "%-7s %s", c.Kind, words.Titled(c.TopicSI, c.Title))
	if c.Topic != "" {
		fmt.Fprintf(w, " to %s", iri.Shown(c.Topic))
	}
	if c.Commit > 0 {
		fmt.Fprintf(w, " (commit %d)", c.Commit)
	}
	clientcmd.WriteAttribution(w, c.Author, c.Note)
	for _, s := range c.Removed {
		fmt.Fprintf(w, "  - %s\n", s.Text)
	}
	for _, s := range c.Added {
		fmt.Fprintf(w, "  + %s\n", s.Text)
	}
	if c.Missing != "" {
		fmt.Fprintf(w, "  ? %s\n", c.Missing)
	}
}

func exportCommand(a *extension.App) *cobra.Command {
	var r remote
	var at times
	cmd := &cobra.Command{
		Use:   "export NAME [FILE]",
		Short: "Write a map of a running server, as it is or as it was",
		Long: `Write the collection NAME of a running server to FILE, or to standard output: as it
is now, or with --at as it was at a time. A FILE that ends in .gz is gzipped. It
appears when it is complete.

` + aboutTimes,
		Example: `  tmshare-server export egov egov.xtm
  tmshare-server export egov egov-november.xtm.gz --at 2026-11-01`,
		Args: cli.Args(cli.NotEmpty(cobra.RangeArgs(1, 2))),
	}
	formatOf := clientcmd.FormatFlag(a.Formats(), cmd.Flags())
	checkFormats := a.FormatFlags(cmd.Flags(), formats.Use{Writes: true})
	filterOf := a.FilterFlags(cmd.Flags())
	at.states(&r, cmd, 1, "at", "as it was at this `time`")
	return r.command(cmd, func(ctx context.Context, args []string) error {
		if _, err := checkFormats(nil); err != nil {
			return cli.UsageError(err)
		}
		f, err := formatOf(args[1:])
		if err != nil {
			return err
		}
		filter, err := filterOf()
		if err != nil {
			return err
		}
		if r.json && len(args) < 2 {
			return cli.UsageError(errors.New("--json goes with a FILE: the map is written to standard output without one"))
		}
		path := "-"
		if len(args) > 1 {
			path = args[1]
		}
		losses, err := formats.Target{Path: path, Stdout: r.out}.Write(ctx, func(w io.Writer) (xtm.Losses, error) {
			if f.Stored != "" && filter == nil {
				return xtm.Losses{}, r.server.Export(ctx, args[0], f.URLEnding, at.first(), w)
			}
			return r.export(ctx, args[0], f, at.first(), w, a.Filter(), filter)
		})
		if err == nil {
			formats.ReportLosses(os.Stderr, f, losses)
		}
		if err != nil || !r.json {
			return err
		}
		return r.print(map[string]string{"collection": args[0], "out": path, "format": f.Name}, "")
	})
}

// export writes the part of a collection that a filter passes, in a format; nil: all. It converts from XTM 2.1 here.
func (r *remote) export(ctx context.Context, name string, f *formats.Format, at time.Time, w io.Writer,
	pass merged.Pass, filter json.RawMessage) (losses xtm.Losses, err error) {
	var b bytes.Buffer
	if err := r.server.Export(ctx, name, formats.XTM21.URLEnding, at, &b); err != nil {
		return losses, err
	}
	d, err := formats.Source{Path: "-", Stdin: &b, Name: name, Format: formats.XTM21, Alone: true}.Read(ctx)
	if err != nil {
		return losses, err
	}
	if filter != nil {
		if d.Map, err = passing(ctx, pass, filter, d.Map); err != nil {
			return losses, err
		}
	}
	return d.Encoder(f, formats.WriteOptions{})(w)
}

// passing returns the part of a map that a filter passes.
func passing(ctx context.Context, pass merged.Pass, filter json.RawMessage, m *tmdm.TopicMap) (*tmdm.TopicMap, error) {
	whole, err := fragment.NewMap(m, "")
	if err != nil {
		return nil, err
	}
	warn := func(line string) { fmt.Fprintln(os.Stderr, "warning: "+line) }
	src, err := pass(ctx, filter, merged.Reporting(warn, true), merge.Part{Source: whole, Published: true})
	if err != nil {
		return nil, err
	}
	m, _, err = merge.Join(ctx, merge.Part{Source: src})
	return m, err
}

func diffCommand() *cobra.Command {
	var r remote
	var at times
	var languages titles.Languages
	cmd := &cobra.Command{
		Use:   "diff NAME --at TIME [--at TIME]",
		Short: "Compare two states of a map, topic by topic",
		Long: `Compare the collection NAME as it was at a time with what it was at a later one, or
with what it is now. Say topic by topic what the later state says that the
earlier one did not (+), and what it says no longer (-).

` + aboutTimes,
		Example: `  tmshare-server diff egov --at 2026-11-01
  tmshare-server diff egov --at 2026-11-01 --at 2026-11-08`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	at.states(&r, cmd, 2, "at", "`time` of a state; the earlier one first (at most twice)")
	return r.reading(cmd, &languages, func(ctx context.Context, args []string) error {
		if len(at.all) == 0 {
			return cli.UsageError(errors.New("give a time, --at, to compare with what is now, or two"))
		}
		if at.nth(1).Before(at.first()) && len(at.all) == 2 {
			return cli.UsageError(errors.New("give the earlier --at first"))
		}
		d, err := r.server.Differences(ctx, args[0], at.first(), at.nth(1), languages)
		if err != nil {
			return err
		}
		if r.json {
			err = r.print(d, "")
		} else {
			w := bufio.NewWriter(r.out)
			for i := range d.Topics {
				writeChange(w, &d.Topics[i])
			}
			fmt.Fprintf(w, "%s: %d topics differ between the changes of %s and %s\n", d.Collection, len(d.Topics), d.From, d.To)
			err = w.Flush()
		}
		if err == nil && len(d.Topics) > 0 {
			err = &cli.ExitError{Code: cli.Differs}
		}
		return err
	})
}

func revertCommand() *cobra.Command {
	var r remote
	var w admin.Write
	var to times
	var commit uint64
	var force bool
	cmd := &cobra.Command{
		Use:   "revert NAME {SUBJECT-IDENTIFIER --to TIME | --commit NUMBER}",
		Short: "Make a topic what it was, or take back a commit",
		Long: `Make a topic of the collection NAME what it was at a time, or take back what a commit
changed; "log" shows the numbers of commits. It is a new change: the log keeps what it
takes back.

A topic is replaced by what it was then, with the associations in which it played,
and deleted if it was not there. It is refused where another topic has one of the identifiers
that it had.

A commit is taken back record by record: each topic and each association that it has changed
becomes what it was. What has changed again since stays as it is, and so does what others
refer to by now. Where there is any of that it is listed, and nothing is changed; --force takes
back the rest. --max-delete holds as for an import.

` + aboutTimes,
		Example: `  tmshare-server revert egov https://psi.egov.example.org/service/dog-licence --to 2026-11-01 --dry-run
  tmshare-server revert egov --commit 1042 --message "Imported the wrong file"`,
		Args: cli.Args(cli.NotEmpty(cobra.RangeArgs(1, 2))),
	}
	to.states(&r, cmd, 1, "to", "make the topic what it was at this `time`")
	cmd.Flags().Uint64Var(&commit, "commit", 0, "take back the commit with this `number`")
	cmd.Flags().BoolVar(&force, "force", false, "with --commit: take back what can be, even if some of it must stay")
	cmd.Flags().TextVar(&w.MaxDelete, "max-delete", losses.Limit{},
		"with --commit: lose at most this number of topics: `N`, N% or all (default: half, and any number of fewer than 20)")
	r.writeFlags(cmd, &w)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		if w.MaxDelete != (losses.Limit{}) && commit == 0 {
			return cli.UsageError(errors.New("--max-delete goes with --commit: leave it out for a single topic"))
		}
		if force && commit == 0 {
			return cli.UsageError(errors.New("--force goes with --commit: leave it out for a single topic"))
		}
		topic := len(args) == 2 && len(to.all) == 1
		if topic == (len(args) == 1 && commit > 0 && len(to.all) == 0) || topic && commit > 0 {
			return cli.UsageError(errors.New("give a subject identifier and --to, or --commit"))
		}
		var p *publish.Published
		var err error
		if topic {
			p, err = r.server.RevertTopic(ctx, args[0], args[1], to.first(), w)
		} else {
			p, err = r.server.RevertCommit(ctx, args[0], commit, force, w)
		}
		if err != nil {
			return err
		}
		return r.print(p, published(p))
	})
}
