package clientcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
)

// checked is the outcome of a check, for programs.
type checked struct {
	Data     string          `json:"data"`
	Sound    bool            `json:"sound"` // nothing is wrong, or all is repaired
	Findings []store.Finding `json:"findings"`
}

func (a *app) check() *cobra.Command {
	var repair bool
	check := func(ctx context.Context, _ []string) error {
		c := checked{Data: a.Data, Findings: []store.Finding{}}
		report := func(f store.Finding) {
			c.Findings = append(c.Findings, f)
			if !a.JSON {
				a.Printf("%s: %s\n  to do: %s\n", f.Where, f.What, f.Remedy)
			}
		}
		if repair {
			a.Became = "what is repaired stays"
		}
		progress := func(what string) {
			a.Display.Progress(client.Progress{Source: a.Data, Phase: "checking " + what, Unit: client.Bytes})
		}
		err := a.DB.Check(ctx, repair, report, progress)
		for _, e := range a.Extensions {
			if err == nil && e.Check != nil {
				err = e.Check(ctx, a.DB, repair, report, progress)
			}
		}
		if err != nil {
			return err
		}
		return a.tellChecked(&c)
	}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the data folder",
		Long: `Check the data folder: all checksums, and whatever must hold between its parts. The
logs of changes have no gaps, fragments are those of their entries, indexes agree
with the records. Files of snapshots and of ResourceSync are there and whole. Each finding
is printed with what is to be done. It need not be stopped: a process that serves it, or watches,
goes on meanwhile.

--repair makes again what follows from the rest: indexes, lost snapshots, leftovers. It
removes damaged files of ResourceSync, which are made again when somebody asks for them.
Make a copy of the folder before.

With exit code 0 it is sound, or all was repaired; 4: damaged, but --repair mends it; 1: damaged,
so that a backup is needed.` + cli.Exits(cli.Differs),
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			access := store.Read
			if repair {
				access = store.Write
			}
			err := a.runWith(access, check)(cmd, args)
			if errors.Is(err, store.ErrDamaged) && a.JSON { // for programs it is a finding
				return errors.Join(
					a.Print(checked{Data: a.Data,
						Findings: []store.Finding{{Where: "files", What: err.Error(), Remedy: "restore the data folder from a backup"}}}),
					cli.Exit(cli.Failed))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "make again what follows from the rest")
	cli.CommandLineOnly(cmd.Flags())
	return cmd
}

// tellChecked prints the result of a check.
func (a *app) tellChecked(c *checked) error {
	repaired, repairable := 0, 0
	for _, f := range c.Findings {
		switch {
		case f.Repaired:
			repaired++
		case f.Repairable:
			repairable++
		}
	}
	lost := len(c.Findings) - repaired - repairable
	c.Sound = lost+repairable == 0
	if a.JSON {
		if err := a.Print(c); err != nil {
			return err
		}
	}
	switch {
	case c.Sound && !a.JSON && repaired > 0:
		a.Printf("%s is sound; repaired: %d\n", a.Data, repaired)
	case c.Sound && !a.JSON:
		a.Printf("%s is sound\n", a.Data)
	case lost > 0:
		return fmt.Errorf(
			"%s is damaged; findings: %d, of which \"check --repair\" does not mend %d: do what each of them says", a.Data,
			len(c.Findings), lost)
	case repairable > 0:
		return &cli.ExitError{Code: cli.Differs, Err: fmt.Errorf("%s is damaged; \"check --repair\" mends all findings: %d",
			a.Data, repairable)}
	}
	return nil
}
