package clientcmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
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
