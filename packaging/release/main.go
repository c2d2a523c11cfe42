// Command release builds the published files of a version: archives for each platform, Debian packages, checksums, and
// lists of their contents. The same commit gives the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

// targets are the platforms.
var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
	{"windows", "arm64"},
}

var programs = []string{"tmshare-server", "tmshare-client"}

type target struct{ os, arch string }

func (t target) String() string { return t.os + "-" + t.arch }

// release is one that is being made.
type release struct {
	version string    // as in 0.2.0
	commit  string    // its hash
	time    time.Time // of the commit, and so of all files
	source  string    // folder of the checkout
	out     string    // folder of the results
	scratch string    // folder of intermediate files

	listed []builtWith // the modules of the programs; nil: not listed yet

	unpacked bool // no compression: for tests, which often pack the same files
}

func main() {
	out := flag.String("out", "dist", "`folder` for the results; what is in it is replaced")
	only := flag.String("only", "", "build for one platform, such as linux-amd64")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), `Usage: go run ./packaging/release [-out folder] [-only platform] VERSION

Builds archives for each platform, Debian packages, SHA256SUMS and a bill of
materials (CycloneDX) of VERSION, such as 0.2.0, from the commit that is checked
out. The same commit gives the same bytes. It needs git and dpkg-deb.`)
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), *out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var versionPattern = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

func run(ctx context.Context, args []string, out, only string) error {
	if len(args) != 1 || !versionPattern.MatchString(args[0]) {
		return fmt.Errorf("name one version, such as 0.2.0")
	}
	r := &release{version: args[0], source: "."}
	if err := r.fromCommit(ctx); err != nil {
		return err
	}
	var err error
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	if r.scratch, err = os.MkdirTemp("", "release"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	built := 0
	for _, t := range targets {
		if only != "" && only != t.String() {
			continue
		}
		fmt.Println("building", t)
		if err := r.platform(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		built++
	}
	if built == 0 {
		return fmt.Errorf("-only: there is no platform %s; there are %v", only, targets)
	}
	if err := r.container(); err != nil {
		return err
	}
	if err := r.write("tmshare-"+r.version+".cdx.json", func(w io.Writer) error { return r.bom(ctx, w) }); err != nil {
		return err
	}
	return r.sums()
}
