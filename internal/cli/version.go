package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the version of a release, set by the linker; "" in other builds.
var version string

// About describes a program.
type About struct {
	Version  string         `json:"version"`
	Commit   string         `json:"commit,omitempty"` // "": not known
	Time     string         `json:"time,omitempty"`   // of the commit
	Modified bool           `json:"modified"`         // it was built from more than the commit
	Go       string         `json:"go"`
	Platform string         `json:"platform"`
	Formats  map[string]any `json:"formats"`
}

// Format is a format that a program writes, or exchanges, with its version. docs/compatibility.md has the promises for
// each.
type Format struct {
	Key     string // for programs
	Title   string // for people, before the version
	Version any
}

func about() (a About) {
	a = About{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return a
	}
	if a.Version == "" {
		a.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			a.Commit = s.Value
		case "vcs.time":
			a.Time = s.Value
		case "vcs.modified":
			a.Modified = s.Value == "true"
		}
	}
	return a
}

// VersionCommand prints the version of the program, and of the formats that it writes.
func VersionCommand(program string, formats ...Format) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit, and the versions of formats",
		Args:  Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a := about()
			a.Formats = map[string]any{}
			for _, f := range formats {
				a.Formats[f.Key] = f.Version
			}
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), a)
			}
			commit := a.Commit
			if commit == "" {
				commit = "not known"
			}
			if a.Time != "" {
				commit += " of " + a.Time
			}
			if a.Modified {
				commit += ", with changes"
			}
			out := cmd.OutOrStdout()
			_, err := fmt.Fprintf(out, "%s %s\ncommit       %s\nbuilt with   %s for %s\n", program, a.Version, commit,
				a.Go, a.Platform)
			for _, f := range formats {
				fmt.Fprintf(out, "%s %v\n", f.Title, f.Version)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
