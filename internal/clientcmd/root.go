// Package clientcmd holds the commands of tmshare-client.
package clientcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log"
	"os"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// Main runs the command line of this process, with new extensions for each command line. It returns the exit code.
func Main(all func() []extension.Extension) int {
	log.SetOutput(io.Discard) // net/http logs there that a server has sent more than it announced
	return Executing(all)(context.Background(), control.Local(program, os.Args[1:]), nil)
}

const program = "tmshare-client"

// subscriptionNames returns the names of the subscriptions, for shells that complete them.
func (a *app) subscriptionNames(ctx context.Context, _ *cobra.Command) (names []string) {
	var all []status.Status
	_ = json.Unmarshal([]byte(a.Captured(ctx, "status", "--json", "--data", a.Data).Out), &all) // a shell shows no errors
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

// Executing returns a function that executes command lines of tmshare-client with extensions.
func Executing(all func() []extension.Extension) (execute extension.Execute) {
	execute = func(ctx context.Context, r *control.Request, held *extension.Holding) int {
		return run(ctx, &extension.App{Request: r, Held: held, Extensions: all(), Execute: execute})
	}
	return execute
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, shared *extension.App) int {
	a, r := &app{App: shared}, shared.Request
	root := &cobra.Command{
		Use:   cmp.Or(r.Program, program), // that of the sender of the command line
		Short: "Keep in step with topic maps that others publish",
		Long: `tmshare-client subscribes to topic maps that servers publish, starts clean from
a snapshot, applies the changes that come, and proves itself equal to its source.
Commands that work on files, or keep records in a folder, need no subscription.

While a command holds the data folder (watch does as long as it runs) it takes
the commands of others as well: they work as if they had it for themselves.

Every flag can also be set by the environment: --data as TMSHARE_CLIENT_DATA.` + cli.AllExits(),
		Example: `  tmshare-client subscribe http://127.0.0.1:8080/topicmaps/egov
  tmshare-client sync
  tmshare-client verify
  tmshare-client export egov.xtm`,
	}
	a.addCommands(root)
	if a.Held == nil {
		cli.CompleteArguments(root, a.Environment(), a.subscriptionNames)
	}
	root.SetArgs(append([]string{}, r.Args...)) // never those of this process
	root.SetIn(r.Stdin)
	root.SetOut(r.Stdout)
	root.SetErr(r.Stderr)
	root.SetContext(ctx)
	return cli.Run(root, a.Environment())
}

// ServerCommands returns the commands of tmshare-server that look after its data folder, and those of its extensions. A
// process that holds the folder executes some, as it does the commands of tmshare-client.
func ServerCommands(shared *extension.App) []*cobra.Command {
	a := &app{App: shared}
	return append(a.Commands(), cli.In(cli.Operations, a.OnFolder(a.check()), a.version())...)
}

// version prints the version of a program.
func (a *app) version() *cobra.Command {
	formats := []cli.Format{{Key: "dataFolder", Title: "data folders format", Version: keys.FormatVersion}}
	for _, e := range a.Extensions {
		formats = append(formats, e.Writes...)
	}
	return cli.VersionCommand(a.Request.Program,
		append(formats, cli.Format{Key: "stateDigest", Title: "state digest version", Version: statedigest.Version},
			// the namespace; its last part is the version
			cli.Format{Key: "extensions", Title: "extensions  ", Version: feeds.NamespaceOwn})...)
}
