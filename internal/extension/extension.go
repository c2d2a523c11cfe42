// Package extension says what an extension is: what may be left out of a program.
package extension

import (
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/server"
)

// Extension is what a program has beside its core. Fields that are nil add nothing. It is made anew for each command,
// and used by one goroutine.
type Extension struct {
	Name string // unique

	// Flags adds flags to the command that serves.
	Flags func(*pflag.FlagSet)
	// Serve makes its part of a server, once the flags are parsed. An error says what is wrong with them.
	Serve func(*server.Server) (*server.Part, error)
}

// Parts returns what makes the parts of a server, in the order of the extensions.
func Parts(all []Extension) (parts []func(*server.Server) (*server.Part, error)) {
	for _, e := range all {
		if e.Serve != nil {
			parts = append(parts, e.Serve)
		}
	}
	return parts
}

// AddFlags adds the flags of extensions to the command that serves.
func AddFlags(all []Extension, to *pflag.FlagSet) {
	for _, e := range all {
		if e.Flags != nil {
			e.Flags(to)
		}
	}
}
