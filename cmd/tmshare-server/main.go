// Command tmshare-server publishes topic maps over HTTP.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
)

// extensions are all that the program has beside its core.
func extensions() []extension.Extension { return ext.All() }

func main() {
	root := &cobra.Command{
		Use:   "tmshare-server",
		Short: "Publish topic maps, so that others can keep in step with them",
		Long: `tmshare-server holds topic maps and publishes, for each, Atom feeds of
snapshots and of fragments, one for each topic that changes.

Every flag can also be set by the environment, --base-url as TMSHARE_BASE_URL,
except those that say what of a running server to change.`,
	}
	root.AddCommand(serveCommand(extensions()), importCommand(), topicsCommand(), collectionsCommand(), deriveCommand(), snapshotCommand(), gcCommand(), keyCommand(), migrateCommand(), demoCommand())
	root.AddCommand(historyCommand(), logCommand(), exportCommand(), diffCommand(), revertCommand(), clientcmd.VersionCommand(root.Name()), doctorCommand(root.Name()))
	root.AddCommand(clientcmd.FolderCommands(root.Name(), cli.StateDir("server"))...)
	cli.CompleteArguments(root, os.Getenv, collectionNames)
	os.Exit(cli.Run(root))
}
