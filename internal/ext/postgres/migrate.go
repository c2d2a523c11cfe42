package postgres

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/store"
)

func migrate(a *extension.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate --store URL",
		Short: "Make the tables of a store in a database, or bring them to this version",
		Long: `Make the tables of a store that several processes share in a database, or bring
them to the layout of this version. It can be run again, and while others use the
store. The user must be allowed to create a schema in the database, or tables in a
schema that is there. The schema is "tmshare", or the one that the address names with
?search_path=NAME.

"serve" and "tmshare-client" open the store with the same address. TLS is used, and the
certificate of the server verified, unless the address says otherwise (sslmode) or
leads to a Unix socket.`,
		Example: `  PGPASSWORD=… tmshare-server migrate --store postgres://tmshare@db.example.org/tmshare
  tmshare-server serve --store postgres://tmshare@db.example.org/tmshare --listen :8080 --base-url \
    https://maps.example.org`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Store == "" {
				return cli.UsageError(errors.New("no database is named: give its address with --store " + form))
			}
			ctx, stop := cli.UntilInterrupted(cmd.Context())
			defer stop()
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			at, err := options(a.Store, log)
			if err != nil {
				return err
			}
			made, err := pg.Migrate(ctx, at)
			if err != nil {
				return err
			}
			db, err := a.OpenAt(ctx, a.Store, store.Options{Access: store.Create, Logger: log})
			if err == nil {
				err = db.Close()
			}
			if err != nil {
				return err
			}
			was := "was there, and"
			if made {
				was = "is new, and"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the store in %s %s has the layout of this version\n", a.Store, was)
			return err
		},
	}
	a.AddStoreFlag(cmd.Flags())
	return cmd
}
