package clientcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/xtm"
)

// exported is the result of an export as JSON.
type exported struct {
	Out    string          `json:"out"`
	Format *formats.Format `json:"format"`
	Losses xtm.Losses      `json:"losses"`
}

func (a *app) export() *cobra.Command {
	var formatOf func(file []string) (*formats.Format, error)
	var filterOf func() (json.RawMessage, error)
	var format *formats.Format
	var claims bool
	var sources []string
	var filter json.RawMessage
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the merged map of all sources, or of some",
		Long: `Write the merged map of all sources to FILE, or to standard output.

XTM 2.1 and 1.0 are written as the data folder is read, in memory that does not
grow with the map. Other formats need the whole map in memory.

XTM 2.1 loses nothing; XTM 1.0 cannot carry name types and datatypes, and what it
leaves out is counted. The file appears when it is complete.

Without --format, the ending of FILE says the format. A further
ending .gz gzips it.`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if format, err = formatOf(args); err == nil {
				filter, err = filterOf()
			}
			return err
		},
		RunE: a.runReading(func(ctx context.Context, args []string) error {
			file := "-"
			if len(args) > 0 {
				file = a.Request.Path(args[0])
			}
			target := formats.Target{Path: file, Stdout: a.Command.OutOrStdout()}
			losses, err := target.Write(ctx, func(w io.Writer) (xtm.Losses, error) {
				view := a.Merged()
				view.Filter, view.Refuse = filter, true
				losses, err := view.Export(ctx, w, format, claims, sources...)
				return losses, cmp.Or(err, a.DB.Damage(ctx)) // before a file is replaced
			})
			if err != nil {
				return err
			}
			if !a.Quiet {
				formats.ReportLosses(a.Command.ErrOrStderr(), format, losses)
			}
			if !a.JSON || file == "-" { // the map is there
				return nil
			}
			return a.Print(exported{args[0], format, losses})
		}),
	}
	filterOf = a.FilterFlags(cmd.Flags())
	formatOf = FormatFlag(a.Formats(), cmd.Flags())
	cmd.Flags().BoolVar(&claims, "claims", true,
		"in XTM 2.1, give each statement item identifiers that begin with the prefixes of the sources that assert it")
	cmd.Flags().StringArrayVar(&sources, "source", nil, "export this `subscription` only (repeatable)")
	return cmd
}

// FormatFlag adds the flag for the format of an exported map. It returns a function that determines the format from the
// remaining arguments of the command: the file, or none.
func FormatFlag(known formats.Registry, fl *pflag.FlagSet) func(file []string) (*formats.Format, error) {
	var named string
	fl.StringVar(&named, "format", "", "`format`: "+known.All().String()+" (default: by the ending of FILE, else "+
		formats.Default.Name+")")
	cli.OneOf(fl, "format", known.All().Names()...)
	return func(file []string) (f *formats.Format, err error) {
		switch {
		case named != "":
			if f, err = known.All().Named(named); err != nil {
				err = fmt.Errorf("--format: %w", err)
			}
		case len(file) == 0:
			return formats.Default, nil
		default:
			f, err = known.ForExport(file[0])
		}
		if err != nil {
			return nil, cli.UsageError(err)
		}
		return f, nil
	}
}
