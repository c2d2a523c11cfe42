package cli

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// writeReference writes what each command says of itself, as one document in Markdown.
func writeReference(w io.Writer, c *cobra.Command) error {
	// those every program of cobra has
	if c.HasParent() && (!c.IsAvailableCommand() || c.Name() == "completion" || c.Name() == "help") {
		return nil
	}
	var help bytes.Buffer
	c.InitDefaultHelpFlag()
	c.SetOut(&help)
	if err := c.Help(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "## %s\n\n%s.\n\n```text\n%s\n```\n\n", c.CommandPath(), c.Short,
		withoutSpacesAtEnds(help.Bytes())); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if err := writeReference(w, sub); err != nil {
			return err
		}
	}
	return nil
}

// withoutSpacesAtEnds leaves out white space at the ends of lines, and of the text.
func withoutSpacesAtEnds(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		lines[i] = bytes.TrimRight(line, " ")
	}
	return bytes.TrimSpace(bytes.Join(lines, []byte("\n")))
}
