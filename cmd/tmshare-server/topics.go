package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
)

func topicsCommand(a *extension.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "Publish, delete or fetch single topics of a running server",
		Args:  cli.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(putTopics(a), deleteTopic(), getTopic(a.Formats()))
	return cmd
}

func putTopics(a *extension.App) *cobra.Command {
	var r remote
	var topics []string
	var w admin.Write
	cmd := &cobra.Command{
		Use:   "put NAME FILE",
		Short: "Publish what a file says of some topics",
		Long: `Publish what FILE (XTM or RDF, gzipped or not; "-" is standard input, in XTM) says
of some topics of the collection NAME. All other topics stay as they are.

Each topic of which the file has a name, an occurrence or a type is replaced by
what the file says of it. That includes the associations in which it plays. The other
topics of the file only resolve references, except those named with --topic:
they are replaced as well, by nothing but their identifiers and associations.`,
		Example: `  tmshare-server topics get egov https://psi.egov.example.org/service/dog-licence > topic.xtm
  tmshare-server topics put egov topic.xtm`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(2))),
	}
	cmd.Flags().StringArrayVar(&topics, "topic", nil,
		"`subject identifier` of a topic to replace in any case (repeatable)")
	checkFormats := a.FormatFlags(cmd.Flags(), formats.Use{Reads: true})
	r.writeFlags(cmd, &w)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		asked, err := checkFormats(nil)
		if err != nil {
			return cli.UsageError(err)
		}
		doc, done, err := openXTM(a.Formats(), args[1], asked)
		if err != nil {
			return err
		}
		defer done()
		p, err := r.server.PutTopics(ctx, args[0], topics, doc, w)
		if err != nil {
			return about(args[1], err)
		}
		r.warn(args[1], p)
		return r.print(p, published(p))
	})
}

func deleteTopic() *cobra.Command {
	var r remote
	var w admin.Write
	cmd := &cobra.Command{
		Use:   "delete NAME SUBJECT-IDENTIFIER",
		Short: "Delete a topic, with the associations in which it plays",
		Long: `Delete a topic of the collection NAME, with the associations in which it plays. A
topic that still types, scopes or reifies something is refused, with the list of
what.`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(2))),
	}
	r.writeFlags(cmd, &w)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		p, err := r.server.DeleteTopic(ctx, args[0], args[1], w)
		if err != nil {
			return err
		}
		return r.print(p, published(p))
	})
}

func getTopic(known formats.Registry) *cobra.Command {
	var r remote
	var format string
	var at times
	var claims bool
	cmd := &cobra.Command{
		Use:   "get NAME SUBJECT-IDENTIFIER",
		Short: "Print the fragment of a topic",
		Long: `Print the fragment of a topic of the collection NAME: all that the map says of it,
and the identifiers of the topics that it mentions. --at prints what it was at a
time. A topic that has been deleted since is named by the identifier that "history"
shows it under. --claims gives each statement item identifiers that begin with the source
locator prefixes of those who assert it: of the inputs of a derived collection.`,
		Example: `  tmshare-server topics get egov https://psi.egov.example.org/service/dog-licence
  tmshare-server topics get egov https://psi.egov.example.org/service/dog-licence --at 2026-11-01`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(2))),
	}
	cmd.Flags().StringVar(&format, "format", "xtm2.1",
		"`format`: xtm2.1, which loses nothing, xtm1, or of maps that are offered in RDF turtle, ntriples or rdfxml")
	cli.OneOf(cmd.Flags(), "format", known.Served().Names()...)
	at.states(&r, cmd, 1, "at", "as it was at this `time`")
	cmd.Flags().BoolVar(&claims, "claims", false, "with the item identifiers of those who assert each statement")
	return r.command(cmd, func(ctx context.Context, args []string) error {
		f, err := known.Served().Named(format)
		if err != nil {
			return cli.UsageError(fmt.Errorf("--format: %w", err))
		}
		if claims && (!at.first().IsZero() || f != formats.XTM21) {
			return cli.UsageError(errors.New("--claims prints the present statements, in xtm2.1: leave --at and --format out"))
		}
		return r.server.Topic(ctx, args[0], args[1], admin.TopicForm{Extension: f.URLEnding, At: at.first(), Claims: claims},
			r.out)
	})
}
