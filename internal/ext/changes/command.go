package changes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns it, with the command "changes" of both programs.
func Extension() extension.Extension {
	return extension.Extension{Name: "changes", Commands: func(a *extension.App) []*cobra.Command {
		return cli.In(cli.Back, a.OnFolder(command(a)))
	}}
}

// flags are those of the command.
type flags struct {
	from, state, exec   string
	format              string
	follow, rdf, forget bool
	raw                 bool // this process sends lines to another one
	batch               int
}

func command(a *extension.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "changes NAME", Short: "Print what changes, as lines of JSON for programs",
		Long: `Print what has changed in a subscription or a collection: a line of JSON for each topic
of each commit, in the order of the commits. Each has a position, from which --from
goes on. A line of the kind "reset" says that the changes do not go on from there: the
source was replaced, or forgets what is older. All topics follow then, as "present".

--state FILE keeps the position: the next run goes on behind the last line. --exec gives
the lines to a command of the shell, some at a time, and goes on when that ends with 0.

What a subscription changes is remembered from the first run on, 10,000 commits of it.` +
			cli.Exits(cli.BrokenInput, cli.Conflict),
		Example: `  tmshare-client changes egov --from now --follow
  tmshare-client changes egov --state egov.position --exec 'python3 index.py'
  tmshare-server changes egov --format nq --from beginning > egov.nq`,
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	body := a.Run(store.Write, func(ctx context.Context, args []string) error {
		a.Became = "the next run goes on from the position that is kept"
		return run(ctx, a, &f, args[0])
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.batch < 1 {
			return cli.UsageError(errors.New("--batch must be positive"))
		}
		if _, known := formats[f.format]; !known {
			return cli.UsageError(fmt.Errorf("--format is jsonl, json-ld or nq, not %q", f.format))
		}
		if f.raw || f.forget {
			return body(cmd, args)
		}
		to, err := newSink(a, &f)
		if err != nil {
			return err
		}
		defer to.unlock()
		r := *a.Request // the process with the store may be another one: it sends the lines, which this one passes on
		r.Args, r.Stdout = append(slices.Clone(r.Args), "--from", to.at, "--raw"), to
		if f.rdf = f.rdf || f.format != jsonLines; f.rdf {
			r.Args = append(r.Args, "--rdf")
		}
		a.Request, f.from = &r, to.at
		cmd.SetOut(to)
		err = body(cmd, args)
		if to.failed != nil {
			return to.failed
		}
		return err
	}
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", beginning, "`position` to go on behind: that of a line, beginning, or now")
	fl.BoolVar(&f.follow, "follow", false, "go on as changes come, until interrupted")
	fl.StringVar(&f.state, "state", "", "`file` that keeps the position; where it is there, --from is not used")
	fl.StringVar(&f.exec, "exec", "", "`command` of the shell that reads the lines")
	fl.IntVar(&f.batch, "batch", 1000, "`number` of lines that a command gets at a time, at most")
	fl.BoolVar(&f.rdf, "rdf", false, "with the statements of RDF that go and come (N-Triples)")
	fl.StringVar(&f.format, "format", jsonLines, "`form` of the lines: jsonl, json-ld or nq (N-Quads)")
	fl.BoolVar(&f.raw, "raw", false, "print the lines, and how far they go, for the process that hands them on")
	_ = fl.MarkHidden("raw") // it exists
	fl.BoolVar(&f.forget, "forget", false, "no longer remember the changes of the source")
	return cmd
}

// run prints the lines of a source, and the position after some of them.
func run(ctx context.Context, a *extension.App, f *flags, source string) error {
	if f.forget {
		err := a.DB.RemoveConsumer(ctx, consumer(source))
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("changes of %q are not remembered", source)
		}
		return err
	}
	begun, err := keep(ctx, a.DB, source)
	if err != nil {
		return gone(source, err)
	}
	if _, unknown := a.DB.Subscription(ctx, source); begun && unknown == nil && !a.Quiet {
		fmt.Fprintf(a.Command.ErrOrStderr(), "%s: what it changes is remembered from now on\n", source)
	}
	r := &reader{db: a.DB, source: source, rdf: f.rdf}
	var version store.Version
	for at := f.from; ; {
		next, err := some(ctx, r, at, a.Command.OutOrStdout())
		if err != nil {
			return gone(source, err)
		}
		if next != at {
			at = next
			continue
		}
		if !f.follow {
			return nil
		}
		if version, err = a.DB.Await(ctx, version, time.Second); err != nil {
			return err
		}
	}
}

// some prints some lines, and then a line that has the position alone.
func some(ctx context.Context, r *reader, at string, w io.Writer) (next string, err error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	next, err = r.read(ctx, at, func(l *Line) (int, error) {
		before := text.Len()
		err := to.Encode(l)
		return text.Len() - before, err
	})
	if err == nil && next != at {
		err = to.Encode(&Line{Position: next})
	}
	if err == nil {
		_, err = w.Write(text.Bytes())
	}
	return next, err
}
