package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// fromCommit determines the checked-out commit. Uncommitted changes are refused, because the build could not be
// reproduced.
func (r *release) fromCommit(ctx context.Context) error {
	changed, err := r.output(ctx, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the checkout has changes that are not committed: commit them, or put them away with git stash")
	}
	if r.commit, err = r.output(ctx, "git", "rev-parse", "HEAD"); err != nil {
		return err
	}
	seconds, err := r.output(ctx, "git", "show", "--no-patch", "--format=%ct", "HEAD")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	r.time = time.Unix(n, 0).UTC()
	return err
}

// platform builds the programs for a platform, and all published files for it.
func (r *release) platform(ctx context.Context, t target) error {
	dir, err := r.programs(ctx, t)
	if err != nil {
		return err
	}
	files, err := r.files(ctx, t, dir)
	if err != nil {
		return err
	}
	if err := r.archive(t, files); err != nil {
		return err
	}
	if t.os == "linux" {
		return r.debian(ctx, t, files)
	}
	return nil
}

// programs builds the programs for a platform, unless that has been done, and returns the folder that has them.
func (r *release) programs(ctx context.Context, t target) (dir string, err error) {
	dir = filepath.Join(r.scratch, t.String())
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(dir, t.program(program))); err == nil {
			continue
		}
		if err := r.build(ctx, t, program, dir); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// build builds a program. Paths of this machine, and the time, are not in it.
func (r *release) build(ctx context.Context, t target, program, dir string) error {
	flags := "-s -w -buildid= -X github.com/tmshare/tmshare/internal/cli.version=" + r.version
	c := r.command(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", flags, "-o",
		filepath.Join(dir, t.program(program)), "./cmd/"+program)
	c.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	return ran(c)
}

// program returns the name of the file of a program.
func (t target) program(name string) string {
	if t.os == "windows" {
		return name + ".exe"
	}
	return name
}

// file is one of an archive.
type file struct {
	name string // in the archive, with slashes
	from string // where it is
	mode int64
}

// files returns the programs, their manual pages and completions, and their documents.
func (r *release) files(ctx context.Context, t target, dir string) (all []file, err error) {
	for _, program := range programs {
		all = append(all, file{t.program(program), filepath.Join(dir, t.program(program)), 0o755})
	}
	manual, err := r.manual(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, manual...)
	explained, err := r.documents(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, explained...)
	notices, err := r.notices(ctx)
	if err != nil {
		return nil, err
	}
	return append(all, file{"THIRD-PARTY-NOTICES", notices, 0o644}), nil
}

// documents returns the documents, and the maps that they work with. The commands that they show can be run where an
// archive is unpacked.
func (r *release) documents(ctx context.Context) (all []file, err error) {
	listed, err := r.output(ctx, "git", "ls-files", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
		"SECURITY.md", "docs", "testdata/digest",
		"testdata/skos/habitats.ttl", "testdata/xtm/egov.xtm", "testdata/xtm/libraries.xtm")
	if err != nil {
		return nil, err
	}
	for name := range strings.Lines(listed) {
		name = strings.TrimSpace(name)
		all = append(all, file{name, filepath.Join(r.source, filepath.FromSlash(name)), 0o644})
	}
	return all, nil
}

// manual has the programs of this machine write their pages of the manual and their completions, once.
func (r *release) manual(ctx context.Context) (all []file, err error) {
	dir := filepath.Join(r.scratch, "manual")
	if _, err := os.Stat(dir); err != nil {
		if err := r.writeManual(ctx, dir); err != nil {
			return nil, err
		}
	}
	for _, kind := range []string{"man", "completions"} {
		names, err := os.ReadDir(filepath.Join(dir, kind))
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			all = append(all, file{kind + "/" + n.Name(), filepath.Join(dir, kind, n.Name()), 0o644})
		}
	}
	return all, nil
}

func (r *release) writeManual(ctx context.Context, dir string) error {
	here := target{runtime.GOOS, runtime.GOARCH}
	bin, err := r.programs(ctx, here)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "completions"), 0o755); err != nil {
		return err
	}
	for _, program := range programs {
		path := filepath.Join(bin, here.program(program))
		c := r.command(ctx, path, "man", filepath.Join(dir, "man"))
		// Defaults below the home folder are those of every user, not of the builder.
		c.Env = append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", r.time.Unix()), "HOME=~", "XDG_STATE_HOME=")
		if err := ran(c); err != nil {
			return err
		}
		for _, shell := range []string{"bash", "zsh", "fish"} {
			text, err := r.output(ctx, path, "completion", shell)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "completions", program+"."+shell), []byte(text+"\n"), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = r.source
	return c
}

// ran executes a command. Its error contains the output of the command.
func ran(c *exec.Cmd) error {
	if printed, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, printed)
	}
	return nil
}

// output returns the output of a command, without the end of the last line.
func (r *release) output(ctx context.Context, name string, args ...string) (string, error) {
	c := r.command(ctx, name, args...)
	var errors strings.Builder
	c.Stderr = &errors
	printed, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", c, err, errors.String())
	}
	return strings.TrimRight(string(printed), "\n"), nil
}
