package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/publish"
)

// remote holds the flags of commands that send requests to a running server.
type remote struct {
	address, tokenFile, caCert string
	json                       bool
	timeout                    time.Duration

	server *admin.Client
	out    io.Writer

	states *times       // nil: the command takes no times
	write  *admin.Write // nil: it changes no topics
}

// command completes a command: the flags that all have, and its body.
func (r *remote) command(cmd *cobra.Command, body func(ctx context.Context, args []string) error) *cobra.Command {
	fl := cmd.Flags()
	cli.CommandLineOnly(fl)
	fl.StringVar(&r.address, "server", "http://127.0.0.1:8080", "`URL` of the server, without /topicmaps")
	fl.StringVar(&r.tokenFile, "token-file", "", "`file` whose first token is sent")
	fl.StringVar(&r.caCert, "ca-cert", "",
		"`file` with certificates, in PEM, of authorities that may sign that of the server, besides those of this machine")
	fl.BoolVar(&r.json, "json", false, "print JSON for programs")
	fl.DurationVar(&r.timeout, "timeout", time.Hour, "give up after this `time`")
	cmd.Long = cmp.Or(cmd.Long, cmd.Short+".") + cli.Exits(exitsOf(cmd)...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if len(args) > 0 {
			if err = cli.UsageError(admin.CheckName("", args[0])); err != nil {
				return err
			}
		}
		if r.server, err = reach("--server", r.address, r.tokenFile, r.caCert); err != nil {
			return err
		}
		if r.timeout <= 0 {
			return cli.UsageError(fmt.Errorf("--timeout %s: give more than 0", r.timeout))
		}
		r.out = cmd.OutOrStdout()
		interrupted, stop := cli.UntilInterrupted(cmd.Context())
		defer stop()
		ctx, cancel := context.WithTimeout(interrupted, r.timeout)
		defer cancel()
		if r.write != nil && r.write.Author == "" && r.tokenFile == "" && !cmd.Flags().Changed("author") {
			r.write.Author = cli.LocalAuthor()
		}
		if r.states != nil {
			err = r.states.find(ctx, r.server, args[0])
		}
		if err == nil {
			err = body(ctx, args)
		}
		switch {
		case err == nil:
			return nil
		case interrupted.Err() != nil:
			return cli.InterruptedError(became(cmd, args))
		case ctx.Err() != nil:
			return &cli.ExitError{Code: cli.Unreachable,
				Err: fmt.Errorf("given up after %s (--timeout); %s", r.timeout, became(cmd, args))}
		}
		return err
	}
	return cmd
}

// exitsOf returns the specific exit codes of a command, by its flags and arguments.
func exitsOf(cmd *cobra.Command) []int {
	codes := []int{cli.Unreachable}
	for flag, code := range map[string]int{"max-delete": cli.HeldBack, "if-match": cli.Conflict} {
		if cmd.Flags().Lookup(flag) != nil {
			codes = append(codes, code)
		}
	}
	if strings.HasSuffix(cmd.Use, " FILE") {
		codes = append(codes, cli.BrokenInput)
	}
	switch cmd.Name() {
	case "diff":
		codes = append(codes, cli.Differs)
	case "derive", "move":
		codes = append(codes, cli.Conflict)
	}
	return codes
}

// became returns advice about a request that a server did not answer.
func became(cmd *cobra.Command, args []string) string {
	switch fl := cmd.Flags(); {
	case cmd.Name() == "move":
		return "run it again, which completes it, or with --cancel"
	case fl.Lookup("if-match") == nil && fl.Lookup("dry-run") == nil:
		return "nothing was changed"
	}
	return fmt.Sprintf("what the server had begun may have been done: \"tmshare-server log %s\" shows whether it was",
		append(args, "NAME")[0])
}

// reach returns a client for a server. tokenFile is "" if no token is sent. The client also trusts the authorities in
// the file caCert; "": none.
func reach(flag, address, tokenFile, caCert string) (*admin.Client, error) {
	var token string
	if tokenFile != "" {
		tokens, _, err := readTokens(tokenFile)
		if err != nil {
			return nil, err
		}
		token = tokens[0]
	}
	c, err := admin.New(address, token)
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("%s: %w", flag, err))
	}
	return c, c.Trust(caCert)
}

// collectionNames returns the names of the collections on the server of a command, for completion in shells.
func collectionNames(ctx context.Context, cmd *cobra.Command) (names []string) {
	if cmd.Flags().Lookup("server") == nil {
		return nil
	}
	given := func(flag string) string { return cmd.Flags().Lookup(flag).Value.String() }
	c, err := reach("--server", given("server"), given("token-file"), given("ca-cert"))
	if err != nil {
		return nil
	}
	all, err := c.Collections(ctx)
	if err != nil {
		return nil
	}
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

// writeFlags adds to a command on which conditions it is to change a collection.
func (r *remote) writeFlags(cmd *cobra.Command, w *admin.Write) {
	r.write = w
	ifMatchFlag(cmd, &w.IfMatch)
	cmd.Flags().StringVar(&w.Author, "author", "",
		"`name` of who makes the change; history shows it (default: that of the token; without --token-file USER@HOST)")
	cmd.Flags().StringVar(&w.Message, "message", "", "`text` that says why; history shows it")
	cmd.Flags().BoolVar(&w.DryRun, "dry-run", false, "publish nothing; print what would be published")
}

// ifMatchFlag adds the guard against lost updates to a command.
func ifMatchFlag(cmd *cobra.Command, ifMatch *string) {
	cmd.Flags().StringVar(ifMatch, "if-match", "",
		"only if the collection has this `etag` still; \"collections show\" has it")
}

// print prints the answer: as JSON, or as text.
func (r *remote) print(answer any, text string) error {
	if r.json {
		return cli.WriteJSON(r.out, answer)
	}
	_, err := fmt.Fprintln(r.out, text)
	return err
}

// warn prints on standard error how the document in a file was read although it breaks rules of XTM. Programs find that
// in the answer.
func (r *remote) warn(path string, p *publish.Published) {
	if r.json {
		return
	}
	for _, w := range p.Warnings {
		if w.Line == 0 {
			fmt.Fprintf(os.Stderr, "%s: warning: %s\n", path, w.Text)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s:%d:%d: warning: %s\n", path, w.Line, w.Column, w.Text)
	}
}

// published returns a line about the result of a write.
func published(p *publish.Published) string {
	var text string
	switch {
	case p.Added+p.Updated+p.Deleted == 0:
		text = fmt.Sprintf("%s: nothing has changed, %d topics", p.Collection, p.Topics)
	case p.DryRun:
		text = listedChanges(p) +
			fmt.Sprintf("%s: dry run, nothing is published. Would be: %d added, %d updated, %d deleted, %d topics then",
				p.Collection, p.Added, p.Updated, p.Deleted, p.Topics)
	default:
		text = fmt.Sprintf("%s: %d added, %d updated, %d deleted, %d topics now", p.Collection, p.Added, p.Updated,
			p.Deleted, p.Topics)
	}
	return text
}

// maxChanges is the number of topics that a dry run names to people.
const maxChanges = 20

// listedChanges returns a line for each topic that a dry run would publish.
func listedChanges(p *publish.Published) string {
	var b strings.Builder
	for i, c := range p.Changes {
		if i == maxChanges {
			break
		}
		fmt.Fprintf(&b, "  %-7s %s", c.Change, iri.Shown(c.TopicSI))
		if c.Title != "" && c.Title != iri.Shown(c.TopicSI) {
			fmt.Fprintf(&b, " %q", c.Title)
		}
		b.WriteByte('\n')
	}
	if all := p.Added + p.Updated + p.Deleted; all > maxChanges {
		fmt.Fprintf(&b, "  … and %d more; --json lists the first %d\n", all-maxChanges, len(p.Changes))
	}
	return b.String()
}

// openXTM opens a file to send; "-" is standard input. If its extension is that of RDF, asked holds the options for
// reading it.
func openXTM(known formats.Registry, path string, asked url.Values) (*admin.Document, func(), error) {
	if path == "-" {
		r := &counted{r: os.Stdin}
		return admin.XTM(r, 0), reporting(uploads(), formats.Stdin, r), nil
	}
	f, size, err := formats.Open(path, func(string, fs.FileInfo) {})
	if err != nil {
		return nil, nil, err
	}
	done := func() { f.Close() }
	format, ok := known.OfFile(path)
	if !ok || format.Read == nil || format.Stored != "" {
		format = formats.Default // the document states its version
	}
	r := &counted{r: f, size: size}
	reported := reporting(uploads(), path, r)
	doc := admin.InFormat(format, r, size)
	if len(format.Asks) > 0 {
		doc.Asked = asked
	}
	return doc, func() { reported(); done() }, nil
}

// uploads returns the display of an upload.
func uploads() *extension.Display {
	return extension.NewDisplay(control.Local("tmshare-server", nil), false, false)
}

// about adds the name of the file to an error about the document, but not to one about the request.
func about(path string, err error) error {
	var refused *admin.Refusal
	ofRequest := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}
	if errors.As(err, &refused) && path != "-" && refused.Status < 500 && !slices.Contains(ofRequest, refused.Status) {
		if place, is := strings.CutPrefix(refused.Detail, "request body:"); is { // its line and column
			refused.Detail = path + ":" + place
			return err
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// confirm asks for confirmation on a terminal.
func confirm(question string) (bool, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return false, cli.UsageError(errors.New("give --yes: there is no terminal to ask on"))
	}
	fmt.Fprintf(os.Stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}
