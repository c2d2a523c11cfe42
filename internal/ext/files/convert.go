package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/xtm"
)

// converted is the result of a conversion as JSON.
type converted struct {
	In      string          `json:"in"`
	Version xtm.Version     `json:"version"`
	Out     string          `json:"out"`
	Format  *formats.Format `json:"format"`
	*counted
	Statements int        `json:"statements,omitempty"` // where no map was made
	Losses     xtm.Losses `json:"losses"`

	Warnings []formats.Warning `json:"warnings,omitempty"` // of reading
}

// counted are the numbers of topics and associations of a map.
type counted struct {
	Topics       int `json:"topics"`
	Associations int `json:"associations"`
}

// convertOptions are the options of a conversion.
type convertOptions struct {
	format  *formats.Format
	writing formats.WriteOptions
	target  formats.Target
}

func (c *commands) convert() *cobra.Command {
	var f fileFlags
	var to, nameTypes string
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Convert a file to another format",
		Long: `Read the topic map in IN and write it to OUT. --to says in which format, or else the
ending of OUT:

` + c.Formats().Help() + `

The default for OUT "-", standard output, is ` + formats.Default.Name + `. CXTM is the canonical form of ISO 13250-4.
A further ending .gz gzips OUT, which appears when it is complete; if anything goes
wrong, what was there before stays.

` + aboutFiles + `

What is not read of IN, and what a format cannot carry, is counted on standard error. XTM 1.0 has no datatypes,
no item identifiers beside ids, and no types of names: --name-types=ontopia writes
these as Ontopia does, as baseName/instanceOf, which is read as it is meant unless with --strict.
RDF has a vocabulary of tmshare for what it has no place for. --plain leaves that out.

The ids of IN are those of OUT. Other relative locators become absolute ones.

With --fail-on-loss, exit code 5 says that something would be lost.` + cli.Exits(cli.HeldBack, cli.BrokenInput),
		Example: `  tmshare-client convert egov.xtm egov.xtm1
  tmshare-client convert GCL-2-1.xtm gcl.xtm.gz
  tmshare-client convert voc.ttl voc.xtm
  tmshare-client convert --to xtm1.0 --name-types ontopia egov.xtm - | gzip > egov.gz`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: c.Apart(func(_ context.Context, args []string) error { return c.convertFile(&f, args[0], o) }),
	}
	f.add(c, cmd, formats.Use{Reads: true, Writes: true})
	cmd.Flags().StringVar(&to, "to", "", "`format`: "+c.Formats().All().String()+" (default: by the ending of OUT)")
	cli.OneOf(cmd.Flags(), "to", c.Formats().All().Names()...)
	cmd.Flags().StringVar(&nameTypes, "name-types", "omit",
		"what becomes of the types of names in XTM 1.0: `omit` or ontopia")
	cli.OneOf(cmd.Flags(), "name-types", "omit", "ontopia")
	cmd.Flags().BoolVar(&o.target.FailOnLoss, "fail-on-loss", false,
		"write nothing, exit code 5, where not all of IN is read, or the format cannot carry all")
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		if o.format, err = c.formatFor(to, args[1]); err != nil {
			return cli.UsageError(err)
		}
		switch nameTypes {
		case "omit":
		case "ontopia":
			o.writing.NameTypes = xtm.OntopiaNameTypes
		default:
			return cli.UsageError(fmt.Errorf("--name-types %q: use omit or ontopia", nameTypes))
		}
		o.target.Path = args[1]
		return c.check(&f)
	}
	return cmd
}

func (c *commands) formatFor(to, out string) (*formats.Format, error) {
	if to != "" {
		return c.Formats().All().Named(to)
	}
	if format, ok := c.Formats().OfFile(out); ok {
		return format, nil
	}
	if out == "-" {
		return formats.Default, nil
	}
	return nil, fmt.Errorf("%s: its ending does not tell the format: say it with --to", out)
}

func (c *commands) convertFile(f *fileFlags, in string, o convertOptions) error {
	s, err := c.source(f, in)
	if err != nil {
		return err
	}
	s.To = o.format
	d, err := c.readSource(s)
	if err != nil {
		return err
	}
	if d.Copy != nil {
		defer d.Copy.Close()
	}
	if lost := d.Tolerated.Losses(); o.target.FailOnLoss && len(lost) > 0 {
		return &cli.ExitError{Code: cli.HeldBack, Err: fmt.Errorf("%s is not written, because not all of %s is read: %s",
			o.target.Path, d.Name, formats.DescribeCounts(lost))}
	}
	// From here on there may be a temporary file to remove.
	ctx, stop := cli.UntilInterrupted(c.Command.Context())
	defer stop()
	target := o.target
	target.Stdout = c.Command.OutOrStdout()
	lost, err := target.Write(ctx, d.Encoder(o.format, o.writing))
	var loss *formats.LossError
	switch {
	case ctx.Err() != nil:
		return cli.InterruptedError(target.Path + " is as it was")
	case errors.As(err, &loss):
		return &cli.ExitError{Code: cli.HeldBack, Err: fmt.Errorf("%s is not written, because %s cannot carry all of %s: %s",
			target.Path, o.format, d.Name, formats.DescribeLosses(lost))}
	case err != nil:
		return err
	}
	if !c.Quiet {
		formats.ReportLosses(c.Command.ErrOrStderr(), o.format, lost)
	}
	if target.Path == "-" { // the map is there
		return nil
	}
	done := converted{
		In: d.Name, Version: d.Version, Out: target.Path, Format: o.format, Losses: lost,
		Warnings: formats.Warnings(&d.Tolerated),
	}
	const text = "%s (%s) written to %s as %s: "
	if d.Copy != nil {
		done.Statements = d.Copy.Statements()
		return c.Tell(done, text+"%d statements", d.Name, d.Syntax(), target.Path, o.format, done.Statements)
	}
	topics, associations := count(d.Map)
	done.counted = &counted{topics, associations}
	return c.Tell(done, text+"%d topics, %d associations", d.Name, d.Syntax(), target.Path, o.format, topics, associations)
}
