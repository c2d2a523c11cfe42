package clientcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

func (a *app) topic() *cobra.Command {
	var instances bool
	var languages titles.Languages
	cmd := &cobra.Command{
		Use:   "topic SI",
		Short: "Show one topic of the merged map, and who says what",
		Long: `Show the topic of the merged map that has a subject identifier: its identifiers,
names, occurrences and associations, each followed by the sources that say so in
brackets. What is rejected ("edit reject") comes last. It costs what the topic weighs,
not the map. Types, roles and themes are called by their names, or by words; --json
has their identifiers.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: a.runReading(func(ctx context.Context, args []string) error {
			t, err := a.Merged().Topic(ctx, args[0], instances, languages...)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.Print(t)
			}
			a.printTopic(t, len(languages) > 0)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&instances, "instances", false, "with the instances of the topic")
	extension.LanguageFlag(cmd.Flags(), &languages)
	return cmd
}

func (a *app) printTopic(t *merged.Topic, titled bool) {
	heading := t.TopicSI
	if words.IsOpaque(heading) {
		heading = t.Mentioned(heading)
	}
	a.Printf("%s\n", iri.Shown(heading))
	for _, l := range t.SubjectIdentifiers {
		if words.IsOpaque(l.Locator) {
			continue
		}
		a.Printf("  identifier   %s%s\n", iri.Shown(l.Locator), merged.Sayers(l.By))
	}
	for _, l := range t.SubjectLocators {
		a.Printf("  locator      %s%s\n", iri.Shown(l.Locator), merged.Sayers(l.By))
	}
	if titled {
		a.Printf("  title        %s\n", merged.OneLine(t.Title))
	}
	for _, n := range t.Names {
		kind := ""
		if n.Type != string(tmdm.PSIDefaultNameType) {
			kind = " : " + t.Mentioned(n.Type)
		}
		a.Printf("  name         %s%s%s%s%s\n", merged.OneLine(n.Value), kind,
			merged.Themes(n.Scope, t.Mentioned), reifiedBy(t, n.Reifier), merged.Sayers(n.By))
		for _, v := range n.Variants {
			a.Printf("    variant    %s%s%s%s%s\n", merged.OneLine(v.Value), datatype(v.Datatype),
				merged.Themes(v.Scope, t.Mentioned), reifiedBy(t, v.Reifier), merged.Sayers(v.By))
		}
	}
	for _, o := range t.Occurrences {
		a.Printf("  occurrence   %s : %s%s%s%s%s\n", merged.OneLine(o.Value), t.Mentioned(o.Type),
			datatype(o.Datatype), merged.Themes(o.Scope, t.Mentioned), reifiedBy(t, o.Reifier), merged.Sayers(o.By))
	}
	for _, r := range t.Associations {
		a.Printf("  association  %s%s%s%s\n", t.Mentioned(r.Type), merged.Themes(r.Scope, t.Mentioned),
			reifiedBy(t, r.Reifier), merged.Sayers(r.By))
		for _, role := range r.Roles {
			a.Printf("    %s = %s\n", t.Mentioned(role.Type), words.Titled(role.Player, t.Titles[role.Player]))
		}
	}
	for i := range t.Rejected {
		r := &t.Rejected[i]
		a.Printf("  rejected     %s%s%s%s\n", &r.Claim, merged.Sayers([]string{r.By}), noLonger(r.Stated), because(r.Reason))
	}
}

func reifiedBy(t *merged.Topic, by string) string {
	if by == "" {
		return ""
	}
	return " ~ " + t.Mentioned(by)
}

func datatype(iri string) string {
	if iri == "" || words.IsText(iri) {
		return ""
	}
	return " ^^ " + words.Short(iri)
}
