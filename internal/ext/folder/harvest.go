// Package folder is an extension: the commands of tmshare-client that keep copies of the records of a source in a
// folder, a file for each (harvest.go, mirror.go). The folder is flat (names.go), or a mirror, laid out as URIs are
// (tree.go). [AuditMirror] compares a mirror with its source.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/discover"
	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
)

// harvestLimits bound a document of a feed: a complete feed is one document.
var harvestLimits = feeds.Limits{MaxBytes: 1 << 30, MaxEntries: 2_000_000}

// Extension returns it: the commands.
func Extension() extension.Extension {
	return extension.Extension{Name: "folder", Commands: func(shared *extension.App) []*cobra.Command {
		if shared.Serves || shared.Held != nil {
			return nil
		}
		a := &app{shared}
		return cli.In(cli.Files, a.harvest(), a.mirror())
	}}
}

type app struct{ *extension.App }

func (a *app) harvest() *cobra.Command {
	f := folderRound{
		command: "harvest", record: "record", reading: "reading the feed",
		again: "all of the feed was read again", gone: "gone, though the feed says they are there",
	}
	cmd := &cobra.Command{
		Use:   "harvest [URL] FOLDER",
		Short: "Keep the records of a repository in a folder, a file for each",
		Long: `Do a round with the repository whose Atom-PMH feed (Atom Feed Protocol for Metadata
Harvesting 1.0) is at URL: fetch the records that are new or have changed into files
in FOLDER, and remove those of records that are deleted. The first round fetches all.
Later ones may leave out URL: a folder belongs to one feed.

Records come in the formats that --format names, media types, the best first; "*/*" is
all others. A record that is in none of them any more is removed. Later rounds go on with
these formats, unless they name others. If none was ever named, each record comes in
the form that the feed names first. It is an error if no record is in any of them.

A file is called by the title of its record, or else the end of the id. A hash of the id,
and an ending, are behind that. It keeps that name. .tmshare-harvest.json says which file is of which
record. Files of others stay. A round that is interrupted, or killed, goes on the next time.

A record that cannot be had is listed, keeps no other back, and is tried for again in each
round; what was fetched of it before stays, unless the server says that it is gone.

` + extension.DoubtHelp("records", "Three readings confirm it,") + `

With exit code 3 it is in doubt, or done but for some records that could not be had.` +
			cli.Exits(cli.Quarantined, cli.Unreachable),
		Example: `  tmshare-client harvest https://data.example.org/feed collections
  tmshare-client harvest collections                              # the next round

  # Atom-RDC, as research data repositories publish it
  tmshare-client harvest --format application/atom+xml https://data.example.org/feed collections
  # RIF-CS, and RDF of what there is no RIF-CS of
  tmshare-client harvest --format application/rifcs+xml --format application/rdf+xml https://data.example.org/feed rifcs
  tmshare-client harvest --json rifcs                             # the next round, for programs`,
		Args:    cli.Args(cobra.RangeArgs(1, 2)),
		PreRunE: func(_ *cobra.Command, args []string) error { return f.check(args) },
		RunE: a.Apart(func(ctx context.Context, args []string) error {
			return a.roundInto(ctx, args, &f, func(dir string, fetcher *fetch.Fetcher, read func(documents int)) follow.Source {
				check := func(d *follow.Document) error { return discover.RecordsOnly(d.Feed, d.From) }
				return &atompmh.Source{Fetcher: fetcher, Limits: harvestLimits, Scratch: a.scratch(dir), Check: check,
					Progress: read}
			})
		}),
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.Formats, "format", nil,
		"`media type` of records that are wanted (repeatable, the best first; default: those of the last round, all "+
			"in the first)")
	f.flags(fl, "`number` of records that are fetched at a time")
	return cmd
}

// flags adds the flags that both commands have.
func (f *folderRound) flags(fl *pflag.FlagSet, parallel string) {
	fl.StringVar(&f.tokenFile, "token-file", "", "`file` with the token that the server wants of readers")
	fl.IntVar(&f.Parallel, "parallel", usualParallel, parallel)
	fl.Int64Var(&f.MaxSize, "max-size", usualMaxSize, "take so many `bytes` of a "+f.record+" at most, unpacked")
	f.doubts.AddFlags(fl, f.record+"s")
	f.doubts.AddConfirm(fl)
	f.MaxLoss = func(lost, held int) error {
		if f.doubts.MaxDelete.Allows(&losses.Measure{Topics: held, Deleted: lost}) {
			return nil
		}
		return fmt.Errorf("%d of %s would be removed. If that is right, --max-delete all lets it through", lost,
			countOf(held, f.record))
	}
}

// folderRound is a round of a source into a folder: harvest, or mirror.
type folderRound struct {
	Options
	tokenFile string
	doubts    extension.Doubts

	command string
	record  string // the content of a file
	reading string // the first step
	again   string // the work of a round with a Reason
	gone    string // the kind of records that are at none of their addresses
}

// harvested is the result of a round as JSON.
type harvested struct {
	Folder string `json:"folder"`
	*Round
	Error string `json:"error,omitempty"`
}

// check returns an error for invalid arguments before any request is made.
func (f *folderRound) check(args []string) error {
	o := &f.Options
	o.ConfirmAfter, o.Confirm = f.doubts.ConfirmAfter, f.doubts.Confirm
	if last := args[len(args)-1]; strings.HasPrefix(last, "http://") || strings.HasPrefix(last, "https://") {
		return cli.UsageError(fmt.Errorf("into which folder? Use \"tmshare-client %s URL FOLDER\"", f.command))
	}
	if o.Parallel < 1 || o.Parallel > 64 {
		return cli.UsageError(fmt.Errorf("--parallel %d: it must be from 1 to 64", o.Parallel))
	}
	if o.MaxSize <= 0 {
		return cli.UsageError(fmt.Errorf("--max-size %d: it must be more than 0", o.MaxSize))
	}
	if o.ConfirmAfter <= 0 {
		return cli.UsageError(fmt.Errorf("--confirm-after %s: it must be more than 0", o.ConfirmAfter))
	}
	for _, format := range o.Formats {
		if err := CheckFormat(format); err != nil {
			return cli.UsageError(fmt.Errorf("--format %w", err))
		}
	}
	return nil
}

// split returns the folder and the URL in the arguments; "" if they name none.
func (f *folderRound) split(args []string) (dir, ref string) {
	if len(args) == 2 {
		ref = args[0]
	}
	return args[len(args)-1], ref
}

// progress returns a function that shows the progress of a phase of a round into a folder.
func (a *app) progress(dir, phase string, unit client.Unit) func(done, total int64) {
	return func(done, total int64) {
		a.Display.Progress(client.Progress{Source: dir, Phase: phase, Unit: unit, Done: done, Total: total})
	}
}

// roundInto runs a round of the source that make returns, and reports its result.
func (a *app) roundInto(ctx context.Context, args []string, f *folderRound,
	source func(dir string, fetcher *fetch.Fetcher, read func(documents int)) follow.Source) error {
	dir, ref := f.split(args)
	if _, err := os.Stat(dir); err != nil && ref == "" {
		return fmt.Errorf("%w: the first round needs a URL, as in \"tmshare-client %s URL %s\"", err, f.command, dir)
	}
	ctx, stop := cli.UntilInterrupted(ctx)
	defer stop()
	fetching := a.progress(dir, "fetching", client.Unit(f.record+"s"))
	f.Progress = func(done, total int) { fetching(int64(done), int64(total)) }
	into, err := Open(dir, f.Options)
	if err != nil {
		return err
	}
	defer into.Close()
	if ref == "" {
		ref = into.State().URL
	}
	if into.Fetcher, err = a.Fetcher(ref, f.tokenFile); err != nil {
		return err
	}
	read := a.progress(dir, f.reading, client.Documents)
	round, err := into.Harvest(ctx, source(dir, into.Fetcher, func(n int) { read(int64(n), 0) }), ref)
	if err != nil && ctx.Err() != nil {
		err = cli.InterruptedError("what was fetched stays, and the next " + f.command + " goes on from there")
	}
	if err == nil && round.Held == 0 && round.Unwanted > 0 {
		err = noneWanted(round, into.State().Formats)
	}
	return a.tellOfRound(dir, f, round, err)
}

// noneWanted returns the error of a round that found no record in a wanted format.
func noneWanted(r *Round, wanted []string) error {
	text := fmt.Sprintf("none of the %s is in a format that is wanted (%s)", countOf(r.Unwanted, "record"),
		strings.Join(wanted, ", "))
	if len(r.Offered) == 0 { // the round that found them reported them
		return fmt.Errorf("%s; name another with --format", text)
	}
	return fmt.Errorf("%s: they are in %s; name one of these with --format", text, strings.Join(r.Offered, ", "))
}

// scratch returns the temporary storage of a round into a folder.
func (a *app) scratch(dir string) follow.Scratch {
	return follow.Scratch{Path: filepath.Join(dir, follow.OwnPrefix), MaxEntries: a.MaxEntries}
}

// tellOfRound reports the result of a round.
func (a *app) tellOfRound(dir string, f *folderRound, r *Round, err error) error {
	switch {
	case r == nil:
		return err
	case a.JSON:
		h := harvested{Folder: dir, Round: r}
		if err != nil {
			h.Error = err.Error()
		}
		err = errors.Join(err, a.Print(h))
	default:
		a.Display.Clear()
		if r.Reason != "" && (f.Mirror || r.Changed+r.Removed > 0) { // cron's mail should say it
			fmt.Fprintf(a.Command.ErrOrStderr(), "%s: %s: %s\n", dir, f.again, r.Reason)
		}
		if err == nil || r.New+r.Changed+r.Removed > 0 {
			a.Printf("%s: %s\n", dir, f.describe(r))
		}
		list(a.Command.ErrOrStderr(), f.gone, r.Gone, describeProblem)
		list(a.Command.ErrOrStderr(), "failed", r.Failed, describeProblem)
	}
	if doubt := new(follow.DoubtError); errors.As(err, &doubt) {
		return &cli.ExitError{Code: cli.Quarantined, Err: fmt.Errorf("%s: %w. %s", dir, doubt, f.advice(dir, doubt))}
	}
	if err == nil && len(r.Gone)+len(r.Failed) > 0 {
		return cli.Exit(cli.Quarantined)
	}
	return err
}

// advice returns the remedy for a doubt.
func (f *folderRound) advice(dir string, doubt *follow.DoubtError) string {
	return doubt.Advice(func(flag string) string {
		return fmt.Sprintf("\"tmshare-client %s %s %s\"", f.command, flag, dir)
	})
}

func (f *folderRound) describe(r *Round) string {
	text := "nothing new"
	if r.New+r.Changed+r.Removed > 0 {
		text = fmt.Sprintf("%d new, %d changed, %d removed", r.New, r.Changed, r.Removed)
	}
	text += "; " + countOf(r.Held, f.record) + " there"
	also := func(n int, what string) {
		if n > 0 {
			text += fmt.Sprintf(", %d %s", n, what)
		}
	}
	also(r.Unwanted, "in no format that is wanted")
	also(len(r.Gone), "gone")
	also(len(r.Failed), "failed")
	also(r.Ignored, "entries that are no records")
	return text
}

// countOf returns a number of things.
func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// maxProblems is the number of problems that are listed one by one.
const maxProblems = 10

// list writes a line for each of some things, up to a number.
func list[T any](w io.Writer, what string, all []T, describe func(T) string) {
	for i, one := range all {
		if i == maxProblems {
			fmt.Fprintf(w, "%s: … and %d more; --json lists them all\n", what, len(all)-i)
			return
		}
		fmt.Fprintf(w, "%s: %s\n", what, describe(one))
	}
}

func describeProblem(p Problem) string {
	title, had := "", ""
	if p.Title != "" {
		title = fmt.Sprintf(" (%s)", p.Title)
	}
	if p.Held {
		had = "; an earlier version is there"
	}
	return fmt.Sprintf("%.200s%.200s: %s%s", p.ID, title, p.Reason, had)
}
