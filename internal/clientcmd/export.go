package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/xtm"
)

func (a *app) export() *cobra.Command {
	var format string
	var claims bool
	var sources []string
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the merged map of all sources, or of some",
		Long: `Write the merged map of all sources to FILE, or to standard output.

XTM is written as it is read from the data folder, in memory that does not grow
with the map; the canonical form needs all of it in memory.

XTM 2.1 loses nothing; XTM 1.0 cannot carry name types and datatypes, and what it
leaves out is counted. The file appears when it is complete.`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if format == "" {
				format = client.FormatXTM21
				if len(args) > 0 && strings.HasSuffix(args[0], ".cxtm") {
					format = client.FormatCXTM
				}
			}
			if err := client.CheckFormat(format); err != nil {
				return &cli.ExitError{Code: cli.Usage, Err: err}
			}
			return nil
		},
		RunE: a.run(func(_ context.Context, args []string) error {
			file := "-"
			if len(args) > 0 {
				file = a.request.Path(args[0])
			}
			losses, err := toFile(file, a.command.OutOrStdout(), func(w io.Writer) (xtm.Losses, error) {
				return a.client.Export(w, format, claims && format == client.FormatXTM21, sources...)
			})
			if err == nil && losses.Total() > 0 && !a.quiet {
				fmt.Fprintf(a.command.ErrOrStderr(), "left out, because %s cannot carry it: %s\n", format, describeLosses(losses))
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&format, "format", "", "`format`: xtm2.1, xtm1 or cxtm (default: by the file's ending, else xtm2.1)")
	cmd.Flags().BoolVar(&claims, "claims", true, "in XTM 2.1, give each statement item identifiers that begin with the prefixes of the sources that assert it")
	cmd.Flags().StringArrayVar(&sources, "source", nil, "export this `subscription` only (repeatable)")
	return cmd
}

func describeLosses(l xtm.Losses) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{l.NameTypes, "types of names"}, {l.Datatypes, "datatypes"}, {l.ItemIdentifiers, "item identifiers"},
		{l.SubjectIdentifiers, "subject identifiers that XTM 1.0 replaces"}, {l.Variants, "variants without a scope of their own"}, {l.Associations, "associations without roles"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// toFile writes a file under a temporary name and renames it when it is
// complete. What is no regular file ("-" is standard output) is written to as
// it is.
func toFile(path string, stdout io.Writer, write func(io.Writer) (xtm.Losses, error)) (losses xtm.Losses, err error) {
	if path == "-" {
		return write(stdout)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return losses, err
		}
		losses, err = write(f)
		return losses, errors.Join(err, f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return losses, err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if losses, err = write(f); err != nil {
		return losses, err
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return losses, err
	}
	return losses, os.Rename(f.Name(), path)
}
