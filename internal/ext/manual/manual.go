// Package manual is an extension: the hidden command that writes the pages of the manual, which packages have, and the
// reference of all commands.
package manual

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
)

// Extension returns it.
func Extension() extension.Extension {
	return extension.Extension{Name: "manual", Commands: func(a *extension.App) []*cobra.Command {
		if a.Held != nil { // it describes the program of that process
			return nil
		}
		return []*cobra.Command{command()}
	}}
}

func command() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the pages of the manual into a folder",
		Hidden: true,
		Args:   cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if markdown {
				var all bytes.Buffer
				if err := writeReference(&all, root); err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(args[0], root.Name()+".md"), all.Bytes(), 0o644)
			}
			date := time.Now()
			if n, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
				date = time.Unix(n, 0).UTC()
			}
			root.DisableAutoGenTag = true
			version, _, _ := strings.Cut(root.Version, " ") // behind it is that of Go
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "TMShare " + version, Manual: "TMShare",
				Date: &date}, args[0])
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "write all commands as one document in Markdown")
	return cmd
}

// writeReference writes the help of all commands as one document in Markdown.
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
