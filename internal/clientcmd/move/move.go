// Package move has the command that moves a store from one place to another.
package move

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/clientcmd/display"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/database"
	"github.com/tmshare/tmshare/internal/ext/backup"
	"github.com/tmshare/tmshare/internal/store"
)

// Flags are those of all commands that work on a store.
type Flags struct {
	Placed      bool // a store is named by --data or --store
	JSON, Quiet bool
	Logger      *slog.Logger
}

// Command returns the command. flags is asked when it is executed.
func Command(r *control.Request, flags func(*cobra.Command) Flags) *cobra.Command {
	var again bool
	c := &cobra.Command{
		Use:   "move FROM TO",
		Short: "Move a store from a data folder into a database, or back",
		Long: `Move all that a store has to another place: collections with their history,
subscriptions, local statements, snapshots and lists of ResourceSync. FROM and TO are data folders or addresses
of databases, postgres://USER@HOST:PORT/NAME; PGPASSWORD, or the file that PGPASSFILE
names, has the password. So a node outgrows one machine, and can come back.

It stays the same node: collections keep their epochs and addresses, so those who follow
them go on as if nothing had happened. ("restore" of a backup begins new epochs.)

Stop all programs that use FROM first. TO must be new: a folder that is missing or empty,
or a schema without a store, whose tables are made. In the end all rows are compared, and
FROM is marked: no program opens it any more. Delete it when you are content with TO.

If this is interrupted, do it again; a folder TO is to be removed first. Nothing opens the
part that is there.

A store that was moved is refused: there would be two of the same node, and those who follow
it would lose changes. --again moves it nevertheless: only where the first TO is lost for
good, or where that move was interrupted after FROM was marked.`,
		Example: `  tmshare-server move /var/lib/tmshare postgres://tmshare@db.example.org/tmshare
  tmshare-server move "postgres://tmshare@db.example.org/tmshare?search_path=second" /var/lib/tmshare-new`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(2))),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			f := flags(cmd)
			if f.Placed {
				return cli.UsageError(errors.New("--data and --store: move takes both places as arguments: move FROM TO"))
			}
			ctx, stop := cli.UntilInterrupted(cmd.Context())
			defer stop()
			from, to := place(r, args[0]), database.Target(place(r, args[1]), f.Logger)
			db, name, err := database.OpenAnywhere(ctx, from, store.Options{Access: store.Write, EvenMoved: again, Logger: f.Logger, Damage: func(error) {}})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			d := display.New(r, f.Quiet, f.JSON)
			m, err := backup.Move(ctx, db, name, to, func(p backup.Progress) {
				d.Progress(client.Progress{Source: name, Phase: p.Phase, Done: p.Done, Total: p.Total, Unit: client.Bytes})
			})
			d.Clear()
			if err != nil || f.Quiet {
				return err
			}
			return print(cmd, m, f.JSON)
		},
	}
	c.Flags().BoolVar(&again, "again", false, "also move a store that was moved: only if the first TO is lost for good, or was never complete")
	return c
}

// place is a folder, relative to that of the request, or the address of a database.
func place(r *control.Request, arg string) string {
	if database.IsURL(arg) {
		return arg
	}
	return r.Path(arg)
}

func print(cmd *cobra.Command, m *backup.Moved, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(m)
	}
	flag := "--data " + m.To
	if database.IsURL(m.To) {
		flag = "--store '" + m.To + "'"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "moved from %s to %s, and equal: %d rows and %d files, %.1f MB; start the programs with %s\n",
		m.From, m.To, m.Rows, m.Files, float64(m.Bytes)/1e6, flag)
	return err
}
