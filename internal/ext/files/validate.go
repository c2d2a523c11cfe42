package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/xtm"
)

// problem is one thing that is wrong in a file.
type problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Problem string `json:"problem"`
	Warning bool   `json:"warning,omitempty"` // it is read as it is meant, unless with --strict

	Rule xtm.Rule `json:"rule,omitempty"`
}

func problemOf(e *xtm.SyntaxError) problem {
	return problem{File: e.URI, Line: e.Line, Column: e.Column, Problem: e.Reason, Rule: e.Rule}
}

func (c *commands) validate() *cobra.Command {
	var f fileFlags
	var previous string
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "List all that is wrong in a file",
		Long: `Check that FILE is a topic map by the rules of its version of XTM and of the data
model. List all problems, each with its file, line and column (in bytes). Only
what is no well-formed XML ends the list early.

What breaks a rule, but is read as it is meant (XTM 1.0 of Ontopia, for example), is a
warning. It does not change the exit code; with --strict it is an error. Such
things are listed once for each rule, with their number and what to do about them;
with --verbose, each.

With --previous, FILE is compared with the version before it. Topics without subject
identifiers are known by their ids alone. If a program has numbered them anew, that is
a warning: a server would publish each as another topic.

` + aboutFiles + `

--json prints an array of {file, line, column, problem}, with "warning": true for
warnings, and the "rule" that is broken where there is a name for it.

With exit code 0 it is valid, perhaps with warnings.` + cli.Exits(cli.BrokenInput),
		Example: `  tmshare-client validate egov.xtm
  tmshare-client validate --strict GCL-2-1.xtm
  tmshare-client validate new.xtm --previous published.xtm
  tmshare-client validate --json egov.xtm | jq -r '.[].problem'`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: c.Apart(func(_ context.Context, args []string) error { return c.validateFile(&f, args[0], previous) }),
	}
	cmd.Flags().StringVar(&previous, "previous", "",
		"`file` with the version before, to warn of ids that were numbered anew")
	f.add(c, cmd, formats.Use{Reads: true})
	return cmd
}

func (c *commands) validateFile(f *fileFlags, path, previous string) error {
	s, err := c.source(f, path)
	if err != nil {
		return err
	}
	if previous != "" {
		s.Base = versions
	}
	list := []problem{}
	wrong := 0
	var tally xtm.Tally
	s.Problem = func(e *xtm.SyntaxError) {
		wrong++
		tally.Add(e)
		list = append(list, problemOf(e))
	}
	s.Tolerated = func(e *xtm.SyntaxError) {
		tally.Add(e)
		p := problemOf(e)
		p.Warning = true
		list = append(list, p)
	}
	d, err := s.Read(c.Command.Context())
	var syntax *xtm.SyntaxError
	switch {
	case errors.As(err, &syntax):
		s.Problem(syntax)
		err = nil
	case err != nil: // also for programs that look at the list only
		wrong++
		list = append(list, problem{File: path, Problem: err.Error()})
	}
	slices.SortStableFunc(list, func(a, b problem) int { // some are found at the end only
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	found := len(list)
	if !c.JSON && !c.Verbose {
		list = onceEach(list, &tally)
	}
	if previous != "" && err == nil && wrong == 0 {
		var renumbered []problem
		renumbered, err = c.renumbered(f, d, previous)
		list, found = append(list, renumbered...), found+len(renumbered)
	}
	valid := err == nil && wrong == 0
	err = errors.Join(err, c.Answer(list, func(w io.Writer) {
		if writeProblems(w, list); valid {
			writeValid(w, d, found)
		}
	}))
	if err == nil && !valid {
		return c.invalid(path, wrong)
	}
	return err
}

// versions is the base on which two versions of a map are read, and the prefix under which they are compared.
const versions = "x-tmshare://versions/"

// renumbered warns if the topics of a map have other ids than in the version before.
func (c *commands) renumbered(f *fileFlags, d *formats.Document, previous string) ([]problem, error) {
	s, err := c.source(f, previous)
	if err != nil {
		return nil, err
	}
	s.Base = versions
	was, err := s.Read(c.Command.Context())
	if err != nil {
		return nil, fmt.Errorf("--previous: %w", err)
	}
	prior, err := fragment.NameTopics(c.Command.Context(), was.Map, versions, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", was.Name, err)
	}
	next, err := fragment.NameTopics(c.Command.Context(), d.Map, versions, prior)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	change, err := losses.Diff(c.Command.Context(), prior, next, losses.All())
	if err != nil || change.Renumbered == 0 {
		return nil, err
	}
	return []problem{{File: d.Name, Problem: losses.RenumberedWarning(change.Renumbered), Warning: true,
		Rule: losses.RenumberedRule}}, nil
}

// invalid returns the error for a file with problems that were already printed.
func (c *commands) invalid(path string, wrong int) error {
	if c.JSON {
		return cli.Exit(cli.BrokenInput)
	}
	if path == "-" {
		path = formats.Stdin
	}
	problems := "1 problem"
	if wrong > 1 {
		problems = fmt.Sprintf("%d problems", wrong)
	}
	return &cli.ExitError{Code: cli.BrokenInput, Err: fmt.Errorf("%s: %s", path, problems)}
}

// onceEach returns the first problem of each rule, with the number of problems of the rule.
func onceEach(list []problem, tally *xtm.Tally) []problem {
	counts := map[xtm.Rule]*xtm.Count{}
	for _, c := range tally.Counts() {
		counts[c.Rule] = &c
	}
	var kinds []problem
	for _, p := range list {
		if p.Rule != "" {
			c := counts[p.Rule]
			if c == nil { // it was there before
				continue
			}
			counts[p.Rule] = nil
			if p.Problem = c.Problem(); p.Warning {
				p.Problem = c.Warning()
			}
		}
		kinds = append(kinds, p)
	}
	return kinds
}

func writeProblems(w io.Writer, list []problem) {
	for _, p := range list {
		if p.Line == 0 {
			if p.Warning {
				fmt.Fprintf(w, "%s: warning: %s\n", p.File, p.Problem)
			} // otherwise the file could not be read, which the error states
			continue
		}
		kind := ""
		if p.Warning {
			kind = "warning: "
		}
		fmt.Fprintf(w, "%s:%d:%d: %s%s\n", p.File, p.Line, p.Column, kind, p.Problem)
	}
}

func writeValid(w io.Writer, d *formats.Document, warnings int) {
	topics, associations := count(d.Map)
	with := ""
	switch {
	case warnings == 1:
		with = ", with 1 warning"
	case warnings > 1:
		with = fmt.Sprintf(", with %d warnings", warnings)
	}
	fmt.Fprintf(w, "%s: valid %s%s: %d topics, %d associations\n", d.Name, d.Syntax(), with, topics, associations)
}
