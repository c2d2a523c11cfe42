package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
)

func (a *app) mirror() *cobra.Command {
	f := folderRound{
		Options: Options{Mirror: true}, command: "mirror", record: "resource", reading: "reading the lists",
		again: "all was compared again", gone: "gone, though the Source lists it",
	}
	noDumps, audit := false, false
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

` + extension.DoubtHelp("resources", "Three readings confirm it,") + `

With --audit nothing is fetched or changed: the files are compared, by the hashes that they
have now, with what the Source lists. They are not called equal where the Source does not
say all that has changed since its list was made. To mend a file that differs, remove it and
mirror again.

With exit code 3 it is in doubt, or done but for some resources that could not be had; with 2 there may be
several sets to choose from; with 4 the audit found a difference.` +
			cli.Exits(cli.Quarantined, cli.Differs, cli.Unreachable),
		Example: `  tmshare-client mirror https://museum.example.org/ museum
  tmshare-client mirror museum                                    # the next round
  tmshare-client mirror --audit museum                            # is it what the Source has?

  # its documents are on www, its resources elsewhere, and there are copies on a third host
  tmshare-client mirror --host data.example.org --host mirror.example.net \
    https://www.example.org/capabilitylist.xml data
  tmshare-client mirror --no-dumps --parallel 2 --json data       # gently, and for programs`,
		Args:    cli.Args(cobra.RangeArgs(1, 2)),
		PreRunE: func(_ *cobra.Command, args []string) error { return f.check(args) },
		RunE: a.Apart(func(ctx context.Context, args []string) error {
			if audit {
				return a.auditMirror(ctx, args, &f)
			}
			var source *destination.Source
			err := a.roundInto(ctx, args, &f, func(dir string, fetcher *fetch.Fetcher, read func(documents int)) follow.Source {
				source = a.resourceSync(dir, fetcher, &f, read)
				if !noDumps {
					source.Temp = dir
				}
				return source
			})
			if source != nil {
				err = errors.Join(err, source.Close())
			}
			return choice(err)
		}),
	}
	fl := cmd.Flags()
	fl.BoolVar(&noDumps, "no-dumps", false, "fetch no packages, only single resources")
	fl.BoolVar(&audit, "audit", false, "compare the files with what the Source has, and change nothing")
	f.flags(fl, "`number` of requests to one host at a time")
	return cmd
}

// resourceSync returns a reader of the documents of a Source.
func (a *app) resourceSync(dir string, fetcher *fetch.Fetcher, f *folderRound,
	read func(documents int)) *destination.Source {
	s := &destination.Source{
		Fetcher: fetcher, Scratch: a.scratch(dir), Progress: read,
		Downloading: a.progress(dir, "fetching a package", client.Bytes),
		Report: func(line string) {
			a.Display.Clear()
			fmt.Fprintf(a.Command.ErrOrStderr(), "%s: %s\n", dir, line)
		},
	}
	s.Packages.MaxResource = f.MaxSize
	return s
}

// choice makes several sets of resources a matter of usage.
func choice(err error) error {
	if errors.As(err, new(*follow.ChoiceError)) {
		return cli.UsageError(err)
	}
	return err
}

func (a *app) auditMirror(ctx context.Context, args []string, f *folderRound) error {
	dir, ref := f.split(args)
	held, err := URLOf(dir)
	if err != nil {
		return fmt.Errorf("%w: the first round needs a URL, as in \"tmshare-client mirror URL %s\"", err, dir)
	}
	ctx, stop := cli.UntilInterrupted(ctx)
	defer stop()
	fetcher, err := a.Fetcher(cmp.Or(ref, held), f.tokenFile)
	if err != nil {
		return err
	}
	read := a.progress(dir, f.reading, client.Documents)
	source := a.resourceSync(dir, fetcher, f, func(n int) { read(int64(n), 0) })
	defer source.Close()
	if source.Temp, err = os.MkdirTemp("", "tmshare-audit-"); err != nil { // for manifests that are in packages only
		return err
	}
	defer os.RemoveAll(source.Temp)
	source.Scratch.Path = filepath.Join(source.Temp, follow.OwnPrefix) // so that the mirror is not changed
	compared := a.progress(dir, "comparing", "resources")
	audit, err := AuditMirror(ctx, dir, source, ref, func(done, total int) { compared(int64(done), int64(total)) })
	if err != nil {
		return choice(err)
	}
	err = a.Answer(struct {
		Folder string `json:"folder"`
		*Audit
		Equal bool `json:"equal"`
	}{dir, audit, audit.Equal()}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s\n", dir, describeAudit(audit))
		difference := func(d Difference) string { return fmt.Sprintf("%.200s: %s", d.ID, d.Reason) }
		list(w, "missing", audit.Missing, difference)
		list(w, "different", audit.Different, difference)
		list(w, "superfluous", audit.Superfluous, difference)
		list(w, "unsure", audit.Unsure, difference)
	})
	if err != nil || audit.Equal() {
		return err
	}
	exit := &cli.ExitError{Code: cli.Differs}
	if a.Quiet && !a.JSON { // nothing was printed yet
		exit.Err = fmt.Errorf("%s: %s", dir, describeAudit(audit))
	}
	return exit
}

func describeAudit(audit *Audit) string {
	var b strings.Builder
	if audit.Equal() {
		fmt.Fprintf(&b, "equal to what the Source lists: %s", countOf(audit.Compared, "resource"))
	} else {
		fmt.Fprintf(&b, "of %s %d missing, %d different; %d superfluous", countOf(audit.Compared, "resource"),
			len(audit.Missing), len(audit.Different), len(audit.Superfluous))
	}
	if n := len(audit.Unsure); n > 0 {
		fmt.Fprintf(&b, "; %d may have changed since the last round", n)
	}
	if audit.Gap != "" {
		fmt.Fprintf(&b, "; not compared with the Source as it is now: %s", audit.Gap)
	}
	if audit.Unstated > 0 {
		fmt.Fprintf(&b, "; of %d the Source states neither length nor hash: they are as they were fetched, or listed here",
			audit.Unstated)
	}
	switch n := len(audit.Others); {
	case n == 1:
		b.WriteString("; 1 file of others")
	case n > 1:
		fmt.Fprintf(&b, "; %d files of others", n)
	}
	return b.String()
}
