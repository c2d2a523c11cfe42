// Package key is an extension: the command by which keys are made that sign the checkpoints of collections.
package key

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
)

// Extension returns it: the command of tmshare-server.
func Extension() extension.Extension {
	return extension.Extension{Name: "key", Commands: func(a *extension.App) []*cobra.Command {
		if !a.Serves {
			return nil
		}
		return cli.In(cli.Operations, command())
	}}
}

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make or show a key that signs the checkpoints of collections",
		Long: `Make or show a key that signs the checkpoints of collections ("collections set NAME
--sign KEYFILE"). Subscribers then notice if what was published is altered later.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(generate(), show())
	return cmd
}

func generate() *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "generate KEYFILE --name NAME",
		Short: "Write a new key file, and print the public key",
		Long: `Write a new key file KEYFILE, which must not be there yet, and print the public key. Give
that to subscribers by another way than the server, such as your web site. The file has
the private key: keep it, and let nobody else read it. It is not part of backups.`,
		Example: `  tmshare-server key generate /etc/tmshare/maps.key --name maps.example.org
  tmshare-server collections set egov --sign /etc/tmshare/maps.key`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
		RunE: func(cmd *cobra.Command, args []string) error {
			if name == "" {
				host, err := os.Hostname()
				if err != nil {
					return fmt.Errorf("the name of this machine is not known (%w): give --name", err)
				}
				name = host
			}
			key, err := checkpoint.GenerateKey(args[0], name)
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), args[0], key, asJSON)
		},
	}
	cmd.Flags().StringVar(&name, "name", "",
		"one `word` that says in each checkpoint whose key it is (default: the name of this machine)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON for programs")
	return cmd
}

func show() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show KEYFILE",
		Short: "Print the public key in a key file",
		Args:  cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := checkpoint.ReadKey(args[0])
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), args[0], key, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON for programs")
	return cmd
}

func write(w io.Writer, file string, key *checkpoint.Key, asJSON bool) error {
	if asJSON {
		return cli.WriteJSON(w, map[string]string{"file": file, "publicKey": key.Public})
	}
	_, err := fmt.Fprintln(w, key.Public)
	return err
}
