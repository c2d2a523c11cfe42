// Package clientcmd holds the commands of tmshare-client.
package clientcmd

import (
	"cmp"
	"context"
	"io"
	"log"
	"os"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/ext/backup"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// Main runs the command line of this process and returns the exit code.
func Main() int {
	log.SetOutput(io.Discard) // net/http says there that a server has sent more than it announced
	return execute(context.Background(), control.Local(program, os.Args[1:]), nil)
}

const program = "tmshare-client"

// execute runs a command line and returns the exit code. held is the store that
// this process holds already, where the command line comes from another one.
func execute(ctx context.Context, r *control.Request, held *Holding) int {
	root := &cobra.Command{
		Use:   cmp.Or(r.Program, program), // that of whoever has sent the command line
		Short: "Keep in step with topic maps that others publish",
		Long: `tmshare-client subscribes to topic maps that servers publish, starts clean from
a snapshot, applies the changes that come, and proves itself equal to its source.
convert, cxtm, validate, stats and diff work on files and need no subscription. Nor
do harvest and mirror: they keep records, and whatever a Source of ResourceSync has, in
a folder.

While a command holds the data folder (watch does as long as it runs) it takes
the commands of others as well: they work as if they had it for themselves.

Exit codes: 0 done, 1 error, 2 usage, 3 in step but for what is in quarantine; 4
verify, diff or an audit found a difference, or check what --repair mends.
Every flag can also be set by the environment: --data as TMSHARE_DATA.`,
		Example: `  tmshare-client subscribe http://127.0.0.1:8080/topicmaps/egov
  tmshare-client sync
  tmshare-client verify
  tmshare-client export egov.xtm
  tmshare-client validate egov.xtm`,
	}
	a := &app{request: r, held: held}
	a.addCommands(root)
	if held == nil {
		cli.CompleteArguments(root, r.Getenv, a.subscriptionNames)
	}
	root.SetArgs(append([]string{}, r.Args...)) // never those of this process
	root.SetIn(r.Stdin)
	root.SetOut(r.Stdout)
	root.SetErr(r.Stderr)
	root.SetContext(ctx)
	return cli.RunWith(root, r.Getenv)
}

// VersionCommand says what a program is.
func VersionCommand(program string) *cobra.Command {
	return cli.VersionCommand(program, cli.Formats{DataFolder: keys.FormatVersion, Backup: backup.Format, StateDigest: statedigest.Version, Extensions: feeds.NamespaceOwn})
}
