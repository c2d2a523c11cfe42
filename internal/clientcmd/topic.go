package clientcmd

import (
	"context"
	"fmt"
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
			if a.json {
				return a.print(t)
			}
			a.printTopic(t)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&instances, "instances", false, "with the instances of the topic")
	return cmd
}

// merged is the merged view of the sources of the open store.
func (a *app) merged() merged.View { return merged.View{Store: a.db, Report: a.client.Report} }

func (a *app) printTopic(t *merged.Topic) {
	a.printf("%s\n", t.TopicSI)
	for _, l := range t.SubjectIdentifiers {
		a.printf("  identifier   %s%s\n", l.Locator, sayers(l.By))
	}
	for _, l := range t.SubjectLocators {
		a.printf("  locator      %s%s\n", l.Locator, sayers(l.By))
	}
	for _, n := range t.Names {
		kind := ""
		if n.Type != string(tmdm.PSIDefaultNameType) {
			kind = " : " + n.Type
		}
		a.printf("  name         %s%s%s%s%s\n", oneLine(n.Value), kind, themes(n.Scope), reifiedBy(n.Reifier), sayers(n.By))
		for _, v := range n.Variants {
			a.printf("    variant    %s%s%s%s%s\n", oneLine(v.Value), datatype(v.Datatype), themes(v.Scope), reifiedBy(v.Reifier), sayers(v.By))
		}
	}
	for _, o := range t.Occurrences {
		a.printf("  occurrence   %s : %s%s%s%s%s\n", oneLine(o.Value), o.Type, datatype(o.Datatype), themes(o.Scope), reifiedBy(o.Reifier), sayers(o.By))
	}
	for _, r := range t.Associations {
		a.printf("  association  %s%s%s%s\n", r.Type, themes(r.Scope), reifiedBy(r.Reifier), sayers(r.By))
		for _, role := range r.Roles {
			a.printf("    %s = %s\n", role.Type, role.Player)
		}
	}
	for i := range t.Rejected {
		r := &t.Rejected[i]
		a.printf("  rejected     %s%s%s%s\n", &r.Claim, sayers([]string{r.By}), noLonger(r.Stated), because(r.Reason))
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
