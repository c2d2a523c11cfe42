package clientcmd

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
	"github.com/tmshare/tmshare/internal/clientcmd/display"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/database"
	"github.com/tmshare/tmshare/internal/ext/backup"
)

// FolderCommands returns the commands that look after a data folder as such, whoever it is of:
// backup, restore, move and check, for another program than tmshare-client. data is the folder that they
// work on by default. A process that holds the folder executes backup and check, as it does the
// commands of tmshare-client.
func FolderCommands(program, data string) []*cobra.Command {
	a := &app{request: control.Local(program, os.Args[1:])}
	all := []*cobra.Command{a.backup(), a.restore(), a.moveCommand(), a.check()}
	for _, cmd := range all {
		a.addFolderFlags(cmd.Flags(), data)
		if cmd.Name() == "move" { // its arguments say both places
			for _, name := range []string{"data", "store"} {
				_ = cmd.Flags().MarkHidden(name) // it is there
			}
		}
	}
	return all
}

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
		RunE: a.runReading(func(ctx context.Context, args []string) error {
			path := a.request.Path(args[0])
			if last := args[0][len(args[0])-1]; os.IsPathSeparator(last) { // which joining takes away
				path += string(last)
			}
			if err := a.checkBackupPath(args[0], path); err != nil {
				return err
			}
			if keep > 0 && !backup.IsFolder(path) {
				return cli.UsageError(fmt.Errorf("--keep %d: %s is no folder of backups, so there are no older ones in it; name a folder, with a slash at its end where it is new", keep, args[0]))
			}
			r, err := backup.Make(ctx, a.db, path, a.folderProgress)
			if err != nil {
				return err
			}
			if keep > 0 {
				if _, err := backup.Prune(filepath.Dir(r.Path), keep); err != nil {
					return fmt.Errorf("the backup %s is made, but older ones could not be removed: %w", r.Path, err)
				}
			}
			if a.json {
				return a.print(r)
			}
			for _, lost := range r.Missing {
				a.display.Line(fmt.Sprintf("%s is lost and not in the backup: \"check --repair\" has it taken anew", lost))
			}
			a.printf("%s: %d rows and %d files of snapshots as of %s, %s; %s written\n",
				r.Path, r.Rows, r.Files, feeds.FormatTime(r.Taken), megabytes(r.Bytes), megabytes(r.Written))
			return nil
		}),
	}
	cmd.Flags().IntVar(&keep, "keep", 0, "in DIR, keep this `number` of the newest backups and remove the others; 0: keep all")
	cli.CommandLineOnly(cmd.Flags())
	return cmd
}

// checkBackupPath refuses a path for a backup that cannot be meant. given is what was typed.
func (a *app) checkBackupPath(given, path string) error {
	clean := filepath.Clean(path)
	_, err := os.Stat(filepath.Dir(clean))
	if folder := os.IsPathSeparator(path[len(path)-1]); errors.Is(err, fs.ErrNotExist) && !folder {
		return fmt.Errorf("the folder %s, into which the backup is to go, is missing: make it, or name another path", filepath.Dir(filepath.Clean(given)))
	}
	data, err := os.Stat(a.db.Dir())
	if err != nil {
		return err
	}
	for above := clean; ; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err == nil && os.SameFile(info, data) {
			return fmt.Errorf("%s is inside of the data folder: a backup there would be lost with it; name a path outside", given)
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

func (a *app) restore() *cobra.Command {
	return &cobra.Command{
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
		RunE: func(cmd *cobra.Command, args []string) error {
			a.command = cmd
			if a.data == "" && !a.store.Given() {
				return cli.ErrNoData
			}
			ctx, stop := cli.UntilInterrupted(cmd.Context())
			defer stop()
			a.display = display.New(a.request, a.quiet, a.json)
			defer a.display.Clear()
			place, flag := a.request.Path(a.data), "--data "+a.data
			if a.store.Given() {
				a.data = a.store.String()
				place, flag = a.store.URL, "--store '"+a.data+"'"
			}
			to := database.Target(place, a.logger())
			r, err := backup.RestoreInto(ctx, a.request.Path(args[0]), to, a.folderProgress)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(r)
			}
			a.printf("%s: restored as of %s, %d rows and %d files of snapshots; start the program with %s\n",
				r.Path, feeds.FormatTime(r.Taken), r.Rows, r.Files, flag)
			return nil
		},
	}
}

// folderProgress shows how far a backup, a restore or a check has come.
func (a *app) folderProgress(p backup.Progress) {
	a.display.Progress(client.Progress{Source: a.data, Phase: p.Phase, Done: p.Done, Total: p.Total, Unit: client.Bytes})
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
