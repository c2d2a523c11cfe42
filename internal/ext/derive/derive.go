// Package derive is an extension with filters, which pass a part of the statements of sources. Derived collections use
// them.
package derive

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// Extension returns it.
func Extension() extension.Extension {
	return extension.Extension{Name: "derive", Filter: pass,
		FilterFlags: func(fl *pflag.FlagSet) func() (json.RawMessage, error) {
			asked := Flags(fl)
			return func() (json.RawMessage, error) {
				f, err := asked()
				if f == nil || err != nil {
					return nil, err
				}
				return json.Marshal(f)
			}
		}}
}

func pass(ctx context.Context, filter json.RawMessage, report func(line string, nothing bool) error,
	parts ...merge.Part) (fragment.Source, error) {
	var f store.Filter
	if err := json.Unmarshal(filter, &f); err != nil {
		return nil, fmt.Errorf("a filter that this program does not know: %w", err)
	}
	return derive.Pass(ctx, &f, report, parts...)
}

// usages are those of the flags for the lists of filters.
var usages = map[string]string{
	"type":             "only instances of these `topics`",
	"within":           "only these concepts, with all below them, and the concepts of these schemes (`topics`)",
	"association-type": "only associations of these types (`topics`); the types of topics are always there",
	"scope":            "only statements in the unconstrained scope or with one of these themes (`topics`)",
}

// Flags adds the flags for a part of a map. The function returns the filter; nil if no flag is set.
func Flags(to *pflag.FlagSet) func() (*store.Filter, error) {
	var f store.Filter
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	given := map[string]*[]string{}
	for _, l := range f.Lists() {
		given[l.Flag] = fl.StringSlice(l.Flag, nil, usages[l.Flag])
	}
	languages := fl.StringSlice("language", nil,
		"only statements in the unconstrained scope or in these languages: `tags` such as de,fr, each for itself")
	fl.BoolVar(&f.ScopedNames, "scoped-names", false, "no names in the unconstrained scope")
	cli.CommandLineOnly(fl)
	to.AddFlagSet(fl)
	return func() (*store.Filter, error) {
		for _, l := range f.Lists() {
			all := *given[l.Flag]
			if to.Changed(l.Flag) && (len(all) == 0 || slices.Contains(all, "")) {
				return nil, cli.UsageError(
					fmt.Errorf("--%s names nothing: give subject identifiers, or leave it out for all", l.Flag))
			}
			*l.Refs = nil
			for _, si := range all {
				*l.Refs = append(*l.Refs, fragment.Ref(si))
			}
		}
		f.Languages = slices.Clone(*languages)
		if err := f.Normalize(); err != nil {
			return nil, cli.UsageError(err)
		}
		if f.Empty() {
			return nil, nil
		}
		return &f, nil
	}
}
