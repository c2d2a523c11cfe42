// Command tmshare-server publishes topic maps over HTTP.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
)

func main() { os.Exit(execute(ext.All)) }

// execute runs the command line of this process with new extensions. It returns the exit code.
func execute(all func() []extension.Extension) int {
	root := &cobra.Command{
		Use:   "tmshare-server",
		Short: "Publish topic maps, so that others can keep in step with them",
		Long: `tmshare-server holds topic maps and publishes, for each, Atom feeds of
snapshots and of fragments, one for each topic that changes.

Flags can also be set by the environment, --base-url as TMSHARE_BASE_URL, --data as
TMSHARE_SERVER_DATA. Those that say what of a running server to change cannot.` + cli.AllExits(),
	}
	a := &extension.App{Request: control.Local(root.Name(), os.Args[1:]), Extensions: all(),
		Execute: clientcmd.Executing(all), Serves: true}
	root.AddCommand(cli.In(cli.Everyday, serveCommand(a), importCommand(a), exportCommand(a), topicsCommand(a),
		collectionsCommand(a), deriveCommand())...)
	root.AddCommand(cli.In(cli.Back, historyCommand(), logCommand(), diffCommand(), revertCommand())...)
	root.AddCommand(cli.Hidden(snapshotCommand(), gcCommand())...) // the names up to 0.1 of commands in "collections"
	root.AddCommand(clientcmd.ServerCommands(a)...)
	cli.CompleteArguments(root, a.Environment(), collectionNames)
	return cli.Run(root, a.Environment())
}
