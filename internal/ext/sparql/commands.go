package sparql

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns it, with the command "target" of both programs.
func Extension() extension.Extension {
	var held *extension.Holding
	return extension.Extension{
		Name:     "sparql",
		Commands: func(a *extension.App) []*cobra.Command { return cli.In(cli.Everyday, command(a)) },
		Followed: followed, Dependents: dependents,
		Hold: func(h *extension.Holding) *watch.Part {
			held = h
			run := func(ctx context.Context, log *slog.Logger) {
				h.DB.Lease(ctx, "targets", newRunner(h, log).Run)
			}
			return &watch.Part{Metrics: []prometheus.Collector{collector{h.DB}}, Run: run}
		},
		Serve: func(s *server.Server) (*server.Part, error) {
			if held == nil {
				return &server.Part{}, nil
			}
			return &server.Part{Metrics: []prometheus.Collector{collector{held.DB}},
				Jobs: []server.Job{{Name: "targets", Run: newRunner(held, s.Logger).Run}}}, nil
		},
	}
}

func command(a *extension.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "target", Short: "Keep graphs in SPARQL stores in step",
		Long: `A target is a graph in a triple store (SPARQL 1.1) that is kept equal to what a
subscription or a collection has. Each round of "sync" and "watch", and "serve", send
what has changed: the statements that are gone, and those that are new. A mark in the
store goes with them, in the same request. So a crash of either side loses nothing.`,
		Example: `  tmshare-client target add skos --of egov --sparql-update http://127.0.0.1:3030/skos/update \
      --graph http://example.org/graph/egov
  tmshare-client target status
  tmshare-client target verify skos`,
	}
	cmd.AddCommand(a.OnFolder(add(a)), a.OnFolder(status(a)), a.OnFolder(syncCommand(a)), a.OnFolder(verify(a)),
		a.OnFolder(rebuild(a)), a.OnFolder(remove(a)))
	return cmd
}

func add(a *extension.App) *cobra.Command {
	var t Target
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Keep a graph in step with a subscription or a collection",
		Long: `Have a graph in a store kept in step with a subscription or a collection. The graph is
loaded now, and belongs to the target from then on: what is not of the source goes. A
graph that is not empty is refused, with what is in it, unless --adopt is given.

Without --sparql-query, queries go to the address of updates, with "query" in place of
an "update" at its end, or without a "/statements". The store may ask for a user by
HTTP Basic or Digest.` + cli.Exits(cli.HeldBack, cli.Unreachable, cli.Conflict),
		Example: `  tmshare-client target add skos --of egov --sparql-update http://127.0.0.1:3030/skos/update \
      --graph http://example.org/egov
  tmshare-server target add virtuoso --of egov --sparql-update http://127.0.0.1:8890/sparql-auth \
      --password-file dba.txt --graph http://example.org/egov`,
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	cmd.RunE = a.Run(store.Write, func(ctx context.Context, args []string) error {
		t.Name = args[0]
		t.Query = cmp.Or(t.Query, queryAddress(t.Update))
		for _, file := range []*string{&t.PasswordFile, &t.TokenFile} {
			if *file != "" && !filepath.IsAbs(*file) { // it is read again from anywhere
				*file = filepath.Join(a.Request.Dir, *file)
			}
		}
		if err := t.validate(); err != nil {
			return cli.UsageError(err)
		}
		return begin(ctx, a, &t)
	})
	fl := cmd.Flags()
	fl.StringVar(&t.Source, "of", "", "`name` of the subscription or collection")
	fl.StringVar(&t.Update, "sparql-update", "", "`URL` that takes updates (SPARQL 1.1 Protocol)")
	fl.StringVar(&t.Query, "sparql-query", "", "`URL` that takes queries (default: made of that for updates)")
	fl.StringVar(&t.Graph, "graph", "", "`IRI` of the graph")
	fl.StringVar(&t.PasswordFile, "password-file", "", "`file` with \"user: password\" for the store")
	fl.StringVar(&t.TokenFile, "token-file", "", "`file` with a bearer token for the store")
	fl.BoolVar(&t.Taken, "adopt", false, "take over a graph that is not empty: what is not of the source is deleted")
	return cmd
}

// begin adds a target and loads it. If the load fails before it starts, it adds none.
func begin(ctx context.Context, a *extension.App, t *Target) error {
	all, err := targets(ctx, a.DB)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.Name == t.Name || other.Update == t.Update && other.Graph == t.Graph {
			return &cli.ExitError{Code: cli.Conflict, Err: fmt.Errorf("target %s is there already, of %s, in <%s> at %s: "+
				"\"target remove %[1]s\" ends it", other.Name, other.Source, other.Graph, other.Update)}
		}
	}
	adopts := t.Taken
	kept, err := json.Marshal(t)
	if err == nil {
		err = a.DB.AddConsumer(ctx, store.Consumer{Name: prefix + t.Name, Source: t.Source, Kept: kept})
	}
	if err != nil {
		return err
	}
	a.Became = "the target is there, and the next round goes on with loading it"
	k, err := commandRunner(a).keeper(t, aside(a, t))
	if err == nil {
		if adopts {
			k.maxDelete = -1
		}
		_, err = k.step(ctx)
	}
	switch {
	case errors.Is(err, store.ErrNotLoaded):
		aside(a, t)(err.Error())
		return nil
	case err == nil:
		a.Printf("target %s: in step with %s\n", t.Name, t.Source)
		return nil
	case ctx.Err() != nil:
		return err
	case k != nil && k.begun:
		return fmt.Errorf("target %s: %w. The target is there, and the next round goes on with loading it", t.Name, err)
	}
	return errors.Join(fmt.Errorf("target %s: %w", t.Name, err), a.DB.RemoveConsumer(ctx, prefix+t.Name))
}

// queryAddress returns the default address for queries.
func queryAddress(update string) string {
	if before, ok := strings.CutSuffix(update, "/update"); ok {
		return before + "/query"
	}
	return strings.TrimSuffix(update, "/statements")
}

func status(a *extension.App) *cobra.Command {
	return &cobra.Command{
		Use: "status", Aliases: []string{"list"}, Short: "Show the targets, and how each is",
		Long: `Show the targets: what each is of, whether it is in step, and what is wrong if it is not.
With exit code 4 one of them is not in step.` + cli.Exits(cli.Differs),
		Args: cli.Args(cobra.NoArgs),
		RunE: a.Run(store.Read, func(ctx context.Context, _ []string) error {
			all, err := targets(ctx, a.DB)
			if err != nil {
				return err
			}
			views := []view{}
			for _, t := range all {
				views = append(views, viewOf(ctx, a.DB, t))
			}
			err = a.Answer(views, func(w io.Writer) { writeViews(w, views) })
			for _, v := range views {
				if err == nil && v.State != inStep {
					err = cli.Exit(cli.Differs)
				}
			}
			return err
		}),
	}
}

// view is a target as "status" shows it.
type view struct {
	*Target
	State string `json:"state"`
	gone  bool   // its source is
}

// The states of targets.
const (
	inStep  = "in step"
	behind  = "behind"
	failing = "failing"
)

func viewOf(ctx context.Context, db *store.DB, t *Target) view {
	v := view{Target: t, State: behind}
	err := db.Consume(ctx, prefix+t.Name, func(c *store.Consumed) error {
		if m := t.Mark; t.Next == nil && m != nil && m.History == c.History && m.Commit == c.Head.Commit {
			v.State = inStep
		}
		return nil
	})
	if t.Error != "" || err != nil {
		v.State, t.Error = failing, cmp.Or(t.Error, fmt.Sprint(err))
		if v.gone = errors.Is(err, store.ErrNotFound); v.gone {
			t.Error = fmt.Sprintf("%v: \"target remove %s\" ends the target", err, t.Name)
		}
	}
	return v
}

// dependents returns the state of all targets of a store.
func dependents(ctx context.Context, db *store.DB) (found []store.Dependent, err error) {
	all, err := targets(ctx, db)
	for _, t := range all {
		v := viewOf(ctx, db, t)
		d := store.Dependent{Name: "target " + t.Name, Of: t.Source, State: v.State, Wrong: t.Error,
			Ends: "target remove " + t.Name, Facts: append([]string{
				fmt.Sprintf("store        %s <%s>", t.Update, t.Graph),
				"in step      " + timeOf(t.InStep),
				"compared     " + timeOf(t.Verified)}, v.notes()...)}
		switch {
		case v.gone:
			d.Mends = d.Ends
		case t.Error != "" && t.HeldBack > 0:
			d.Mends = "target rebuild " + t.Name
		case t.Error != "":
			d.Mends = "target sync " + t.Name
		case len(t.Refused) > 0:
			d.Wrong, d.Advice = v.notes()[0], "correct them in the source; \"target status --json\" lists them"
		}
		found = append(found, d)
	}
	return found, err
}

// notes returns the differences between the sent statements and those that the store keeps.
func (v *view) notes() (all []string) {
	if n := len(v.Refused); n > 0 {
		all = append(all, fmt.Sprintf("the store refuses %d statements, such as %s", n, strings.TrimSpace(v.Refused[0])))
	}
	if v.Changed > 0 {
		all = append(all, fmt.Sprintf("the store keeps %d values as others (docs/targets.md)", v.Changed))
	}
	return all
}

func timeOf(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

func writeViews(w io.Writer, all []view) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no targets; \"target add\" adds one")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TARGET\tOF\tSTATE\tIN STEP\tCOMPARED\tSTORE")
	for _, v := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s <%s>\n", v.Name, v.Source, v.State, timeOf(v.InStep), timeOf(v.Verified),
			v.Update, v.Graph)
	}
	_ = table.Flush()
	for _, v := range all {
		if v.Error != "" {
			fmt.Fprintf(w, "%s: %s\n", v.Name, v.Error)
		}
		for _, note := range v.notes() {
			fmt.Fprintf(w, "%s: %s\n", v.Name, note)
		}
	}
}

func syncCommand(a *extension.App) *cobra.Command {
	return &cobra.Command{
		Use: "sync [NAME...]", Short: "Bring targets in step now",
		Long: `Bring the named targets, or all, in step with what their sources have here. Rounds of
"sync" do so for the targets of what they follow.` + cli.Exits(cli.HeldBack, cli.Unreachable, cli.Conflict),
		RunE: a.Run(store.Write, func(ctx context.Context, args []string) error {
			a.Became = "what was sent is known, and the next round goes on from there"
			return each(ctx, a, args, func(all []*Target) error { return inStepAll(ctx, a, all) })
		}),
	}
}

// each does something with the named targets, or with all.
func each(ctx context.Context, a *extension.App, names []string, do func([]*Target) error) error {
	all, err := targets(ctx, a.DB)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t *Target) bool { return t.Name == name }) {
			failed = append(failed, fmt.Errorf("there is no target %q: \"target status\" lists them", name))
		}
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(t *Target) bool { return !slices.Contains(names, t.Name) })
	}
	return errors.Join(append(failed, do(all))...)
}

// oneByOne does something with each of some targets; one that fails does not keep the others from it.
func oneByOne(do func(*Target) error) func([]*Target) error {
	return func(all []*Target) error {
		var failed []error
		for _, t := range all {
			if err := do(t); err != nil {
				failed = append(failed, fmt.Errorf("target %s: %w", t.Name, err))
			}
		}
		return errors.Join(failed...)
	}
}

func verify(a *extension.App) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "verify [NAME...]", Short: "Compare whole graphs, and repair what differs",
		Long: `Compare the whole graph of each target with what its source has, statement by statement,
and repair what differs. With exit code 4 something did.` + cli.Exits(cli.Differs, cli.HeldBack, cli.Unreachable,
			cli.Conflict),
	}
	cmd.RunE = a.Run(store.Write, func(ctx context.Context, args []string) error {
		return compareEach(ctx, a, args, mostDelete, !dry)
	})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "compare, and repair nothing")
	return cmd
}

func rebuild(a *extension.App) *cobra.Command {
	return &cobra.Command{
		Use: "rebuild NAME...", Short: "Make graphs what their sources are, whatever they have",
		Long: `Make each graph what its source is, however much of it has to go. A graph that another
node has kept in step is taken over.` + cli.Exits(cli.Unreachable, cli.Conflict),
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.Run(store.Write, func(ctx context.Context, args []string) error {
			return compareEach(ctx, a, args, -1, true)
		}),
	}
}

// compareEach compares the graphs of the named targets, or of all.
func compareEach(ctx context.Context, a *extension.App, names []string, maxDelete int, repair bool) error {
	a.Became = "the next round compares the graph again"
	results := []*Comparison{}
	err := each(ctx, a, names, oneByOne(func(t *Target) error {
		k, err := commandRunner(a).keeper(t, aside(a, t))
		if err != nil {
			return err
		}
		k.maxDelete = maxDelete
		result, err := k.compareNow(ctx, repair)
		if result != nil {
			results = append(results, result)
		}
		return err
	}))
	different := false
	for _, r := range results {
		different = different || !r.Equal()
	}
	err = errors.Join(err, a.Answer(results, func(w io.Writer) {
		for _, r := range results {
			r.write(w)
		}
	}))
	if err == nil && different && maxDelete >= 0 {
		err = cli.Exit(cli.Differs)
	}
	return err
}

func (c *Comparison) write(w io.Writer) {
	if c.Equal() {
		fmt.Fprintf(w, "target %s: equal, %d statements\n", c.Target, c.Statements)
	} else {
		done := "; nothing was repaired"
		if c.Repaired {
			done = "; repaired"
		}
		fmt.Fprintf(w, "target %s: of %d statements, %d were missing, and %d were not those of the source%s\n", c.Target,
			c.Statements, c.Missing, c.Extra, done)
	}
	if c.Changed > 0 {
		fmt.Fprintf(w, "target %s: the store keeps %d values as others (docs/targets.md)\n", c.Target, c.Changed)
	}
	for _, e := range c.Examples {
		fmt.Fprintf(w, "  %s\n", e)
	}
}

func remove(a *extension.App) *cobra.Command {
	var clear bool
	cmd := &cobra.Command{
		Use: "remove NAME...", Short: "Stop keeping graphs in step",
		Long: "Stop keeping the graphs of some targets in step. The store keeps their statements, unless --clear is given.",
		Args: cli.Args(cobra.MinimumNArgs(1)),
	}
	cmd.RunE = a.Run(store.Write, func(ctx context.Context, args []string) error {
		return each(ctx, a, args, oneByOne(func(t *Target) error {
			if clear {
				k, err := commandRunner(a).keeper(t, func(string) {})
				if err == nil {
					err = k.clear(ctx)
				}
				if err != nil {
					return err
				}
			}
			err := a.DB.RemoveConsumer(ctx, prefix+t.Name)
			if err == nil {
				a.Printf("target %s: removed\n", t.Name)
			}
			return err
		}))
	})
	cmd.Flags().BoolVar(&clear, "clear", false, "remove the graph, and its mark, from the store")
	return cmd
}
