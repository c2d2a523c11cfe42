package clientcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/mapfile"
	"github.com/tmshare/tmshare/xtm"
)

// problem is one thing that is wrong in a file.
type problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Problem string `json:"problem"`
	Warning bool   `json:"warning,omitempty"` // --lenient passes it over
}

func problemOf(e *xtm.SyntaxError) problem {
	return problem{File: e.URI, Line: e.Line, Column: e.Column, Problem: e.Reason}
}

func (a *app) validate() *cobra.Command {
	var f fileFlags
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "List all that is wrong in a file",
		Long: `Check that FILE is a topic map by the rules of its version of XTM and of the data
model, and list all problems, each with its file, line and column (in bytes). Only
what is no well-formed XML ends the list early.

With --lenient, what it makes the other commands leave out is a warning, which does
not change the exit code; without it, all of that is an error.

` + aboutFiles + `

Exit codes: 0 valid, perhaps with warnings, 1 problems or an error, 2 usage.
--json prints an array of {file, line, column, problem}, with "warning": true for
warnings.`,
		Example: `  tmshare-client validate egov.xtm
  tmshare-client validate --lenient GCL-2-1.xtm
  tmshare-client validate --json egov.xtm | jq -r '.[].problem'`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: a.onFiles(func(args []string) error { return a.validateFile(&f, args[0]) }),
	}
	f.add(cmd)
	return cmd
}

func (a *app) validateFile(f *fileFlags, path string) error {
	s, err := a.source(f, path)
	if err != nil {
		return err
	}
	list := []problem{}
	wrong := 0
	s.Problem = func(e *xtm.SyntaxError) {
		wrong++
		list = append(list, problemOf(e))
	}
	s.Dropped = func(e *xtm.SyntaxError) {
		p := problemOf(e)
		p.Warning = true
		list = append(list, p)
	}
	d, err := s.Read()
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
	if a.json {
		err = errors.Join(err, a.print(list))
	} else {
		err = errors.Join(err, a.report(func(w io.Writer) { writeProblems(w, list) }))
	}
	switch {
	case err != nil:
		return err
	case wrong > 0:
		return a.invalid(path, wrong)
	case !a.json:
		return a.report(func(w io.Writer) { writeValid(w, d, len(list)) })
	}
	return nil
}

// invalid is the error of a file in which something is wrong, all of which has
// been said already.
func (a *app) invalid(path string, wrong int) error {
	if a.json {
		return &cli.ExitError{Code: cli.Failed}
	}
	if path == "-" {
		path = mapfile.Stdin
	}
	if wrong == 1 {
		return fmt.Errorf("%s: 1 problem", path)
	}
	return fmt.Errorf("%s: %d problems", path, wrong)
}

func writeProblems(w io.Writer, list []problem) {
	for _, p := range list {
		if p.Line == 0 { // the file could not be read; the error says so
			continue
		}
		kind := ""
		if p.Warning {
			kind = "warning: "
		}
		fmt.Fprintf(w, "%s:%d:%d: %s%s\n", p.File, p.Line, p.Column, kind, p.Problem)
	}
}

func writeValid(w io.Writer, d *mapfile.Document, warnings int) {
	topics, associations := count(d.Map)
	with := ""
	switch {
	case warnings == 1:
		with = ", with 1 warning"
	case warnings > 1:
		with = fmt.Sprintf(", with %d warnings", warnings)
	}
	fmt.Fprintf(w, "%s: valid XTM %s%s: %d topics, %d associations\n", d.Name, d.Version, with, topics, associations)
}
