// Package files is an extension: those commands of tmshare-client that work on files alone: convert, cxtm, validate,
// stats and diff. They need no data folder.
package files

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/tmdm"
)

// Extension returns it: the commands.
func Extension() extension.Extension {
	return extension.Extension{Name: "files", Commands: func(a *extension.App) []*cobra.Command {
		if a.Serves || a.Held != nil {
			return nil
		}
		c := &commands{a}
		return cli.In(cli.Files, c.convert(), c.cxtm(), c.validate(), c.stats(), c.diff())
	}}
}

type commands struct{ *extension.App }

// aboutFiles is the common part of the help of commands on files.
const aboutFiles = `The ending of a file says whether it is RDF: .ttl, .nt, .rdf, .owl, .trig or .nq, and
so does --from. XTM 1.0, 2.0 and 2.1 are told apart by what is in the file, and so is gzip. "-" is
standard input. Documents that a mergeMap names are opened below the folder of the
file (--root), never fetched from the network.`

// fileFlags are the flags of all commands that read files.
type fileFlags struct {
	base, root, from string
	maxSize          int64
	noMerge          bool
	format           *formats.Format // that from names; nil: by the ending
	checkFormats     formats.Check
}

func (f *fileFlags) add(c *commands, cmd *cobra.Command, use formats.Use) {
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", "", "`format` of the file: "+c.Formats().Readable().String()+
		" (default: by its ending, else XTM)")
	cli.OneOf(cmd.Flags(), "from", c.Formats().Readable().Names()...)
	fl.StringVar(&f.base, "base", "",
		"`URL` that locators in the file are relative to (default: its own file URL; for -, that of the current folder)")
	fl.StringVar(&f.root, "root", "",
		"`folder` below which the files that mergeMap names are opened (default: that of the file)")
	fl.BoolVar(&f.noMerge, "no-merge", false, "leave out the documents that mergeMap names")
	fl.Int64Var(&f.maxSize, "max-size", formats.DefaultMaxSize,
		"read so many `bytes` at most, unpacked and with what is merged in")
	f.checkFormats = c.FormatFlags(fl, use)
	cmd.PreRunE = func(*cobra.Command, []string) error { return c.check(f) }
}

// check returns an error for invalid arguments before any file is read.
func (c *commands) check(f *fileFlags) error {
	if f.maxSize <= 0 {
		return cli.UsageError(fmt.Errorf("--max-size %d: it must be more than 0", f.maxSize))
	}
	if f.from != "" {
		var err error
		if f.format, err = c.Formats().Readable().Named(f.from); err != nil {
			return cli.UsageError(fmt.Errorf("--from: %w", err))
		}
	}
	if _, err := f.checkFormats(nil); err != nil {
		return cli.UsageError(err)
	}
	if f.base != "" {
		if _, err := formats.Base(f.base); err != nil {
			return cli.UsageError(err)
		}
	}
	return nil
}

// source returns how to read a file.
func (c *commands) source(f *fileFlags, path string) (formats.Source, error) {
	s := formats.Source{
		Path: path, Stdin: c.Command.InOrStdin(), Format: f.format, From: true, Root: f.root, MaxSize: f.maxSize,
		Lenient: c.ReadsLeniently(), Formats: c.Formats(),
	}
	if f.noMerge {
		s.Unmerged = func(l tmdm.Locator) { c.Display.Line(fmt.Sprintf("left out: %s, which a mergeMap names", l)) }
	}
	if c.Request.StderrTerminal { // others want no lines of it
		s.Progress = func(read, size int64) {
			c.Display.Progress(client.Progress{Source: path, Phase: "reading", Unit: client.Bytes, Done: read, Total: size})
		}
	}
	if f.base == "" {
		return s, nil
	}
	var err error
	s.Base, err = formats.Base(f.base)
	return s, err
}

// read reads a file.
func (c *commands) read(f *fileFlags, path string) (*formats.Document, error) {
	s, err := c.source(f, path)
	if err != nil {
		return nil, err
	}
	return c.readSource(s)
}

// readSource reads a file, and prints the tolerated errors in it.
func (c *commands) readSource(s formats.Source) (*formats.Document, error) {
	d, err := s.Read(c.Command.Context())
	c.Display.Clear()
	if err != nil {
		return nil, err
	}
	if !c.Quiet {
		formats.WriteWarnings(c.Command.ErrOrStderr(), &d.Tolerated)
	}
	return d, nil
}

// count returns the numbers of topics and of associations in a map, without type-instance associations.
func count(tm *tmdm.TopicMap) (topics, associations int) {
	for range tm.Topics() {
		topics++
	}
	for a := range tm.Associations() {
		if _, _, ok := a.TypeInstance(); !ok {
			associations++
		}
	}
	return topics, associations
}
