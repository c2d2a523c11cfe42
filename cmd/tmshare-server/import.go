package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
)

func importCommand(a *extension.App) *cobra.Command {
	var r remote
	var im admin.Import
	var root string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "import NAME FILE",
		Short: "Publish a file as the new version of a map of a running server",
		Long: `Publish FILE (XTM or RDF, gzipped or not; "-" is standard input, in XTM) as the
new version of the collection NAME of a running server. --create makes the
collection if there is none.

The server finds out which topics have changed and publishes those, all at once
or, if anything goes wrong, not at all. --dry-run shows what it would publish.

If the file has a mergeMap, it is merged here first, with files below its folder or
below --root. For standard input, whose folder is the current one, give --root.

A version is held back that would lose more than half of a collection of 20 or more topics:
the file may have been cut short, or be another one. A topic is lost that is deleted,
keeps none of its names and occurrences, or loses its last type. --max-delete says how
many may be lost: a number, a percentage such as 80%, or all; 0 allows no loss. If
topics that are not lost lose more than half of all that is said, only all lets it pass.

Topics without subject identifiers are known by their ids in the file. If these were numbered
anew, a warning says so.

Warnings that are the same as last time are one line. They are remembered in the folder for caches
of the user. --quiet is for cron: it prints nothing where nothing has changed.`,
		Example: `  tmshare-server import egov egov.xtm --create
  tmshare-server import egov egov.xtm --dry-run
  tmshare-server import egov egov-small.xtm --max-delete 180
  tmshare-server import egov egov.xtm.gz --server https://maps.example.org --token-file token`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(2))),
	}
	fl := cmd.Flags()
	fl.StringVar(&im.Title, "title", "", "`title` of the collection (default: as it is; of a new one: its name)")
	fl.StringVar(&im.Summary, "summary", "", "`text` that describes the collection (default: as it is)")
	fl.StringVar(&im.SP, "sp", "",
		"source locator prefix, an `IRI`, of a new collection; ends in / or #, is fixed for ever (default: base URL + "+
			"/topicmaps/NAME/, then a random part where the base URL is not public)")
	fl.StringVar(&root, "root", "", "`folder` below which the files are that a mergeMap names (default: that of FILE)")
	checkFormats := a.FormatFlags(fl, formats.Use{Reads: true})
	fl.BoolVar(&im.Create, "create", false, "make the collection if there is none of that name")
	fl.TextVar(&im.MaxDelete, "max-delete", losses.Limit{},
		"lose at most this number of topics: `N`, N% or all (default: half, and any number of fewer than 20)")
	fl.BoolVarP(&quiet, "quiet", "q", false, "print nothing where nothing has changed")
	r.writeFlags(cmd, &im.Write)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		asked, err := checkFormats(nil)
		if err != nil {
			return cli.UsageError(err)
		}
		doc, done, err := openMap(ctx, args[1], root, a.Formats(), asked)
		if err != nil {
			return err
		}
		defer done()
		im.Name = args[0]
		imported, err := r.server.Import(ctx, im, doc)
		if err != nil {
			return about(args[1], err)
		}
		p := &imported.Published
		changed := imported.Created || p.Added+p.Updated+p.Deleted > 0
		switch {
		case r.json: // the JSON has the warnings
		case !remembered(r.address+" "+args[0], p.Warnings):
			r.warn(args[1], p)
		case (changed || !quiet) && len(p.Warnings) > 0:
			fmt.Fprintf(os.Stderr, "%s: %s; \"tmshare-client validate\" lists them\n", args[1],
				formats.SameWarnings(len(p.Warnings)))
		}
		if quiet && !changed && !r.json {
			return nil
		}
		text := published(&imported.Published)
		if imported.Created {
			text += " (a new collection)"
		}
		return r.print(imported, text)
	})
}

// remembered reports whether the warnings of an import to a place equal those of the last import there, and stores
// their digest. Where it cannot be read, the answer is false.
func remembered(place string, warnings []formats.Warning) bool {
	dir, err := os.UserCacheDir()
	renumbered := func(w formats.Warning) bool { return w.Rule == losses.RenumberedRule } // the text differs each time
	if err != nil || slices.ContainsFunc(warnings, renumbered) {
		return false
	}
	path := filepath.Join(dir, "tmshare", "warnings", fmt.Sprintf("%x", sha256.Sum256([]byte(place))))
	now := fmt.Appendf(nil, "%x\n", sha256.Sum256([]byte(formats.Texts(warnings))))
	if last, err := os.ReadFile(path); err == nil && bytes.Equal(last, now) {
		return true
	}
	if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = os.WriteFile(path, now, 0o600) // on failure, the next import prints them again
	}
	return false
}
