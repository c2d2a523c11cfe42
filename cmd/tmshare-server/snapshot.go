package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
)

func snapshotCommand() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "snapshot NAME",
		Short: "Have a running server take a snapshot now",
		Long: `Have a running server take a snapshot of the collection NAME now, and print its
address. If nothing has changed since the newest snapshot, it is that one.`,
		Args: cli.Args(cli.NotEmpty(cobra.ExactArgs(1))),
	}
	return r.command(cmd, func(ctx context.Context, args []string) error {
		snap, taken, err := r.server.TakeSnapshot(ctx, args[0])
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s: %d topics, as of %s", snap.Snapshot, snap.Topics, snap.Updated)
		if !taken {
			text += " (nothing has changed since)"
		}
		return r.print(snap, text)
	})
}

func gcCommand() *cobra.Command {
	var r remote
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "gc [NAME]...",
		Short: "Have a running server give up the history that need not be kept",
		Long: `Have a running server give up now the history of the collections NAME, or of all,
that its settings (--keep-entries, --keep-for) need not keep. It does so every
hour by itself. Only whole archive documents are given up, and nothing later than
the newest snapshot. --dry-run counts what would go.`,
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "give up nothing; print how much would go")
	return r.command(cmd, func(ctx context.Context, names []string) error {
		if len(names) == 0 {
			all, err := r.server.Collections(ctx)
			if err != nil {
				return err
			}
			for i := range all {
				names = append(names, all[i].Name)
			}
		}
		for _, name := range names {
			p, err := r.server.Prune(ctx, name, dryRun)
			if err != nil {
				return err
			}
			text := fmt.Sprintf("%s: %d entries given up", p.Collection, p.Entries)
			if dryRun {
				text = fmt.Sprintf("%s: dry run, nothing is given up. Would be: %d entries", p.Collection, p.Entries)
			}
			if err := r.print(p, text); err != nil {
				return err
			}
		}
		return nil
	})
}
