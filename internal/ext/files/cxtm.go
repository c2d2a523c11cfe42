package files

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/formats"
)

func (c *commands) cxtm() *cobra.Command {
	var f fileFlags
	cmd := &cobra.Command{
		Use:   "cxtm FILE",
		Short: "Print the canonical form of a file",
		Long: `Print the canonical form (CXTM, ISO 13250-4) of the topic map in FILE: two maps are
equal exactly when their canonical forms have the same bytes. Locators are written
relative to the file's own URL, or to --base.

` + aboutFiles + `

"convert FILE OUT.cxtm" writes the same to a file. "diff" compares two files
without regard to item identifiers, which are part of the canonical form.` + cli.Exits(cli.BrokenInput),
		Example: `  tmshare-client cxtm egov.xtm
  tmshare-client cxtm egov.xtm | sha256sum
  curl -s http://127.0.0.1:8080/topicmaps/egov/snapshots/current | tmshare-client cxtm -`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: c.Apart(func(_ context.Context, args []string) error {
			d, err := c.read(&f, args[0])
			if err != nil {
				return err
			}
			_, err = formats.Target{Path: "-", Stdout: c.Command.OutOrStdout()}.Write(context.Background(),
				d.Encoder(formats.CXTM, formats.WriteOptions{}))
			return err
		}),
	}
	f.add(c, cmd, formats.Use{Reads: true})
	return cmd
}
