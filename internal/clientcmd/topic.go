package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/tmdm"
)

func (a *app) topic() *cobra.Command {
	var instances bool
	cmd := &cobra.Command{
		Use:   "topic SI",
		Short: "Show one topic of the merged map, and who says what",
		Long: `Show the topic of the merged map that has a subject identifier: its identifiers,
names, occurrences and associations, each followed by the sources that say so in
brackets. What is rejected ("edit reject") comes last. It costs what the topic weighs,
not the map.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: a.runReading(func(ctx context.Context, args []string) error {
			t, err := a.merged().Topic(ctx, args[0], instances)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.Print(t)
			}
			a.printTopic(t)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&instances, "instances", false, "with the instances of the topic")
	return cmd
}

func (a *app) find() *cobra.Command {
	var sources []string
	var server, name, tokenFile string
	var limit int
	cmd := &cobra.Command{
		Use:   "find WORDS",
		Short: "Find topics of the merged map by name, or those of a server",
		Long: `Find the topics of the merged map that have some words in a name, or in a variant of
one, in any scope. Each word may be the beginning of a word; case and accents do not
count. Names come before variants, and whole words before beginnings. An identifier,
or the beginning of one, finds the topics that have it. Each topic is followed by what
fits, if that is not its title, and by the sources that say so in brackets. What is
rejected finds nothing.

With --server and --map, a server is asked; it needs no subscription.`,
		Example: `  tmshare-client find dog licence
  tmshare-client find fjord --source libraries --limit 5
  tmshare-client find dog --server http://127.0.0.1:8080 --map egov`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case limit < 1 || limit > mostFound:
				return cli.UsageError(fmt.Errorf("--limit %d: give a number from 1 to %d", limit, mostFound))
			case (server == "") != (name == ""):
				return cli.UsageError(errors.New("--server and --map go together: give both, or neither to look in what is followed"))
			case server != "" && len(sources) > 0:
				return cli.UsageError(errors.New("--source names a source of the data folder: leave it out with --server"))
			}
			return nil
		},
	}
	show := func(found *merged.Found, err error) error {
		if err != nil {
			return err
		}
		if a.JSON {
			return a.Print(found)
		}
		a.printFound(found)
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if server == "" {
			return a.runReading(func(ctx context.Context, args []string) error {
				return show(a.merged().Find(ctx, strings.Join(args, " "), limit, sources...))
			})(cmd, args)
		}
		return a.Apart(func(ctx context.Context, args []string) error {
			at := strings.TrimSuffix(server, "/") + "/topicmaps/" + url.PathEscape(name)
			f, err := a.Fetcher(at, tokenFile)
			if err != nil {
				return err
			}
			return show(merged.FindAt(cmd.Context(), f, at, strings.Join(args, " "), limit))
		})(cmd, args)
	}
	cmd.Flags().StringVar(&server, "server", "", "ask the server at this `URL`, with --map")
	cmd.Flags().StringVar(&name, "map", "", "the `name` of the map at the server")
	cli.CommandLineOnly(cmd.Flags()) // TMSHARE_SERVER is for tmshare-server; it says nothing of where to look
	cmd.Flags().StringArrayVar(&sources, "source", nil, "look only in what this `source` says (repeatable)")
	cmd.Flags().IntVar(&limit, "limit", 20, "show this `number` at most")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "a `file` with the token for reading the map at the server")
	return cmd
}

// mostFound is how many topics are found at a time.
const mostFound = 100

func (a *app) printFound(found *merged.Found) {
	for i := range found.Results {
		r := &found.Results[i]
		a.Printf("%s\n  %s\n", oneLine(r.Title), r.TopicSI)
		switch {
		case r.Value != r.Title || len(r.Scope) > 0:
			a.Printf("  %-12s %s%s%s\n", r.Kind, oneLine(r.Value), themes(r.Scope), said(r.By))
		case len(r.By) > 0:
			a.Printf("  %s\n", strings.TrimSpace(said(r.By)))
		}
	}
	switch {
	case found.More:
		a.Printf("there are more: write more words, or --limit NUMBER\n")
	case len(found.Results) == 0:
		a.Printf("no topic is called so: write fewer words, or only how they begin\n")
	}
}

// said is sayers where it is known who says it.
func said(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return sayers(by)
}

// merged is the merged view of the sources of the open store.
func (a *app) merged() merged.View { return merged.View{Store: a.DB, Report: a.client.Report} }

func (a *app) printTopic(t *merged.Topic) {
	a.Printf("%s\n", t.TopicSI)
	for _, l := range t.SubjectIdentifiers {
		a.Printf("  identifier   %s%s\n", l.Locator, sayers(l.By))
	}
	for _, l := range t.SubjectLocators {
		a.Printf("  locator      %s%s\n", l.Locator, sayers(l.By))
	}
	for _, n := range t.Names {
		kind := ""
		if n.Type != string(tmdm.PSIDefaultNameType) {
			kind = " : " + n.Type
		}
		a.Printf("  name         %s%s%s%s%s\n", oneLine(n.Value), kind, themes(n.Scope), reifiedBy(n.Reifier), sayers(n.By))
		for _, v := range n.Variants {
			a.Printf("    variant    %s%s%s%s%s\n", oneLine(v.Value), datatype(v.Datatype), themes(v.Scope), reifiedBy(v.Reifier), sayers(v.By))
		}
	}
	for _, o := range t.Occurrences {
		a.Printf("  occurrence   %s : %s%s%s%s%s\n", oneLine(o.Value), o.Type, datatype(o.Datatype), themes(o.Scope), reifiedBy(o.Reifier), sayers(o.By))
	}
	for _, r := range t.Associations {
		a.Printf("  association  %s%s%s%s\n", r.Type, themes(r.Scope), reifiedBy(r.Reifier), sayers(r.By))
		for _, role := range r.Roles {
			a.Printf("    %s = %s\n", role.Type, role.Player)
		}
	}
	for i := range t.Rejected {
		r := &t.Rejected[i]
		a.Printf("  rejected     %s%s%s%s\n", &r.Claim, sayers([]string{r.By}), noLonger(r.Stated), because(r.Reason))
	}
}

func sayers(by []string) string {
	if len(by) == 0 {
		return "  [only referred to]"
	}
	return "  [" + strings.Join(by, ", ") + "]"
}

func themes(scope []string) string {
	if len(scope) == 0 {
		return ""
	}
	return " @ " + strings.Join(scope, " ")
}

func reifiedBy(by string) string {
	if by == "" {
		return ""
	}
	return " ~ " + by
}

func datatype(iri string) string {
	if iri == "" || iri == tmdm.XSDString {
		return ""
	}
	return " ^^ " + iri
}

// maxShown is how much of a value is shown to people, in characters.
const maxShown = 200

// oneLine returns a value as people can read it in one line of a terminal.
func oneLine(value string) string {
	if runes := []rune(value); len(runes) > maxShown {
		value = string(runes[:maxShown]) + "…"
	}
	return fmt.Sprintf("%q", value)
}
