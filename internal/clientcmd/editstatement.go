package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/tmdm"
)

// statement is what add and remove are told of a statement.
type statement struct {
	typ, datatype, sp string
	scope             []string
}

func (st *statement) flags(cmd *cobra.Command, typ, datatype bool) {
	if typ {
		cmd.Flags().StringVar(&st.typ, "type", "", "its type, by subject `identifier`")
	}
	if datatype {
		cmd.Flags().StringVar(&st.datatype, "datatype", "", "`IRI` of its datatype (default: that of strings)")
	}
	cmd.Flags().StringArrayVar(&st.scope, "scope", nil, "a theme of its scope, by subject `identifier` (repeatable)")
}

// in returns the topics of a map that stand for type and scope.
func (st *statement) in(ctx context.Context, a *app,
	tm *tmdm.TopicMap) (typ *tmdm.Topic, scope []*tmdm.Topic, err error) {
	if st.typ != "" {
		if typ, err = a.local().Named(ctx, tm, st.typ); err != nil {
			return nil, nil, err
		}
	}
	scope, err = a.local().AllNamed(ctx, tm, st.scope)
	return typ, scope, err
}

// valued returns a value and its datatype as documents can carry them: an IRI
// is absolute and in normal form.
func (st *statement) valued(given string) (value, datatype string, err error) {
	parse := func(s string) string {
		l, bad := tmdm.ParseLocator(s)
		if bad != nil && err == nil {
			err = cli.UsageError(fmt.Errorf("%w: write it in full, such as %s", bad, tmdm.XSDAnyURI))
		}
		return string(l)
	}
	value, datatype = given, tmdm.XSDString
	if st.datatype != "" {
		datatype = parse(st.datatype)
	}
	if datatype == tmdm.XSDAnyURI {
		value = parse(given)
	}
	return value, datatype, err
}

func (a *app) add() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a local statement",
		Long:  "Add a local statement.\n\n" + aboutLocal,
		Example: `  tmshare-client edit add name http://psi.example.org/oslo "Oslo" --scope http://psi.example.org/lang/no
  tmshare-client edit add occurrence http://psi.example.org/oslo https://www.oslo.kommune.no/ --type \
    http://psi.example.org/website --datatype http://www.w3.org/2001/XMLSchema#anyURI
  tmshare-client edit add association --type http://psi.example.org/located-in \
    http://psi.example.org/place=http://psi.example.org/oslo http://psi.example.org/area=http://psi.example.org/norway
  tmshare-client edit add type http://psi.example.org/oslo http://psi.example.org/city`,
		Args: cli.Args(cobra.NoArgs), RunE: oneOf("what to add", "name, occurrence, association, type or identifier"),
	}
	cmd.AddCommand(
		a.editCommand("name TOPIC VALUE", "Add a name", 2, true, false,
			func(ctx context.Context, st *statement, args []string, tm *tmdm.TopicMap, t *tmdm.Topic) error {
				typ, scope, err := st.in(ctx, a, tm)
				if err != nil {
					return err
				}
				t.AddName(args[1], typ, scope...)
				return nil
			}),
		a.editCommand("occurrence TOPIC VALUE --type TYPE", "Add an occurrence", 2, true, true,
			func(ctx context.Context, st *statement, args []string, tm *tmdm.TopicMap, t *tmdm.Topic) error {
				typ, scope, err := st.in(ctx, a, tm)
				if err != nil {
					return err
				}
				if typ == nil {
					return cli.UsageError(errors.New("an occurrence needs a --type"))
				}
				value, datatype, err := st.valued(args[1])
				if err != nil {
					return err
				}
				t.AddOccurrence(value, datatype, typ, scope...)
				return nil
			}),
		a.editCommand("type TOPIC TYPE", "Make a topic an instance of another", 2, false, false,
			func(ctx context.Context, _ *statement, args []string, tm *tmdm.TopicMap, t *tmdm.Topic) error {
				class, err := a.local().Named(ctx, tm, args[1])
				if err != nil {
					return err
				}
				t.AddType(class)
				return nil
			}),
		a.editCommand("identifier TOPIC IDENTIFIER", "Give a topic another subject identifier", 2, false, false,
			func(ctx context.Context, _ *statement, args []string, _ *tmdm.TopicMap, t *tmdm.Topic) error {
				l, err := tmdm.ParseLocator(args[1])
				if err != nil {
					return err
				}
				return t.AddSubjectIdentifier(l)
			}),
		a.associationCommand("Add an association",
			func(tm *tmdm.TopicMap, typ *tmdm.Topic, scope []*tmdm.Topic, roles [][2]*tmdm.Topic) error {
				assoc := tm.CreateAssociation(typ, scope...)
				for _, r := range roles {
					assoc.AddRole(r[0], r[1])
				}
				return nil
			}),
	)
	return cmd
}

func (a *app) remove() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "Remove a local statement, or all about a topic",
		Long: "Remove a local statement, or all about a topic. Those of other sources are theirs\nto change.\n\n" +
			aboutLocal,
		Args: cli.Args(cobra.NoArgs),
		RunE: oneOf("what to remove", "name, occurrence, association, type, identifier or topic"),
	}
	cmd.AddCommand(
		a.editCommand("name TOPIC VALUE", "Remove a name", 2, true, false,
			func(ctx context.Context, st *statement, args []string, tm *tmdm.TopicMap, t *tmdm.Topic) error {
				typ, scope, err := st.in(ctx, a, tm)
				if err != nil {
					return err
				}
				found := false
				for _, n := range slices.Clone(t.Names()) {
					if rejections.IsValue(n.Value(), args[1]) && (typ == nil || n.Type() == typ) && sameScope(n, scope) {
						n.Remove()
						found = true
					}
				}
				return mustBe(found, "name "+args[1], args[0])
			}),
		a.editCommand("occurrence TOPIC VALUE", "Remove an occurrence", 2, true, true,
			func(ctx context.Context, st *statement, args []string, tm *tmdm.TopicMap, t *tmdm.Topic) error {
				typ, scope, err := st.in(ctx, a, tm)
				if err != nil {
					return err
				}
				value, datatype, err := st.valued(args[1])
				if err != nil {
					return err
				}
				found := false
				for _, o := range slices.Clone(t.Occurrences()) {
					if (o.Value() == value || rejections.IsValue(o.Value(), args[1])) && o.Datatype() == datatype &&
						(typ == nil || o.Type() == typ) && sameScope(o, scope) {
						o.Remove()
						found = true
					}
				}
				return mustBe(found, "occurrence "+args[1], args[0])
			}),
		a.editCommand("type TOPIC TYPE", "Take a topic from its type", 2, false, false,
			func(ctx context.Context, _ *statement, args []string, tm *tmdm.TopicMap, t *tmdm.Topic) error {
				class, err := a.local().Named(ctx, tm, args[1])
				if err != nil {
					return err
				}
				was := slices.Contains(slices.Collect(t.Types()), class)
				t.RemoveType(class)
				return mustBe(was, "type "+args[1], args[0])
			}),
		a.editCommand("identifier TOPIC IDENTIFIER", "Take a subject identifier from a topic", 2, false, false,
			func(_ context.Context, _ *statement, args []string, _ *tmdm.TopicMap, t *tmdm.Topic) error {
				was, err := removeIdentifier(t, args[1])
				if err != nil {
					return err
				}
				return mustBe(was, "identifier "+args[1], args[0])
			}),
		a.associationCommand("Remove an association",
			func(tm *tmdm.TopicMap, typ *tmdm.Topic, scope []*tmdm.Topic, roles [][2]*tmdm.Topic) error {
				wanted := tm.CreateAssociation(typ, scope...)
				for _, r := range roles {
					wanted.AddRole(r[0], r[1])
				}
				found := false
				for _, r := range slices.Clone(roles[0][1].RolesPlayed()) {
					if other := r.Association(); other != wanted && tmdm.Equal(other, wanted) {
						other.Remove()
						found = true
						break
					}
				}
				wanted.Remove()
				return mustBe(found, "association", roles[0][1].SubjectIdentifiers()[0].String())
			}),
		&cobra.Command{
			Use:   "topic TOPIC",
			Short: "Remove all local statements about a topic",
			Args:  cli.Args(cobra.ExactArgs(1)),
			RunE: a.run(func(ctx context.Context, args []string) error {
				e, err := a.local().RemoveTopic(ctx, args[0])
				if err != nil {
					return err
				}
				return a.edited(e)
			}),
		},
	)
	return cmd
}

// removeIdentifier takes from a topic the identifier that somebody means by an IRI, and reports whether it was there.
func removeIdentifier(t *tmdm.Topic, given string) (was bool, err error) {
	meant, err := tmdm.Named(given)
	if err != nil {
		return false, err
	}
	if len(t.SubjectIdentifiers()) == 1 {
		return false, errors.New("it is the only one; remove the topic instead")
	}
	for _, l := range meant {
		if slices.Contains(t.SubjectIdentifiers(), l) {
			t.RemoveSubjectIdentifier(l)
			return true, nil
		}
	}
	return false, nil
}

// mustBe is the error that a statement to remove is not there.
func mustBe(found bool, what, topic string) error {
	if found {
		return nil
	}
	return fmt.Errorf("there is no such local statement about %s: %s (other sources change their own)", topic, what)
}

func sameScope(c tmdm.Scoped, scope []*tmdm.Topic) bool {
	themes := c.Scope().Themes()
	if len(themes) != len(scope) {
		return false
	}
	for _, t := range scope {
		if !slices.Contains(themes, t) {
			return false
		}
	}
	return true
}

// editCommand makes a command that changes what is said of one topic.
func (a *app) editCommand(use, short string, args int, typed, datatype bool,
	change func(context.Context, *statement, []string, *tmdm.TopicMap, *tmdm.Topic) error) *cobra.Command {
	var st statement
	cmd := &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + aboutLocal,
		Args: cli.Args(cobra.ExactArgs(args)),
		RunE: a.run(func(ctx context.Context, args []string) error {
			e, err := a.local().EditTopic(ctx, args[0], st.sp, func(tm *tmdm.TopicMap, t *tmdm.Topic) error {
				return change(ctx, &st, args, tm, t)
			})
			if err != nil {
				return err
			}
			return a.stated(a.Command, e)
		}),
	}
	if typed {
		st.flags(cmd, true, datatype)
	}
	prefixFlag(cmd, &st.sp)
	return cmd
}

// associationCommand makes a command about one association.
func (a *app) associationCommand(short string,
	change func(tm *tmdm.TopicMap, typ *tmdm.Topic, scope []*tmdm.Topic, roles [][2]*tmdm.Topic) error) *cobra.Command {
	var st statement
	cmd := &cobra.Command{
		Use: "association --type TYPE ROLE=PLAYER...", Short: short,
		Long: short +
			". Role types and players are subject identifiers; the last \"=\" that is\nfollowed by a scheme (\"http:\") " +
			"stands between them.\n\n" + aboutLocal,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.run(func(ctx context.Context, args []string) error {
			pairs, err := rolesOf(st.typ, args)
			if err != nil {
				return err
			}
			e, err := a.local().EditTopic(ctx, pairs[0][1], st.sp, func(tm *tmdm.TopicMap, _ *tmdm.Topic) error {
				typ, scope, err := st.in(ctx, a, tm)
				if err != nil {
					return err
				}
				roles := make([][2]*tmdm.Topic, len(pairs))
				for i, p := range pairs {
					for k := range p {
						if roles[i][k], err = a.local().Named(ctx, tm, p[k]); err != nil {
							return err
						}
					}
				}
				return change(tm, typ, scope, roles)
			})
			if err != nil {
				return err
			}
			return a.stated(a.Command, e)
		}),
	}
	st.flags(cmd, true, false)
	prefixFlag(cmd, &st.sp)
	return cmd
}

// rolesOf returns the roles of an association of a type, as arguments give them.
func rolesOf(typ string, args []string) ([][2]string, error) {
	if typ == "" {
		return nil, cli.UsageError(errors.New("an association needs a --type"))
	}
	roles := make([][2]string, len(args))
	for i, arg := range args {
		role, player, ok := splitRole(arg)
		if !ok {
			return nil, cli.UsageError(fmt.Errorf("%q is not ROLE=PLAYER, two subject identifiers", arg))
		}
		roles[i] = [2]string{role, player}
	}
	return roles, nil
}

// splitRole splits ROLE=PLAYER. IRIs may have "=" in them, so the place is one
// that is followed by the beginning of an absolute IRI.
func splitRole(arg string) (role, player string, ok bool) {
	for i := len(arg) - 1; i > 0; i-- {
		if arg[i] != '=' {
			continue
		}
		if scheme, rest, found := strings.Cut(arg[i+1:], ":"); found && rest != "" && isScheme(scheme) {
			return arg[:i], arg[i+1:], true
		}
	}
	return "", "", false
}

// isScheme reports whether s can be the scheme of an IRI (RFC 3986 §3.1, Scheme).
func isScheme(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return false
		}
	}
	return s != ""
}
