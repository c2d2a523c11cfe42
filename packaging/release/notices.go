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

// notices writes the licences of the modules that are in the programs into a file, once, and returns its path. A module without a licence is an
// error: nobody may pass it on.
func (r *release) notices(ctx context.Context) (path string, err error) {
	path = filepath.Join(r.scratch, "THIRD-PARTY-NOTICES")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	listed, err := r.output(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", "./cmd/...")
	if err != nil {
		return "", err
	}
	modules := strings.Split(listed, "\n")
	slices.Sort(modules)
	var text strings.Builder
	text.WriteString("TMShare is built with the modules below. Each is under its own licence.\n")
	for _, m := range slices.Compact(modules) {
		part := strings.SplitN(m, " ", 3)
		if len(part) < 3 {
			continue // of the standard library
		}
		found, err := licences(part[2])
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", fmt.Errorf("%s %s has no licence in %s: it cannot be passed on", part[0], part[1], part[2])
		}
		for _, f := range found {
			content, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&text, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("-", 80), part[0], part[1], filepath.Base(f), strings.TrimSpace(string(content)))
		}
	}
	return path, os.WriteFile(path, []byte(text.String()), 0o644)
}

// licences returns the files of a module that say what one may do with it.
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
