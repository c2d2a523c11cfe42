package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// notices writes the licences of the programs' modules into a file, once, and returns its path. A module without a
// licence is an error, because it must not be distributed.
func (r *release) notices(ctx context.Context) (path string, err error) {
	path = filepath.Join(r.scratch, "THIRD-PARTY-NOTICES")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	modules, err := r.modules(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("TMShare is built with the modules below. Each is under its own licence.\n")
	for _, m := range modules {
		found, err := licences(m.dir)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", fmt.Errorf("%s %s has no licence in %s: it cannot be passed on", m.path, m.version, m.dir)
		}
		for _, f := range found {
			content, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&text, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("-", 80), m.path, m.version, filepath.Base(f),
				strings.TrimSpace(string(content)))
		}
	}
	return path, os.WriteFile(path, []byte(text.String()), 0o644)
}

// builtWith is a module that is in the programs, and the folder of its source.
type builtWith struct{ path, version, dir string }

// modules returns the modules that are in the programs, in the order of their paths. They are listed once.
func (r *release) modules(ctx context.Context) (all []builtWith, err error) {
	if r.listed != nil {
		return r.listed, nil
	}
	var lines []string
	for _, system := range []string{"linux", "darwin", "windows"} { // some modules are for one of them
		listed, err := r.output(ctx, "env", "GOOS="+system, "go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", "./cmd/...")
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.Split(listed, "\n")...)
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		if part := strings.SplitN(line, " ", 3); len(part) == 3 { // else a package of the standard library, or our own
			all = append(all, builtWith{part[0], part[1], part[2]})
		}
	}
	r.listed = all
	return all, nil
}

// licences returns the licence files of a module.
func licences(dir string) (all []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, errors.Join(err, errors.New(`run "go mod download" first`))
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		for _, begin := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"} {
			if strings.HasPrefix(name, begin) && !e.IsDir() {
				all = append(all, filepath.Join(dir, e.Name()))
				break
			}
		}
	}
	return all, nil
}
