package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const aboutLocal = `Local statements are a source of their own, beside the subscriptions: what servers
publish never touches them, and they change nothing that others say. Topics are
given by a subject identifier.`

func (a *app) edit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit",
		Short: "Change local statements: import a file, add, remove; reject those of others",
		Long: "Change local statements.\n\n" + aboutLocal + `

What others say and you do not want to see, you can reject: see "edit reject --help".`,
		Args: cli.Args(cobra.NoArgs), RunE: oneOf("what to do", "import, add, remove, reject, unreject or rejections"),
	}
	cmd.AddCommand(a.importLocal(), a.add(), a.remove(), a.reject(), a.unreject(), a.rejections())
	return cmd
}

// oneOf makes the body of a command that only has subcommands.
func oneOf(what, names string) func(*cobra.Command, []string) error {
	return func(*cobra.Command, []string) error { return cli.UsageError(fmt.Errorf("say %s: %s", what, names)) }
}

func (a *app) importLocal() *cobra.Command {
	var sp string
	var all bool
	var limit losses.Limit
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make local statements of a file",
		Long: `Make local statements of a file (XTM or RDF; "-" is standard input, in XTM; gzip is unpacked).
Each topic that it describes, with a name, an occurrence or a type, is replaced by
what it says; other local statements stay. With --all they go, unless these are more
than half of 20 topics or more: then --max-delete must say so.

` + aboutLocal + cli.Exits(cli.HeldBack, cli.BrokenInput),
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: a.run(func(ctx context.Context, args []string) error {
			var tolerated xtm.Tally
			e, err := a.local().Import(ctx, sp, all, limit, func(base tmdm.Locator) (*tmdm.TopicMap, error) {
				d, err := formats.Source{
					Path: a.Request.Path(args[0]), Stdin: a.Request.Stdin, Base: base, Root: a.Request.Dir,
					Lenient: a.ReadsLeniently(), Formats: a.Formats(), ForXTM: true,
				}.Read(ctx)
				if err != nil {
					return nil, err
				}
				tolerated = d.Tolerated
				return d.Map, nil
			})
			if loses, ok := errors.AsType[*losses.TooManyError](err); ok {
				err = fmt.Errorf("%w. To import it all the same, add --max-delete %s\n  %s", err, losses.Allowing(&loses.Measure),
					strings.Join(loses.Lines(), "\n  "))
				return &cli.ExitError{Code: cli.HeldBack, Err: err}
			}
			if err != nil {
				return err
			}
			if !a.Quiet {
				formats.WriteWarnings(a.Command.ErrOrStderr(), &tolerated)
			}
			return a.edited(e, nil)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "let the file take the place of all local statements")
	cmd.Flags().TextVar(&limit, "max-delete", losses.Limit{},
		"with --all, lose at most this number of topics: `N`, N% or all (default: half, and any number of fewer than 20)")
	prefixFlag(cmd, &sp)
	return cmd
}

func prefixFlag(cmd *cobra.Command, sp *string) {
	cmd.Flags().StringVar(sp, "sp", "",
		"source locator `prefix` of the local statements, set with the first of them (default: one is made up)")
}

// local are the local statements of the open store.
func (a *app) local() local.Statements {
	return local.Statements{Store: a.DB, Author: cli.LocalAuthor()}
}

// stated prints the result of adding or removing one statement, whose kind is the name of the command, or returns err.
func (a *app) stated(e *local.Edit, err error) error {
	if _, refused := errors.AsType[*xtm.EncodeError](err); refused { // an invalid command line
		return cli.UsageError(err)
	}
	if err != nil || e.Added+e.Updated+e.Deleted == 0 {
		return a.edited(e, err)
	}
	done := map[string]string{"add": "added", "remove": "removed"}[a.Command.Parent().Name()]
	return a.Tell(e, "local: 1 %s %s", a.Command.Name(), done)
}

// edited prints the result of a change of many topics, or returns err.
func (a *app) edited(e *local.Edit, err error) error {
	if err != nil {
		return err
	}
	if e.Added+e.Updated+e.Deleted == 0 {
		return a.Tell(e, "local: nothing changed")
	}
	return a.Tell(e, "local: topics added %d, updated %d, deleted %d", e.Added, e.Updated, e.Deleted)
}
