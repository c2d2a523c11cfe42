package extension

import (
	"bufio"
	"fmt"
	"io"

	"github.com/tmshare/tmshare/internal/cli"
)

// Printf prints for people, unless they want to hear of errors only.
func (a *App) Printf(format string, args ...any) {
	if !a.Quiet {
		a.Display.Clear()
		fmt.Fprintf(a.Command.OutOrStdout(), format, args...)
	}
}

// Print prints for programs.
func (a *App) Print(value any) error {
	a.Display.Clear()
	return cli.WriteJSON(a.Command.OutOrStdout(), value)
}

// Answer prints the result of a command: as JSON for programs, or by write for people, unless they want errors only.
func (a *App) Answer(value any, write func(io.Writer)) error {
	a.Display.Clear()
	switch {
	case a.JSON:
		return a.Print(value)
	case a.Quiet:
		return nil
	}
	w := bufio.NewWriter(a.Command.OutOrStdout())
	write(w)
	return w.Flush()
}

// Tell is Answer with a line for people.
func (a *App) Tell(value any, line string, args ...any) error {
	return a.Answer(value, func(w io.Writer) { fmt.Fprintf(w, line+"\n", args...) })
}
