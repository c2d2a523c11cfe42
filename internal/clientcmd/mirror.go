package clientcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/harvest"
)

// mirrorFlags are the flags of mirror.
type mirrorFlags struct {
	harvest.Options
	tokenFile string
	noDumps   bool
	audit     bool
}

func (a *app) mirror() *cobra.Command {
	f := mirrorFlags{Options: harvest.Options{Mirror: true}}
	cmd := &cobra.Command{
		Use:   "mirror [URL] FOLDER",
		Short: "Keep a copy of what a ResourceSync Source has in a folder",
		Long: `Do a round with a Source of ResourceSync (ANSI/NISO Z39.99): fetch the resources that are
new or have changed into files in FOLDER, and remove those that the Source has deleted.
The first round fetches all. Later ones may leave out URL: a folder is a mirror of one
set of resources.

URL is any document of the Source: its Source Description, Capability List, Resource List,
Change List or Dump, or a plain Sitemap; a page or a file that links to its Capability List;
or the address of the server, whose /.well-known/resourcesync and robots.txt are looked at.
If there are several sets of resources they are listed: take the URL of one.

The first round goes by the Resource List, or fetches the packages of a Resource Dump where
that is cheaper than single requests; later ones go by the Change Lists and Change Dumps.
Where these do not reach back to the last round, everything is compared again. Lengths and
hashes that the Source states are verified: what is not as stated is not taken.

Files are laid out as the URIs are: FOLDER/host/path, "index.html" where the path ends in
"/". A name that another file stands in the way of, or that differs from another one only
in upper and lower case, gets a hash. .tmshare-harvest.json says which file is of which URI.
Files of others in the folder are left alone. A round that is interrupted, or killed, goes
on the next time, also within a package.

Links to other hosts, mirrors too, are followed with --host only. No host gets more than
--parallel requests at a time, and one that asks to come back later is left in peace.

A resource that cannot be had is listed, keeps no other back, and is tried for again in each
round; what was fetched of it before stays, unless the server says that it is gone.

With --audit nothing is fetched or changed: the files are compared, by the hashes that they
have now, with what the Source lists. To mend a file that differs, remove it and mirror again.

Exit codes: 0 done, 3 done but for some resources that could not be had, 4 the audit found a
difference, 1 error, 2 usage, or several sets to choose from.`,
		Example: `  tmshare-client mirror https://museum.example.org/ museum
  tmshare-client mirror museum                                    # the next round
  tmshare-client mirror --audit museum                            # is it what the Source has?

  # its documents are on www, its resources elsewhere, and there are copies on a third host
  tmshare-client mirror --host data.example.org --host mirror.example.net https://www.example.org/capabilitylist.xml data
  tmshare-client mirror --no-dumps --parallel 2 --json data       # gently, and for programs`,
		Args:    cli.Args(cobra.RangeArgs(1, 2)),
		PreRunE: func(_ *cobra.Command, args []string) error { return checkRound("mirror", args, &f.Options) },
		RunE: a.onFiles(func(args []string) error {
			ref := ""
			if len(args) == 2 {
				ref = args[0]
			}
			return a.mirrorInto(args[len(args)-1], ref, &f)
		}),
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.noDumps, "no-dumps", false, "fetch no packages, only single resources")
	fl.BoolVar(&f.audit, "audit", false, "compare the files with what the Source has, and change nothing")
	fl.StringVar(&f.tokenFile, "token-file", "", "`file` with the token that the server wants of readers")
	fl.IntVar(&f.Parallel, "parallel", 8, "`number` of requests to one host at a time")
	fl.Int64Var(&f.MaxSize, "max-size", 1<<30, "take so many `bytes` of a resource at most, unpacked")
	return cmd
}

func (a *app) mirrorInto(dir, ref string, f *mirrorFlags) error {
	if _, err := os.Stat(dir); err != nil && (ref == "" || f.audit) {
		return fmt.Errorf("%w: the first round needs a URL, as in \"tmshare-client mirror URL %s\"", err, dir)
	}
	ctx, stop := untilInterrupted(a.command.Context())
	defer stop()
	a.display = newDisplay(a.request, a.quiet, a.json)
	defer a.display.clear()
	tell := func(phase string, unit client.Unit) func(done, total int64) {
		return func(done, total int64) {
			a.display.progress(client.Progress{Source: dir, Phase: phase, Unit: unit, Done: done, Total: total})
		}
	}
	read := tell("reading the lists", client.Documents)
	source := &harvest.ResourceSync{
		Progress:    func(n int) { read(int64(n), 0) },
		Downloading: tell("fetching a package", client.Bytes),
		Report: func(line string) {
			a.display.clear()
			fmt.Fprintf(a.command.ErrOrStderr(), "%s: %s\n", dir, line)
		},
	}
	defer source.Close()
	count := func(phase string) func(done, total int) {
		told := tell(phase, "resources")
		return func(done, total int) { told(int64(done), int64(total)) }
	}
	if f.audit {
		return a.auditMirror(ctx, dir, ref, f, source, count("comparing"))
	}
	f.Progress = count("fetching")
	folder, err := harvest.Open(dir, f.Options)
	if err != nil {
		return err
	}
	defer folder.Close()
	if ref == "" {
		ref = folder.State().URL
	}
	if folder.Fetcher, err = a.fetcher(ref, f.tokenFile); err != nil {
		return err
	}
	source.Fetcher, source.Packages.MaxResource = folder.Fetcher, f.MaxSize
	if !f.noDumps {
		source.Temp = dir
	}
	round, err := folder.Harvest(ctx, source, ref)
	err = errors.Join(err, source.Close())
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted; what was fetched stays, and the next mirror goes on from there")
	}
	return a.tellOfMirror(dir, round, choice(err))
}

// choice makes several sets of resources a matter of usage.
func choice(err error) error {
	if errors.As(err, new(*harvest.ChoiceError)) {
		return usageError(err)
	}
	return err
}

func (a *app) auditMirror(ctx context.Context, dir, ref string, f *mirrorFlags, source *harvest.ResourceSync, progress func(done, total int)) error {
	held, err := harvest.URLOf(dir)
	if err != nil {
		return err
	}
	if source.Fetcher, err = a.fetcher(cmp.Or(ref, held), f.tokenFile); err != nil {
		return err
	}
	audit, err := harvest.AuditMirror(ctx, dir, source, ref, progress)
	if err != nil {
		return choice(err)
	}
	if a.json {
		err = a.print(struct {
			Folder string `json:"folder"`
			*harvest.Audit
			Equal bool `json:"equal"`
		}{dir, audit, audit.Equal()})
	} else {
		a.display.clear()
		a.printf("%s: %s\n", dir, describeAudit(audit))
		for _, list := range []struct {
			what string
			all  []harvest.Difference
		}{{"missing", audit.Missing}, {"different", audit.Different}, {"superfluous", audit.Superfluous}} {
			for i, d := range list.all {
				if i == maxProblems {
					a.printf("%s: … and %d more; --json lists them all\n", list.what, len(list.all)-i)
					break
				}
				a.printf("%s: %.200s: %s\n", list.what, d.ID, d.Reason)
			}
		}
	}
	if err != nil || audit.Equal() {
		return err
	}
	exit := &cli.ExitError{Code: cli.Differs}
	if a.quiet && !a.json { // nothing else has said it
		exit.Err = fmt.Errorf("%s: %s", dir, describeAudit(audit))
	}
	return exit
}

func describeAudit(audit *harvest.Audit) string {
	var b strings.Builder
	if audit.Equal() {
		fmt.Fprintf(&b, "equal to what the Source lists: %s", countResources(audit.Compared))
	} else {
		fmt.Fprintf(&b, "of %s %d missing, %d different; %d superfluous", countResources(audit.Compared), len(audit.Missing), len(audit.Different), len(audit.Superfluous))
	}
	if audit.Unstated > 0 {
		fmt.Fprintf(&b, "; of %d the Source states neither length nor hash: they are as they were fetched, or listed here", audit.Unstated)
	}
	switch n := len(audit.Others); {
	case n == 1:
		b.WriteString("; 1 file of others")
	case n > 1:
		fmt.Fprintf(&b, "; %d files of others", n)
	}
	return b.String()
}

func countResources(n int) string {
	if n == 1 {
		return "1 resource"
	}
	return fmt.Sprintf("%d resources", n)
}

// tellOfMirror says how a round has gone.
func (a *app) tellOfMirror(dir string, r *harvest.Round, err error) error {
	switch {
	case r == nil:
		return err
	case a.json:
		m := harvested{Folder: dir, Round: r}
		if err != nil {
			m.Error = err.Error()
		}
		err = errors.Join(err, a.print(m))
	default:
		a.display.clear()
		if r.Reason != "" { // cron's mail should say it
			fmt.Fprintf(a.command.ErrOrStderr(), "%s: all was compared again: %s\n", dir, r.Reason)
		}
		if err == nil || r.New+r.Changed+r.Removed > 0 {
			a.printf("%s: %s\n", dir, describeMirror(r))
		}
		a.listProblems("gone, though the Source lists it", r.Gone)
		a.listProblems("failed", r.Failed)
	}
	if err == nil && len(r.Gone)+len(r.Failed) > 0 {
		return exit(cli.Quarantined)
	}
	return err
}

func describeMirror(r *harvest.Round) string {
	text := "nothing new"
	if r.New+r.Changed+r.Removed > 0 {
		text = fmt.Sprintf("%d new, %d changed, %d removed", r.New, r.Changed, r.Removed)
	}
	text += fmt.Sprintf("; %s there", countResources(r.Held))
	if len(r.Gone) > 0 {
		text += fmt.Sprintf(", %d gone", len(r.Gone))
	}
	if len(r.Failed) > 0 {
		text += fmt.Sprintf(", %d failed", len(r.Failed))
	}
	return text
}
