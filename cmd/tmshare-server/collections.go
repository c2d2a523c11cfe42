package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server"
)

func collectionsCommand() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "collections",
		Short: "List, show, change or delete the collections of a running server",
		Long:  `Without a further word it lists the collections.`,
		Args:  cli.Args(cobra.NoArgs),
	}
	cmd.AddCommand(listCollections(), showCollection(), setCollection(), deleteCollection())
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
	}
	return w.Flush()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// shown is what "collections show" prints as JSON.
type shown struct {
	Collection string `json:"collection"`
	ETag       string `json:"etag,omitempty"`
	*server.CollectionSettings
}

func showCollection() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the settings of a collection, and its ETag",
		Long: `Show the settings of the collection NAME, and the ETag that it has now, for
--if-match.`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	return r.command(cmd, func(ctx context.Context, args []string) error {
		// The ETag first: should the collection change in between, it is the one
		// that a later --if-match refuses.
		tag, err := r.server.ETag(ctx, args[0])
		if err != nil {
			return err
		}
		s, err := r.server.Settings(ctx, args[0])
		if err != nil {
			return err
		}
		return r.printSettings(shown{args[0], tag, s})
	})
}

func (r *remote) printSettings(s shown) error {
	if r.json {
		return r.print(s, "")
	}
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, cmp.Or(oneLine(value), "-")) }
	row("collection", s.Collection)
	if s.ETag != "" {
		row("etag", s.ETag)
	}
	b, err := json.Marshal(s.CollectionSettings)
	if err != nil {
		return err
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return err
	}
	row("sp", settingText(values["sp"]))
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	fl.SortFlags = false
	settingFlags(fl)
	fl.VisitAll(func(f *pflag.Flag) {
		text := settingText(values[camelCase(f.Name)])
		if f.Value.Type() == "bool" {
			text = cmp.Or(text, f.DefValue)
		} else if text == f.DefValue { // the choice is left to the server
			text = ""
		}
		row(f.Name, text)
	})
	if s.DerivedFrom != nil && len(*s.DerivedFrom) > 0 {
		row("derived-from", strings.Join(*s.DerivedFrom, ", "))
	}
	if f := s.Filter; !f.Empty() {
		row("types", list(f.Types))
		row("association-types", list(f.AssociationTypes))
		row("scope", list(f.Scope))
	}
	return w.Flush()
}

func list(refs []fragment.Ref) string {
	var all []string
	for _, ref := range refs {
		all = append(all, string(ref))
	}
	return strings.Join(all, ", ")
}

// settingText returns a setting, as JSON has it, as text.
func settingText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		names := make([]string, len(v))
		for i := range v {
			names[i] = fmt.Sprint(v[i])
		}
		return strings.Join(names, ",")
	}
	return fmt.Sprint(value)
}

func setCollection() *cobra.Command {
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
	settingFlags(fl)
	settings := map[string]bool{}
	fl.VisitAll(func(f *pflag.Flag) { settings[f.Name] = true })
	ifMatchFlag(cmd, &ifMatch)
	return r.command(cmd, func(ctx context.Context, args []string) error {
		change := admin.Change{}
		fl.Visit(func(f *pflag.Flag) {
			if settings[f.Name] {
				change[camelCase(f.Name)] = settingOf(f)
			}
		})
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
		if _, err := r.server.Settings(ctx, args[0]); err != nil { // Put would create a collection
			return err
		}
		s, _, err := r.server.Put(ctx, args[0], change, ifMatch)
		if err != nil {
			return err
		}
		return r.printSettings(shown{args[0], "", s})
	})
}

// settingFlags adds a flag for each setting that can be changed, in the order in which "show" has them.
func settingFlags(fl *pflag.FlagSet) {
	fl.String("title", "", "`title`")
	fl.String("summary", "", "`text` that describes the collection")
	fl.Int("document-size", 0, "`number` of entries in an archive document")
	fl.Bool("omit-instances", false, "leave the instances out of the fragments of classes")
	fl.StringSlice("record-formats", nil, "`formats` in which records are offered")
	cli.OneOf(fl, "record-formats", formats.Stored().Names()...)
	fl.Bool("rdf", false, "offer fragments, snapshots and topics in RDF, too")
	fl.Int("snapshot-every", 0, "take a new snapshot after this `number` of changes")
	fl.Duration("snapshot-after", 0, "take a new snapshot when a change has waited for it for this `time`")
	fl.Int("snapshots-kept", 0, "keep this `number` of snapshots")
	fl.Uint64("keep-entries", 0, "give up changes before the last `number`")
	fl.Duration("keep-for", 0, "give up changes older than this `time`")
	fl.Bool("resource-sync", true, "offer the collection by ResourceSync")
	fl.StringSlice("mirrors", nil, "`URLs` under which others serve the collection, the preferred first")
	fl.String("via", "", "`URL` of the collection that this one republishes")
	fl.Int("changes-per-list", 0, "close a change list of ResourceSync after this `number` of changes")
	fl.Duration("change-list-after", 0, "close a change list of ResourceSync when its first change is this `time` old")
	fl.String("sign", "", "sign checkpoints of the log with this `key file`, a path on the server's machine (see \"key\")")
}

// camelCase returns the name in JSON of a setting: that of its flag, with
// capitals instead of hyphens.
func camelCase(flag string) string {
	words := strings.Split(flag, "-")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
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

func deleteCollection() *cobra.Command {
	var r remote
	var yes bool
	var ifMatch string
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a collection and its history",
		Long: `Delete the collection NAME and its history. It asks on a terminal; elsewhere it
needs --yes.`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	ifMatchFlag(cmd, &ifMatch)
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
		p, err := r.server.Delete(ctx, args[0], ifMatch)
		if err != nil {
			return err
		}
		return r.print(p, fmt.Sprintf("%s: deleted, with %d topics", p.Collection, p.Deleted))
	})
}
