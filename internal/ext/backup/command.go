package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns it: the commands backup, restore and move of both programs.
func Extension() extension.Extension {
	return extension.Extension{
		Name:   "backup",
		Writes: []cli.Format{{Key: "backup", Title: "backups      format", Version: Format}},
		Commands: func(shared *extension.App) []*cobra.Command {
			a := &app{shared}
			all := cli.In(cli.Operations, a.backup())
			if a.Held == nil { // the commands need exclusive use of the store
				all = append(all, cli.In(cli.Operations, a.restore(), a.move())...)
			}
			return all
		},
	}
}

type app struct{ *extension.App }

func (a *app) backup() *cobra.Command {
	var keep int
	cmd := &cobra.Command{
		Use:   "backup FILE|DIR",
		Short: "Make a backup of the data folder, or of a store in a database",
		Long: `Make a backup of the data folder, or of a store in a database (--store): of all
collections with their history, all subscriptions, local statements and snapshots, as
of one moment. Processes that serve it, or watch, go on meanwhile. A backup can be
restored into a folder or into a database, wherever it was made.

DIR is a folder that is there, or a path that ends in a slash. It holds many
backups, each complete by itself, which share what is the same: the next one
writes only what has changed. --keep removes the oldest there. FILE must not be
there.

A backup appears when it is complete. Files with tokens, and what else lies outside
the data folder, are not in it.`,
		Example: `  tmshare-server backup /var/backups/tmshare/
  tmshare-client backup monday.backup`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
		RunE: a.Run(store.Read, func(ctx context.Context, args []string) error {
			path := a.Request.Path(args[0])
			if last := args[0][len(args[0])-1]; os.IsPathSeparator(last) { // which joining takes away
				path += string(last)
			}
			if err := a.checkBackupPath(args[0], path); err != nil {
				return err
			}
			if keep > 0 && !IsFolder(path) {
				return cli.UsageError(
					fmt.Errorf("--keep %d: %s is no folder of backups, so there are no older ones in it; name a folder, with a "+
						"slash at its end where it is new", keep, args[0]))
			}
			r, err := Make(ctx, a.DB, path, a.progress)
			if err != nil {
				return err
			}
			if keep > 0 {
				if _, err := Prune(filepath.Dir(r.Path), keep); err != nil {
					return fmt.Errorf("the backup %s is made, but older ones could not be removed: %w", r.Path, err)
				}
			}
			for _, lost := range r.Missing {
				a.Display.Line(fmt.Sprintf("%s is lost and not in the backup: \"check --repair\" has it taken anew", lost))
			}
			return a.Tell(r, "%s: %d rows and %d files of snapshots as of %s, %s; %s written",
				r.Path, r.Rows, r.Files, feeds.FormatTime(r.Taken), megabytes(r.Bytes), megabytes(r.Written))
		}),
	}
	cmd.Flags().IntVar(&keep, "keep", 0,
		"in DIR, keep this `number` of the newest backups and remove the others; 0: keep all")
	cli.CommandLineOnly(cmd.Flags())
	return a.OnFolder(cmd)
}

// checkBackupPath refuses an implausible path of a backup. given is the argument as typed.
func (a *app) checkBackupPath(given, path string) error {
	clean := filepath.Clean(path)
	_, err := os.Stat(filepath.Dir(clean))
	if folder := os.IsPathSeparator(path[len(path)-1]); errors.Is(err, fs.ErrNotExist) && !folder {
		return fmt.Errorf("the folder %s, into which the backup is to go, is missing: make it, or name another path",
			filepath.Dir(filepath.Clean(given)))
	}
	data, err := os.Stat(a.DB.Dir())
	if err != nil {
		return err
	}
	for above := clean; ; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err == nil && os.SameFile(info, data) {
			return fmt.Errorf("%s is inside of the data folder: a backup there would be lost with it; name a path outside",
				given)
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

func (a *app) restore() *cobra.Command {
	return a.OnFolder(&cobra.Command{
		Use:   "restore FILE|DIR",
		Short: "Make a data folder, or a store in a database, of a backup",
		Long: `Make a data folder, which must be missing or empty, of a backup: of FILE, of the
newest backup in DIR, or of the one whose manifest (DIR/backup-….json) is named. With
--store, a store is made in a database, where there must be none yet, with its tables.
All of the backup is checked before anything is made, and all rows are compared in the
end. If this is interrupted, do it again; a folder is to be removed first. Nothing opens
the part that is there.

Each collection begins a new epoch, since its history may have gone on elsewhere
after the backup: subscribers notice it and replace what they have. Do not run the
old folder and the restored one at the same time.`,
		Example: `  tmshare-server restore /var/backups/tmshare --data /var/lib/tmshare-new
  tmshare-client restore monday.backup --data new
  tmshare-server restore monday.backup --store postgres://tmshare@db.example.org/tmshare`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
		RunE: a.Apart(func(ctx context.Context, args []string) error {
			place, err := a.Place()
			if err != nil {
				return err
			}
			ctx, stop := cli.UntilInterrupted(ctx)
			defer stop()
			a.Data = place
			to := a.target(a.place(place))
			r, err := Restore(ctx, a.Request.Path(args[0]), to, a.progress)
			if err != nil {
				return err
			}
			return a.Tell(r, "%s: restored as of %s, %d rows and %d files of snapshots; start the program with %s",
				r.Path, feeds.FormatTime(r.Taken), r.Rows, r.Files, flag(a.Data))
		}),
	})
}

// progress prints the progress of a backup, a restore or a move.
func (a *app) progress(p Progress) {
	a.Display.Progress(client.Progress{Source: a.Data, Phase: p.Phase, Done: p.Done, Total: p.Total, Unit: client.Bytes})
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func (a *app) move() *cobra.Command {
	var again bool
	cmd := &cobra.Command{
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
		RunE: a.Apart(func(ctx context.Context, args []string) (err error) {
			if fl := a.Command.Flags(); cli.OnCommandLine(fl, "data") || cli.OnCommandLine(fl, "store") {
				return cli.UsageError(errors.New("--data and --store: move takes both places as arguments: move FROM TO"))
			}
			ctx, stop := cli.UntilInterrupted(ctx)
			defer stop()
			from, to := a.place(args[0]), a.target(a.place(args[1]))
			a.Data = from
			db, err := a.OpenAt(ctx, from, store.Options{Access: store.Write, EvenMoved: again, Logger: a.Logger(),
				Damage: func(error) {}})
			if errors.Is(err, store.ErrLocked) {
				err = fmt.Errorf("another program has %s open: stop it, and try again", from)
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			m, err := Move(ctx, db, a.Data, to, a.progress)
			if err != nil {
				return err
			}
			return a.Tell(m, "moved from %s to %s, and equal: %d rows and %d files, %s; start the programs with %s", m.From,
				m.To, m.Rows, m.Files, megabytes(m.Bytes), flag(m.To))
		}),
	}
	cmd.Flags().BoolVar(&again, "again", false,
		"also move a store that was moved: only if the first TO is lost for good, or was never complete")
	a.OnFolder(cmd)
	if a.Serves { // the arguments are both places
		for _, name := range []string{"data", "store"} {
			_ = cmd.Flags().MarkHidden(name) // it is there
		}
	}
	return cmd
}

// place is a folder, relative to that of the request, or the address of an engine.
func (a *app) place(arg string) string {
	if extension.IsAddress(arg) {
		return arg
	}
	return a.Request.Path(arg)
}

// target returns a place where a store is made.
func (a *app) target(place string) Target {
	t := Target{Name: place, Open: func(ctx context.Context, o store.Options) (*store.DB, error) {
		return a.OpenAt(ctx, place, o)
	}, Logger: a.Logger()}
	if !extension.IsAddress(place) {
		t.Dir = place
	}
	return t
}

// flag returns the flag that names a place.
func flag(place string) string {
	if extension.IsAddress(place) {
		return "--store '" + place + "'"
	}
	return "--data " + place
}
