package clientcmd

import (
	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// VersionCommand says what a program is.
func VersionCommand(program string) *cobra.Command {
	return cli.VersionCommand(program, keys.FormatVersion)
}
