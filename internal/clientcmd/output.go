package clientcmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/doctor"
)

// onFolder makes the body of a command that works on a folder of files and leaves the store
// alone. Output that nobody reads any more is an error like any other.
func (a *app) onFolder(body func(args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.command = cmd
		signal.Ignore(syscall.SIGPIPE)
		return body(args)
	}
}

func (a *app) printf(format string, args ...any) {
	if !a.quiet {
		a.display.Clear()
		fmt.Fprintf(a.command.OutOrStdout(), format, args...)
	}
}

func (a *app) print(value any) error {
	a.display.Clear()
	e := json.NewEncoder(a.command.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// report prints for people, unless they want to hear of errors only.
func (a *app) report(write func(io.Writer)) error {
	if a.quiet {
		return nil
	}
	w := bufio.NewWriter(a.command.OutOrStdout())
	write(w)
	return w.Flush()
}

// capture executes a command for what it prints. It has nothing to read, and no terminal.
func capture(r *control.Request, run func() int) doctor.Outcome {
	var out, errs limited
	r.Stdin, r.StdoutTerminal, r.StderrTerminal = strings.NewReader(""), false, false
	r.Stdout, r.Stderr = &out, &errs
	code := run()
	return doctor.Outcome{Out: out.String(), Err: errs.String(), Code: code}
}

// maxPrinted bounds what is kept of what a captured command prints.
const maxPrinted = 64 << 20

// limited is a buffer that takes [maxPrinted] bytes.
type limited struct{ bytes.Buffer }

var errTooMuch = errors.New("it prints too much to be shown here: use the command")

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPrinted {
		return 0, errTooMuch
	}
	return l.Buffer.Write(p)
}
