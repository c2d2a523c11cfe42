package changes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/durable"
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
	follow, rdf, forget bool
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

What a subscription changes is remembered from the first run on, 10,000 commits of it.`,
		Example: `  tmshare-client changes egov --from now --follow
  tmshare-client changes egov --state egov.position --exec 'python3 index.py'
  tmshare-server changes egov --rdf --from beginning > egov.jsonl`,
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	cmd.RunE = a.Run(store.Write, func(ctx context.Context, args []string) error {
		a.Became = "the next run goes on from the position that is kept"
		return run(ctx, a, &f, args[0])
	})
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", beginning, "`position` to go on behind: that of a line, beginning, or now")
	fl.BoolVar(&f.follow, "follow", false, "go on as changes come, until interrupted")
	fl.StringVar(&f.state, "state", "", "`file` that keeps the position; where it is there, --from is not used")
	fl.StringVar(&f.exec, "exec", "", "`command` of the shell that reads the lines")
	fl.IntVar(&f.batch, "batch", 1000, "`number` of lines that a command gets at a time, at most")
	fl.BoolVar(&f.rdf, "rdf", false, "with the statements of RDF that go and come (N-Triples)")
	fl.BoolVar(&f.forget, "forget", false, "remember no more what the source changes")
	return cmd
}

func run(ctx context.Context, a *extension.App, f *flags, source string) error {
	if f.batch < 1 {
		return cli.UsageError(errors.New("--batch must be positive"))
	}
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
	if begun && !a.Quiet {
		fmt.Fprintf(a.Command.ErrOrStderr(), "%s: what it changes is remembered from now on\n", source)
	}
	path := f.state
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(a.Request.Dir, path)
	}
	at := f.from
	if path != "" {
		b, err := os.ReadFile(path)
		switch kept := strings.TrimSpace(string(b)); {
		case err == nil && kept != "":
			at = kept
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	out := &output{app: a, flags: f, path: path}
	r := &reader{db: a.DB, source: source, rdf: f.rdf}
	var version store.Version
	for {
		next, err := out.some(ctx, r, at)
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

// output is where lines go.
type output struct {
	app   *extension.App
	flags *flags
	path  string // of the file that keeps the position; "": none does
}

// some reads some lines, hands them on, and keeps the position behind them.
func (o *output) some(ctx context.Context, r *reader, at string) (next string, err error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	type end struct {
		position string
		bytes    int
	}
	var ends []end // of the lines
	next, err = r.read(ctx, at, func(l *Line) (int, error) {
		before := text.Len()
		err := to.Encode(l)
		ends = append(ends, end{l.Position, text.Len()})
		return text.Len() - before, err
	})
	if err != nil {
		return next, err
	}
	from := 0
	for batch := range slices.Chunk(ends, o.flags.batch) {
		last := batch[len(batch)-1]
		if err := o.hand(ctx, text.Bytes()[from:last.bytes], last.position); err != nil {
			return at, err
		}
		from = last.bytes
	}
	if len(ends) == 0 && next != at { // from now on
		err = o.keep(next)
	}
	return next, err
}

// keep keeps the position.
func (o *output) keep(position string) error {
	if o.path == "" {
		return nil
	}
	return durable.WriteFile(o.path, []byte(position+"\n"))
}

// hand hands lines to the command, or prints them, and keeps the position behind them.
func (o *output) hand(ctx context.Context, lines []byte, next string) error {
	cmd := o.app.Command
	if o.flags.exec == "" {
		if _, err := cmd.OutOrStdout().Write(lines); err != nil {
			return err
		}
		return o.keep(next)
	}
	c := exec.CommandContext(ctx, "sh", "-c", o.flags.exec)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = o.app.Request.Dir, bytes.NewReader(lines), cmd.OutOrStdout(), cmd.ErrOrStderr()
	c.Env = append(os.Environ(), "TMSHARE_POSITION="+next)
	if err := c.Run(); err != nil {
		return fmt.Errorf("the command %q: %w; the next run gives it these lines again", o.flags.exec, err)
	}
	return o.keep(next)
}
