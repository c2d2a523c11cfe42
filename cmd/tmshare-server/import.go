package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
)

func importCommand() *cobra.Command {
	var r remote
	var im admin.Import
	cmd := &cobra.Command{
		Use:   "import NAME FILE",
		Short: "Publish a file as the new version of a map of a running server",
		Long: `Publish FILE (XTM 1.0, 2.0 or 2.1, gzipped or not; "-" is standard input) as the
new version of the collection NAME of a running server. If there is no such
collection, it is created.

The server finds out which topics have changed and publishes those, all at once
or, if anything goes wrong, not at all.`,
		Example: `  tmshare-server import egov egov.xtm
  tmshare-server import egov egov.xtm.gz --server https://maps.example.org --token-file token`,
		Args: cli.Args(cobra.ExactArgs(2)),
	}
	fl := cmd.Flags()
	fl.StringVar(&im.Title, "title", "", "`title` of the collection (default: as it is; of a new one: its name)")
	fl.StringVar(&im.Summary, "summary", "", "`text` that describes the collection (default: as it is)")
	fl.StringVar(&im.SP, "sp", "", "source locator prefix, an `IRI`, of a new collection; ends in / or #, is fixed for ever (default: base URL + /topicmaps/NAME/)")
	ifMatchFlag(cmd, &im.IfMatch)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		doc, done, err := openXTM(args[1])
		if err != nil {
			return err
		}
		defer done()
		im.Name = args[0]
		imported, err := r.server.Import(ctx, im, doc)
		if err != nil {
			return about(args[1], err)
		}
		text := published(&imported.Published)
		if imported.Created {
			text += " (a new collection)"
		}
		return r.print(imported, text)
	})
}
