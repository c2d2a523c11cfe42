// Command tmshare-client keeps a local store in step with published topic maps.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
)

func main() {
	root := &cobra.Command{
		Use:   "tmshare-client",
		Short: "Keep in step with topic maps that others publish",
		Long: `tmshare-client subscribes to topic maps that servers publish, starts clean from
a snapshot, applies the changes that come, and proves itself equal to its source.
convert, cxtm, validate, stats and diff work on files and need no subscription.

Exit codes: 0 done, 1 error, 2 usage, 4 verify or diff found a difference.
Every flag can also be set by the environment: --data as TMSHARE_DATA.`,
		Example: `  tmshare-client subscribe http://127.0.0.1:8080/topicmaps/egov
  tmshare-client sync
  tmshare-client verify
  tmshare-client export egov.xtm
  tmshare-client validate egov.xtm`,
	}
	addCommands(root)
	os.Exit(cli.Run(root))
}
