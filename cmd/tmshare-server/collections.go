package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/collections"
)

func collectionsCommand(a *extension.App) *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "collections",
		Short: "List, show, change, rename, move or delete the collections of a running server",
		Long:  `Without a further word it lists the collections.`,
		Args:  cli.Args(cobra.NoArgs),
	}
	cmd.AddCommand(listCollections(), showCollection(a), setCollection(a), renameCollection(), moveCollection(),
		forgetCollection(), deleteCollection(), snapshotCommand(), gcCommand())
	return r.command(cmd, func(ctx context.Context, _ []string) error { return r.list(ctx) })
}

func listCollections() *cobra.Command {
	var r remote
	cmd := &cobra.Command{Use: "list", Short: "List the collections", Args: cli.Args(cobra.NoArgs)}
	return r.command(cmd, func(ctx context.Context, _ []string) error { return r.list(ctx) })
}

func (r *remote) list(ctx context.Context) error {
	all, err := r.server.Collections(ctx)
	if err != nil {
		return err
	}
	if r.json {
		return r.print(all, "")
	}
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tLAST CHANGE\tTITLE\tSUMMARY")
	for i := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", all[i].Name, all[i].Updated, oneLine(all[i].Title), oneLine(all[i].Summary))
		for _, former := range all[i].Former {
			fmt.Fprintf(w, "%s\t\t\tmoved to %s\n", former, all[i].Name)
		}
	}
	return w.Flush()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func showCollection(a *extension.App) *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the settings of a collection, and its ETag",
		Long: `Show the settings of the collection NAME, and the ETag that it has now, for
--if-match.`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	return r.command(cmd, func(ctx context.Context, args []string) error {
		// The ETag first: should the collection change in between, a later --if-match refuses this ETag.
		tag, err := r.server.ETag(ctx, args[0])
		if err != nil {
			return err
		}
		s, err := r.server.Settings(ctx, args[0])
		if err != nil {
			return err
		}
		return r.printSettings(a, args[0], tag, s)
	})
}

func (r *remote) printSettings(a *extension.App, name, etag string, s server.CollectionSettings) error {
	if r.json {
		return r.print(named(s, name, etag), "")
	}
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, cmp.Or(oneLine(value), "-")) }
	row("collection", name)
	if etag != "" {
		row("etag", etag)
	}
	row("sp", s.Text("sp"))
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, x := range settingFlags(fl, a) {
		f, text := fl.Lookup(x.Flag()), s.Text(x.Name)
		if f.Value.Type() == "bool" {
			text = cmp.Or(text, f.DefValue)
		} else if text == f.DefValue { // the choice is left to the server
			text = ""
		}
		row(f.Name, text)
	}
	if s["derivedFrom"] != nil {
		row("derived-from", strings.Join(listIn(s["derivedFrom"]), ", "))
	}
	var filter server.CollectionSettings
	if _ = json.Unmarshal(s["filter"], &filter); len(filter) > 0 { // there is none
		for _, list := range []string{"types", "within", "associationTypes", "scope", "languages"} {
			row((&store.Setting{Name: list}).Flag(), strings.Join(listIn(filter[list]), ", "))
		}
	}
	return w.Flush()
}

// listIn returns the list in a JSON value, if it is one.
func listIn(b json.RawMessage) (list []string) {
	_ = json.Unmarshal(b, &list)
	return list
}

// named adds the name of a collection, and its ETag if that is known, to its settings.
func named(s server.CollectionSettings, name, etag string) server.CollectionSettings {
	s["collection"], _ = json.Marshal(name) // as that of text never fails
	if etag != "" {
		s["etag"], _ = json.Marshal(etag)
	}
	return s
}

func setCollection(a *extension.App) *cobra.Command {
	var r remote
	var ifMatch string
	cmd := &cobra.Command{
		Use:   "set NAME [flags]",
		Short: "Change settings of a collection",
		Long: `Change settings of the collection NAME. What is not given stays as it is; an empty
text, 0 and 0s leave the choice to the server. A changed --document-size holds
from the next archive document on.

--record-formats says in which formats the records of topics are offered to those
who harvest them: xtm1, xtm2.1, or with "" both. All records are published again
then, as whoever has them must learn of it, and subscribers to the fragments
fetch them again.

--rdf offers what is published from then on in RDF, too. It is on for collections whose
first version was RDF; --rdf=false ends it.`,
		Example: `  tmshare-server collections set egov --title "Municipal services" --keep-for 2160h`,
		Args:    cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	fl := cmd.Flags()
	all := settingFlags(fl, a)
	ifMatchFlag(cmd, &ifMatch)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		change := admin.Change{}
		for _, x := range all {
			if f := fl.Lookup(x.Flag()); f.Changed {
				change[x.Name] = settingOf(f)
			}
		}
		if path, ok := change["sign"].(string); ok && path != "" {
			absolute, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			change["sign"] = absolute
		}
		if len(change) == 0 {
			return cli.UsageError(errors.New("give at least one setting\nTry \"tmshare-server collections set --help\""))
		}
		if _, err := r.server.Settings(ctx, args[0]); err != nil { // because Put would create a collection
			return err
		}
		s, _, err := r.server.Put(ctx, args[0], change, ifMatch)
		if err != nil {
			return err
		}
		return r.printSettings(a, args[0], "", s)
	})
}

// settingFlags adds a flag for each setting that can be changed, in the order in which "show" has them, and returns the
// settings.
func settingFlags(fl *pflag.FlagSet, a *extension.App) []store.Setting {
	all := append(collections.Core(), extension.Settings(a.Extensions)...)
	for _, x := range all {
		switch value := x.In(&store.Collection{}).(type) {
		case *string:
			fl.String(x.Flag(), *value, x.Usage)
		case *int:
			fl.Int(x.Flag(), *value, x.Usage)
		case *uint64:
			fl.Uint64(x.Flag(), *value, x.Usage)
		case *bool:
			fl.Bool(x.Flag(), *value, x.Usage)
		case **bool:
			fl.Bool(x.Flag(), false, x.Usage)
		case *store.Period:
			fl.Duration(x.Flag(), time.Duration(*value), x.Usage)
		default: // a list
			fl.StringSlice(x.Flag(), nil, x.Usage)
		}
		if x.OneOf != nil {
			cli.OneOf(fl, x.Flag(), x.OneOf...)
		}
	}
	return all
}

// settingOf returns the value of a flag as JSON has it: durations as text.
func settingOf(f *pflag.Flag) any {
	text := f.Value.String()
	switch f.Value.Type() {
	case "string", "duration":
		return text
	case "stringSlice":
		return f.Value.(pflag.SliceValue).GetSlice()
	}
	return json.RawMessage(text)
}

func renameCollection() *cobra.Command {
	var r remote
	var ifMatch string
	cmd := &cobra.Command{
		Use:   "rename OLD NEW",
		Short: "Give a collection another name",
		Long: `Give the collection OLD the name NEW. Its prefix, its history and the identifiers of
topics and entries stay. All addresses below its own lead to the new ones (308), so
followers of its fragments go on. "collections forget OLD" ends that. Records of Atom-PMH
and resources of ResourceSync are called by their addresses: these are other ones.

Collections that are derived from it are so by the new name. A file that --watch follows
goes on under it; give serve --map NEW=FILE at its next start. A replica cannot be
renamed, since it has the name of its subscription.`,
		Example: `  tmshare-server collections rename egov services`,
		Args:    cli.Args(cli.NotEmpty(cobra.ExactArgs(2))),
	}
	ifMatchFlag(cmd, &ifMatch)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		renamed, err := r.server.Rename(ctx, args[0], args[1], ifMatch)
		if err != nil {
			return err
		}
		return r.print(renamed, fmt.Sprintf("%s: renamed to %s; the old address leads there until "+
			"\"tmshare-server collections forget %[1]s\"", args[0], renamed.Collection))
	})
}

func forgetCollection() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "forget NAME",
		Short: "Free the name of a collection that was renamed or deleted",
		Long: `Free NAME, which a collection had until it was renamed or deleted. Nothing is at its address any
more (404), and another collection may have the name.`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	return r.command(cmd, func(ctx context.Context, args []string) error {
		forgotten, err := r.server.Forget(ctx, args[0])
		if err != nil {
			return err
		}
		return r.print(forgotten, args[0]+": forgotten; nothing is at its address any more")
	})
}

func deleteCollection() *cobra.Command {
	var r remote
	var yes bool
	var write admin.Write
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a collection and its history",
		Long: `Delete the collection NAME and its history. It asks on a terminal; elsewhere it
needs --yes. Requests for it are answered with the time and the reason then (410), until a
collection of the name is made anew.`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().StringVar(&write.Message, "message", "", "`text` that says why, for those who still ask for it")
	ifMatchFlag(cmd, &write.IfMatch)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		if !yes {
			ok, err := confirm(fmt.Sprintf("Delete the collection %s at %s and its history?", args[0], r.address))
			if err != nil {
				return err
			}
			if !ok {
				return errors.New("not deleted")
			}
		}
		p, err := r.server.Delete(ctx, args[0], write)
		if err != nil {
			return err
		}
		r.warn(args[0], p)
		return r.print(p, fmt.Sprintf("%s: deleted, with %d topics", p.Collection, p.Deleted))
	})
}

func snapshotCommand() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "snapshot NAME",
		Short: "Have a running server take a snapshot now",
		Long: `Have a running server take a snapshot of the collection NAME now, and print its
address. If nothing has changed since the newest snapshot, it is that one.`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	return r.command(cmd, func(ctx context.Context, args []string) error {
		snap, taken, err := r.server.TakeSnapshot(ctx, args[0])
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s: %d topics, as of %s", snap.Snapshot, snap.Topics, snap.Updated)
		if !taken {
			text += " (nothing has changed since)"
		}
		return r.print(snap, text)
	})
}

func gcCommand() *cobra.Command {
	var r remote
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "gc [NAME]...",
		Short: "Have a running server give up the history that need not be kept",
		Long: `Have a running server give up now the history of the collections NAME, or of all,
that its settings (--keep-entries, --keep-for) need not keep. It does so every
hour by itself. Only whole archive documents are given up, and nothing later than
the newest snapshot. --dry-run counts what would go.`,
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "give up nothing; print how much would go")
	return r.command(cmd, func(ctx context.Context, names []string) error {
		if len(names) == 0 {
			all, err := r.server.Collections(ctx)
			if err != nil {
				return err
			}
			for i := range all {
				names = append(names, all[i].Name)
			}
		}
		for _, name := range names {
			p, err := r.server.Prune(ctx, name, dryRun)
			if err != nil {
				return err
			}
			text := fmt.Sprintf("%s: %d entries given up", p.Collection, p.Entries)
			if dryRun {
				text = fmt.Sprintf("%s: dry run, nothing is given up. Would be: %d entries", p.Collection, p.Entries)
			}
			if err := r.print(p, text); err != nil {
				return err
			}
		}
		return nil
	})
}
