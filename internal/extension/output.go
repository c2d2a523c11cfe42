package extension

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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
	e := json.NewEncoder(a.Command.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// Report prints for people, unless they want to hear of errors only.
func (a *App) Report(write func(io.Writer)) error {
	if a.Quiet {
		return nil
	}
	w := bufio.NewWriter(a.Command.OutOrStdout())
	write(w)
	return w.Flush()
}
