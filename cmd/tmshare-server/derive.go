package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/ext/derive"
	"github.com/tmshare/tmshare/internal/store"
)

const aboutDerive = `Publish what collections and subscriptions of a running server say together, as the
collection NAME. It has feeds and snapshots as all collections have. A change of
an input is published within a second or two: the topics that it changes, and
no others. What the owner of the node rejects is not in it.
It is filled in the background at first, which takes a while for large maps. It is served
when it is whole: "collections" shows how many topics it has by now.

With --type it has the instances of these types and of their subtypes, with their
associations. Of other topics it has what these refer to: the identifiers and the names
in the unconstrained scope. With --association-type it has no associations of other
types. With --scope it has no statements whose scope is other themes only. --language is
--scope with the topics of languages. With --scoped-names it has no names in
the unconstrained scope either. With --within it has, of SKOS, these concepts with all that is
narrower, and the concepts of these schemes. All four name topics by subject identifiers,
which are those of the merged topics: any of them will do.

Run it again with other filters to change them: what passes is published, and what does not
any more is deleted. Without filters they stay; --unfiltered ends them.

It cannot be written. An input must not be derived itself: derive from what that is
derived from. With --expand, a subscription whose source is derived stands for that: what
the server does not have yet is subscribed to. This takes the data folder of the server.

When an input is removed, what was derived stays, and nothing more is derived: "collections"
says so. Run the command again to take in another source that has the name, or without the
name to go on without it.

"collections delete" removes it; the inputs stay.`

func deriveCommand() *cobra.Command {
	var r remote
	var from []string
	var title, data string
	var expand bool
	var unfiltered bool
	cmd := &cobra.Command{
		Use:   "derive NAME --from A,B,...",
		Short: "Publish what several sources say together as a collection of its own",
		Long:  aboutDerive,
		Example: `  tmshare-server derive all --from egov,libraries
  tmshare-server derive cities --from egov,libraries --type http://psi.example.org/city
  tmshare-server derive dogs --from pets --within http://example.org/pets/dog
  tmshare-server derive all --from egov,neighbours --expand --data /var/lib/tmshare`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	cmd.Flags().StringSliceVar(&from, "from", nil, "`names` of collections and subscriptions of the server")
	filterOf := derive.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&unfiltered, "unfiltered", false, "end all filters")
	cmd.Flags().StringVar(&title, "title", "", "title of the collection")
	cmd.Flags().BoolVar(&expand, "expand", false, "derive from what derived sources are derived from, and follow that")
	cmd.Flags().StringVar(&data, "data", cli.StateDir("server"), "data `folder` of the server, for --expand")
	return r.command(cmd, func(ctx context.Context, args []string) error {
		for i := range from {
			from[i] = strings.TrimSpace(from[i])
		}
		isNone := func(name string) bool { return name == "" || strings.Contains(name, "/") }
		if len(from) == 0 || slices.ContainsFunc(from, isNone) {
			return cli.UsageError(fmt.Errorf("--from %s: give names of collections or subscriptions, with commas between them",
				strings.Join(from, ",")))
		}
		if cmd.Flags().Changed("data") && !expand {
			return cli.UsageError(
				errors.New("--data is for --expand: without it, the running server derives in its own data folder; " +
					"leave --data out"))
		}
		if once := slices.Compact(slices.Sorted(slices.Values(from))); len(once) < len(from) {
			return cli.UsageError(fmt.Errorf("--from %s names an input twice: name each once", strings.Join(from, ",")))
		}
		filter, err := filterOf()
		if err != nil {
			return err
		}
		if expand {
			if from, err = clientcmd.Expand(ctx, cmd.Root().Name(), data, from); err != nil {
				return err
			}
		}
		change := admin.Change{"derivedFrom": from}
		if filter != nil && unfiltered {
			return cli.UsageError(errors.New("--unfiltered ends all filters: leave the others out"))
		}
		if unfiltered {
			filter = &store.Filter{}
		}
		if filter != nil {
			change["filter"] = filter
		}
		if title != "" {
			change["title"] = title
		}
		s, _, err := r.server.Put(ctx, args[0], change, "")
		if err != nil {
			return err
		}
		for _, warning := range listIn(s["warnings"]) {
			fmt.Fprintln(os.Stderr, "warning: "+warning)
		}
		return r.print(named(s, args[0], ""), fmt.Sprintf("%s: derived from %s", args[0], strings.Join(from, ", ")))
	})
}
