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

// statement holds the arguments of add and remove.
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
	cli.CommandLineOnly(cmd.Flags()) // statements are no settings
}

// in returns the topics of a map for type and scope.
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
		a.editCommand("name TOPIC VALUE", "Add a name", true, false, func(_ context.Context, e *editing) error {
			e.topic.AddName(e.given, e.typ, e.scope...)
			return nil
		}),
		a.editCommand("occurrence TOPIC VALUE --type TYPE", "Add an occurrence", true, true,
			func(_ context.Context, e *editing) error {
				if e.typ == nil {
					return cli.UsageError(errors.New("an occurrence needs a --type"))
				}
				e.topic.AddOccurrence(e.value, e.datatype, e.typ, e.scope...)
				return nil
			}),
		a.editCommand("type TOPIC TYPE", "Make a topic an instance of another", false, false,
			func(ctx context.Context, e *editing) error {
				class, err := a.local().Named(ctx, e.TopicMap, e.given)
				if err == nil {
					e.topic.AddType(class)
				}
				return err
			}),
		a.editCommand("identifier TOPIC IDENTIFIER", "Give a topic another subject identifier", false, false,
			func(_ context.Context, e *editing) error {
				l, err := tmdm.ParseLocator(e.given)
				if err != nil {
					return err
				}
				return e.topic.AddSubjectIdentifier(l)
			}),
		a.associationCommand("Add an association", func(*tmdm.Association, *tmdm.Topic) error { return nil }),
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
		a.editCommand("name TOPIC VALUE", "Remove a name", true, false, func(_ context.Context, e *editing) error {
			found := false
			for _, n := range slices.Clone(e.topic.Names()) {
				if e.means(n.Value()) && (e.typ == nil || n.Type() == e.typ) && sameScope(n, e.scope) {
					n.Remove()
					found = true
				}
			}
			return mustBe(found, "name "+e.given, e.subject)
		}),
		a.editCommand("occurrence TOPIC VALUE", "Remove an occurrence", true, true,
			func(_ context.Context, e *editing) error {
				found := false
				for _, o := range slices.Clone(e.topic.Occurrences()) {
					if (o.Value() == e.value || e.means(o.Value())) && o.Datatype() == e.datatype &&
						(e.typ == nil || o.Type() == e.typ) && sameScope(o, e.scope) {
						o.Remove()
						found = true
					}
				}
				return mustBe(found, "occurrence "+e.given, e.subject)
			}),
		a.editCommand("type TOPIC TYPE", "Take a topic from its type", false, false,
			func(ctx context.Context, e *editing) error {
				class, err := a.local().Named(ctx, e.TopicMap, e.given)
				if err != nil {
					return err
				}
				was := slices.Contains(slices.Collect(e.topic.Types()), class)
				e.topic.RemoveType(class)
				return mustBe(was, "type "+e.given, e.subject)
			}),
		a.editCommand("identifier TOPIC IDENTIFIER", "Take a subject identifier from a topic", false, false,
			func(_ context.Context, e *editing) error {
				was, err := removeIdentifier(e.topic, e.given)
				if err != nil {
					return err
				}
				return mustBe(was, "identifier "+e.given, e.subject)
			}),
		a.associationCommand("Remove an association", func(wanted *tmdm.Association, player *tmdm.Topic) error {
			found := false
			for _, r := range slices.Clone(player.RolesPlayed()) {
				if other := r.Association(); other != wanted && tmdm.Equal(other, wanted) {
					other.Remove()
					found = true
					break
				}
			}
			wanted.Remove()
			return mustBe(found, "association", player.SubjectIdentifiers()[0].String())
		}),
		&cobra.Command{
			Use:   "topic TOPIC",
			Short: "Remove all local statements about a topic",
			Args:  cli.Args(cobra.ExactArgs(1)),
			RunE: a.run(func(ctx context.Context, args []string) error {
				return a.edited(a.local().RemoveTopic(ctx, args[0]))
			}),
		},
	)
	return cmd
}

// removeIdentifier removes the identifier meant by an IRI from a topic, and reports whether it was there.
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

// editing is the change of one topic by a command.
type editing struct {
	*tmdm.TopicMap
	topic           *tmdm.Topic
	subject, given  string      // the arguments: an identifier of the topic, and the rest
	typ             *tmdm.Topic // nil: not given
	scope           []*tmdm.Topic
	value, datatype string // given for a value with a datatype
}

// means reports whether a value is the one that is given.
func (e *editing) means(value string) bool { return rejections.IsValue(value, e.given) }

// editCommand makes a command that changes the statements about one topic.
func (a *app) editCommand(use, short string, typed, datatype bool,
	change func(context.Context, *editing) error) *cobra.Command {
	var st statement
	cmd := &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + aboutLocal,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.stated(a.local().EditTopic(ctx, args[0], st.sp, func(tm *tmdm.TopicMap, t *tmdm.Topic) (err error) {
				e := editing{TopicMap: tm, topic: t, subject: args[0], given: args[1]}
				if e.typ, e.scope, err = st.in(ctx, a, tm); err == nil && datatype {
					e.value, e.datatype, err = st.valued(e.given)
				}
				if err != nil {
					return err
				}
				return change(ctx, &e)
			}))
		}),
	}
	if typed {
		st.flags(cmd, true, datatype)
	}
	prefixFlag(cmd, &st.sp)
	return cmd
}

// associationCommand makes a command about one association. change gets one in the map that is as it is named, and its
// first player.
func (a *app) associationCommand(short string,
	change func(named *tmdm.Association, player *tmdm.Topic) error) *cobra.Command {
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
			return a.stated(a.local().EditTopic(ctx, pairs[0][1], st.sp, func(tm *tmdm.TopicMap, _ *tmdm.Topic) error {
				typ, scope, err := st.in(ctx, a, tm)
				if err != nil {
					return err
				}
				named, players := tm.CreateAssociation(typ, scope...), []*tmdm.Topic{}
				for _, p := range pairs {
					role, err := a.local().AllNamed(ctx, tm, p[:])
					if err != nil {
						return err
					}
					named.AddRole(role[0], role[1])
					players = append(players, role[1])
				}
				return change(named, players[0])
			}))
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
