package clientcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/client/reject"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/tmdm"
)

const aboutRejections = `A rejection hides what a source says in the merged map of this node: in "topic",
"export" and all that is made of it. The copy of the source stays as it is, and
"verify" compares all of it. Nobody else is told.

Statements are named as "topic" shows them, with all themes (--scope). Where several
sources say the same, name those that are meant (--source). Of a statement of your
own, "edit remove" is the way.

A rejection holds as long as the subscription. Where the source no longer says what
is rejected, "topic", "status" and "edit rejections" show that; should it say so again, the
rejection holds again.`

// rejecting holds the arguments of reject and unreject.
type rejecting struct {
	statement
	sources []string
	reason  string
}

func (a *app) reject() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reject",
		Short: "Hide a statement of a source in the merged map",
		Long:  "Hide a statement of a source in the merged map.\n\n" + aboutRejections,
		Example: `  tmshare-client edit reject name http://psi.example.org/oslo "Kristiania" --reason "until 1925"
  tmshare-client edit reject identifier http://psi.example.org/oslo http://psi.example.org/bergen --source gazetteer
  tmshare-client edit rejections
  tmshare-client edit unreject name http://psi.example.org/oslo "Kristiania"`,
		Args: cli.Args(cobra.NoArgs),
		RunE: oneOf("what to reject", "name, variant, occurrence, association, type, identifier or locator"),
	}
	a.addClaims(cmd, "Hide", true, a.rejectNamed)
	return cmd
}

func (a *app) unreject() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unreject",
		Short: "Show a statement again that was rejected",
		Long:  "Show a statement of a source in the merged map again.\n\n" + aboutRejections,
		Args:  cli.Args(cobra.NoArgs),
		RunE:  oneOf("what to show again", "name, variant, occurrence, association, type, identifier or locator"),
	}
	a.addClaims(cmd, "Show again", false, a.unrejectNamed)
	return cmd
}

// addClaims adds a command for each kind of claim.
func (a *app) addClaims(to *cobra.Command, verb string, reason bool,
	do func(context.Context, *rejecting, reject.Named) error) {
	add := func(use, what string, check cobra.PositionalArgs, flags func(*rejecting, *cobra.Command),
		named func(*rejecting, []string) (reject.Named, error)) {
		var r rejecting
		cmd := &cobra.Command{
			Use: use, Short: verb + " " + what, Long: verb + " " + what + ".\n\n" + aboutRejections,
			Args: cli.Args(check),
			RunE: a.run(func(ctx context.Context, args []string) error {
				n, err := named(&r, args)
				if err != nil {
					return err
				}
				n.Type, n.Datatype, n.Scope = cmp.Or(n.Type, r.typ), r.datatype, r.scope
				return do(ctx, &r, n)
			}),
		}
		flags(&r, cmd)
		cmd.Flags().StringArrayVar(&r.sources, "source", nil,
			"of this `subscription` (repeatable; default: the only one that says so)")
		if reason {
			cmd.Flags().StringVar(&r.reason, "reason", "", "`why`, for people")
		}
		to.AddCommand(cmd)
	}
	about := func(kind rejections.Kind) func(*rejecting, []string) (reject.Named, error) {
		return func(_ *rejecting, args []string) (reject.Named, error) {
			return reject.Named{Kind: kind, Topic: args[0], Value: args[1]}, nil
		}
	}
	flags := func(typ, datatype bool) func(*rejecting, *cobra.Command) {
		return func(r *rejecting, cmd *cobra.Command) { r.flags(cmd, typ, datatype) }
	}
	none := func(*rejecting, *cobra.Command) {}
	add("name TOPIC VALUE", "a name, with its variants", cobra.ExactArgs(2), flags(true, false), about(rejections.Name))
	add("variant TOPIC NAME VALUE", "a variant of a name", cobra.ExactArgs(3), flags(false, true),
		func(_ *rejecting, args []string) (reject.Named, error) {
			return reject.Named{Kind: rejections.Variant, Topic: args[0], Of: args[1], Value: args[2]}, nil
		})
	add("occurrence TOPIC VALUE", "an occurrence", cobra.ExactArgs(2), flags(true, true), about(rejections.Occurrence))
	add("identifier TOPIC IDENTIFIER", "that a topic has a subject identifier", cobra.ExactArgs(2), none,
		about(rejections.Identifier))
	add("locator TOPIC LOCATOR", "that a topic has a subject locator", cobra.ExactArgs(2), none, about(rejections.Locator))
	add("type TOPIC TYPE", "that a topic is an instance of another", cobra.ExactArgs(2), none,
		func(_ *rejecting, args []string) (reject.Named, error) {
			return reject.Named{Kind: rejections.Association, Type: string(tmdm.PSITypeInstance), Roles: [][2]string{
				{string(tmdm.PSIInstance), args[0]}, {string(tmdm.PSIType), args[1]}}}, nil
		})
	add("association --type TYPE ROLE=PLAYER...", "an association", cobra.MinimumNArgs(1), flags(true, false),
		func(r *rejecting, args []string) (reject.Named, error) {
			roles, err := rolesOf(r.typ, args)
			return reject.Named{Kind: rejections.Association, Roles: roles}, err
		})
}

// rejectNamed rejects the claims that are named.
func (a *app) rejectNamed(ctx context.Context, r *rejecting, n reject.Named) error {
	found, near, err := reject.Stated(ctx, a.DB, n)
	if err != nil {
		return err
	}
	chosen, err := a.chosen(ctx, found, r.sources)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return notStated(near)
	case len(chosen) == 0:
		return ownStatement(found)
	}
	err = bySource(chosen, func(source string, claims []rejections.Claim) error {
		return a.DB.Reject(ctx, source, r.reason, claims...)
	})
	if err != nil {
		return err
	}
	return a.tellRejections(chosen, "rejected", sayersBut(found, chosen))
}

// unrejectNamed takes the rejections of the claims back that are named.
func (a *app) unrejectNamed(ctx context.Context, r *rejecting, n reject.Named) error {
	found, err := reject.Rejected(ctx, a.DB, n)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("nothing of this kind is rejected. \"tmshare-client edit rejections\" lists what is")
	}
	chosen, err := a.chosen(ctx, found, r.sources)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return fmt.Errorf("it is rejected of %s only: leave out --source", strings.Join(sayersBut(found, nil), ", "))
	}
	err = bySource(chosen, func(source string, claims []rejections.Claim) error {
		return a.DB.Unreject(ctx, source, claims...)
	})
	if err != nil {
		return err
	}
	return a.tellRejections(chosen, "shown again", nil)
}

// chosen returns the claims of the named sources, or of the only source besides the node's own statements.
func (a *app) chosen(ctx context.Context, found []reject.Found, sources []string) (chosen []reject.Found, err error) {
	for _, name := range sources {
		own, err := a.DB.Collections(ctx)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(own, func(c store.Collection) bool { return c.Name == name }) {
			return nil, ownStatement([]reject.Found{{Source: name, Own: true}})
		}
		if _, err := a.client.Subscription(ctx, name); err != nil {
			return nil, err
		}
	}
	var others []string
	for _, f := range found {
		if f.Own {
			continue
		}
		if len(sources) > 0 && !slices.Contains(sources, f.Source) {
			continue
		}
		if !slices.Contains(others, f.Source) {
			others = append(others, f.Source)
		}
		chosen = append(chosen, f)
	}
	if len(sources) == 0 && len(others) > 1 {
		return nil, fmt.Errorf("several sources say so: %s. Name those that are meant with --source, such as --source %s",
			strings.Join(others, ", "), others[0])
	}
	return chosen, nil
}

// ownStatement is the error for a rejection of a statement that the chosen sources do not make.
func ownStatement(found []reject.Found) error {
	for _, f := range found {
		switch {
		case !f.Own:
			return fmt.Errorf("it is said by %s, not by the source that is named: change --source",
				strings.Join(sayersBut(found, nil), ", "))
		case f.Source == local.Name:
			return errors.New("these are statements of your own: take one back with \"tmshare-client edit remove\"")
		}
	}
	return fmt.Errorf(
		"%s is published by this node: change it where it is written, for example with \"tmshare-server import\"",
		found[0].Source)
}

// notStated is the error for a statement of no source. near are similar claims.
func notStated(near []reject.Found) error {
	if len(near) == 0 {
		return errors.New("no source says so. \"tmshare-client topic TOPIC\" shows what the sources say")
	}
	var lines []string
	for _, f := range near {
		lines = append(lines, fmt.Sprintf("%s [%s]", &f.Claim, f.Source))
	}
	return fmt.Errorf(
		"no source says just this. Name the type (--type), the datatype (--datatype) and all themes (--scope) of one of "+
			"these:\n  %s", strings.Join(lines, "\n  "))
}

// bySource calls f with the claims of each source.
func bySource(found []reject.Found, f func(source string, claims []rejections.Claim) error) error {
	claims := map[string][]rejections.Claim{}
	for _, one := range found {
		claims[one.Source] = append(claims[one.Source], one.Claim)
	}
	for _, source := range sayersBut(found, nil) {
		if err := f(source, claims[source]); err != nil {
			return err
		}
	}
	return nil
}

// sayersBut returns the sources of claims that are not among others, each once.
func sayersBut(found, others []reject.Found) (names []string) {
	for _, f := range found {
		if !slices.Contains(names, f.Source) && !slices.ContainsFunc(others, func(o reject.Found) bool {
			return o.Source == f.Source
		}) {
			names = append(names, f.Source)
		}
	}
	return names
}

func (a *app) tellRejections(changed []reject.Found, done string, still []string) error {
	return a.Answer(changed, func(w io.Writer) {
		for _, f := range changed {
			fmt.Fprintf(w, "%s: %s %s\n", f.Source, &f.Claim, done)
		}
		if len(still) > 0 {
			fmt.Fprintf(w, "it shows all the same, because others say so too: %s\n", strings.Join(still, ", "))
		}
	})
}

// listed is a rejection for programs.
type listed struct {
	Source string `json:"source"`
	store.Rejected
}

func (a *app) rejections() *cobra.Command {
	return &cobra.Command{
		Use:   "rejections [NAME...]",
		Short: "List what is rejected",
		Long:  "List what is rejected of the subscriptions NAME, or of all.\n\n" + aboutRejections,
		RunE: a.runReading(func(ctx context.Context, args []string) error {
			names, err := a.names(ctx, args)
			if err != nil {
				return err
			}
			list := []listed{}
			for _, name := range names {
				if _, err := a.client.Subscription(ctx, name); err != nil {
					return err
				}
				all, err := a.DB.Rejections(ctx, name)
				if err != nil {
					return err
				}
				for _, r := range all {
					list = append(list, listed{name, r})
				}
			}
			if a.JSON {
				return a.Print(list)
			}
			if len(list) == 0 {
				a.Printf("nothing is rejected\n")
			}
			for i := range list {
				r := &list[i]
				a.Printf("%s: %s%s\n", r.Source, &r.Claim, noLonger(r.Stated))
				if about := r.Claim.String(); r.Kind != rejections.Association && !strings.HasSuffix(about, r.Topic.String()) {
					a.Printf("  of %s\n", r.Topic)
				}
				a.Printf("  since %s%s\n", feeds.FormatTime(r.Time), because(r.Reason))
			}
			return nil
		}),
	}
}

// noLonger returns a remark for a rejection without effect.
func noLonger(stated bool) string {
	if stated {
		return ""
	}
	return ", which is no longer stated"
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
