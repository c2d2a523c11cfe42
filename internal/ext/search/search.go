// Package search is an extension: topics are found by name.
package search

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/txn"
	terms "github.com/tmshare/tmshare/internal/words"
)

// Extension returns it: the index of words, and the command that finds topics by it.
func Extension() extension.Extension {
	return extension.Extension{Name: "search", Indexes: []txn.Index{words.Index()},
		Commands: func(a *extension.App) []*cobra.Command {
			if a.Serves {
				return nil
			}
			return cli.In(cli.Everyday, command(a))
		}}
}

// command returns the command of tmshare-client.
func command(app *extension.App) *cobra.Command {
	var sources []string
	var server, name, tokenFile, in string
	var a asking
	cmd := &cobra.Command{
		Use:   "find WORDS",
		Short: "Find topics of the merged map by name, or those of a server",
		Long: `Find the topics of the merged map that have some words in a name, or in a variant of
one, in any scope. Each word may be the beginning of a word; case and accents do not
count. Notations come first, then names before variants, and whole words before
beginnings; definitions and notes come last. There, only words of six letters and more
may be beginnings. An identifier, or the beginning of one, finds the topics that have it.
Each topic is followed by what fits, if that is not its title, and by the sources that
say so in brackets. What is rejected finds nothing. Where few topics are found, words
that are like those are shown.

--type finds instances of a type alone, and --in what fits in a text of a language.

With --server and --map, a server is asked; it needs no subscription.` + cli.Exits(cli.Unreachable),
		Example: `  tmshare-client find dog licence
  tmshare-client find fjord --source libraries --limit 5
  tmshare-client find eisen --in de --type http://www.w3.org/2004/02/skos/core#Concept
  tmshare-client find dog --server http://127.0.0.1:8080 --map egov`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case a.limit < 1 || a.limit > mostFound:
				return cli.UsageError(fmt.Errorf("--limit %d: give a number from 1 to %d", a.limit, mostFound))
			case strings.Contains(name, "://"):
				return cli.UsageError(admin.CheckName("--map ", name))
			case strings.Contains(server, "/topicmaps/"):
				return cli.UsageError(admin.CheckName("--map ", server))
			case (server == "") != (name == ""):
				return cli.UsageError(
					errors.New("--server and --map go together: give both, or neither to look in what is followed"))
			case server != "" && len(sources) > 0:
				return cli.UsageError(errors.New("--source names a source of the data folder: leave it out with --server"))
			case server != "":
				return cli.UsageError(admin.CheckName("--map ", name))
			}
			return nil
		},
	}
	show := func(all *found, err error) error {
		if err != nil {
			return err
		}
		if app.JSON {
			return app.Print(all)
		}
		all.print(app.Printf)
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.text = strings.Join(args, " ")
		if cmd.Flags().Changed("in") {
			a.in = &in
		}
		if server == "" {
			return app.Run(store.Read, func(ctx context.Context, _ []string) error {
				return show(find(ctx, app.Merged(), a, sources))
			})(cmd, args)
		}
		return app.Apart(func(context.Context, []string) error {
			at := strings.TrimSuffix(server, "/") + "/topicmaps/" + url.PathEscape(name)
			f, err := app.Fetcher(at, tokenFile)
			if err != nil {
				return err
			}
			return show(findAt(cmd.Context(), f, at, a))
		})(cmd, args)
	}
	cmd.Flags().StringVar(&server, "server", "", "ask the server at this `URL`, with --map")
	cmd.Flags().StringVar(&name, "map", "", "the `name` of the map at the server")
	cli.CommandLineOnly(cmd.Flags()) // TMSHARE_SERVER is for tmshare-server and does not choose the searched server
	cmd.Flags().StringArrayVar(&sources, "source", nil, "look only in what this `source` says (repeatable)")
	cmd.Flags().StringVar(&a.typ, "type", "", "find instances of the type with this subject `identifier` alone")
	cmd.Flags().StringVar(&in, "in", "", "find what fits in a text of this `language` alone, such as de; \"\": of none")
	cmd.Flags().IntVarP(&a.limit, "limit", "n", 20, "show this `number` at most")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "a `file` with the token for reading the map at the server")
	extension.LanguageFlag(cmd.Flags(), &a.languages)
	return cmd
}

// mostFound is the number of topics per page of results.
const mostFound = 100

func (all *found) print(printf func(format string, args ...any)) {
	for i := range all.Results {
		r := &all.Results[i]
		label := ""
		if len(r.By) > 0 { // the sources are known
			label = merged.Sayers(r.By)
		}
		printf("%s\n", merged.OneLine(r.Title))
		if !terms.IsOpaque(string(r.TopicSI)) {
			printf("  %s\n", r.TopicSI)
		}
		switch {
		case terms.IsOpaque(r.Value):
		case r.Value != r.Title || len(r.Scope) > 0:
			printf("  %-12s %s%s%s\n", r.Kind, merged.OneLine(iri.Shown(r.Value)), merged.Themes(r.Scope, terms.Short), label)
		case label != "":
			printf("  %s\n", strings.TrimSpace(label))
		}
	}
	switch {
	case all.More:
		printf("there are more: write more words, or --limit NUMBER\n")
	case len(all.Results) == 0:
		printf("no topic is called so: write fewer words, or only how they begin\n")
	}
	if len(all.DidYouMean) > 0 {
		printf("did you mean: %s\n", merged.OneLine(strings.Join(all.DidYouMean, ", ")))
	}
}
