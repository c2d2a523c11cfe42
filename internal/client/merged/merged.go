// Package merged shows the merged view of all sources, with the sources of each statement.
package merged

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// View is the merged view of the sources of a store.
type View struct {
	Store  *store.DB
	Report func(line string) // receives reports about omitted parts
	Pass   Pass              // nil: there are no filters
	Filter json.RawMessage   // selects the content; nil: all
	Refuse bool              // an empty result of a filter is an error
}

// Pass returns the part of merged sources that a filter, which is in JSON, passes. It reports names of the filter
// without a meaning in them, and an iteration that passes no topic. An error of the report ends it.
type Pass func(ctx context.Context, filter json.RawMessage, report func(line string, nothing bool) error,
	parts ...merge.Part) (fragment.Source, error)

// Reporting returns a report for [Pass] that passes lines on. With refuse, an empty result is an error. It drops a line
// equal to the last one, because each iteration would repeat it.
func Reporting(report func(line string), refuse bool) func(line string, nothing bool) error {
	last := ""
	return func(line string, nothing bool) error {
		if nothing && refuse {
			return errors.New(line)
		}
		if line != last {
			report(line)
		}
		last = line
		return nil
	}
}

// Check returns an error if a filter would pass nothing of a source that was loaded.
func (v View) Check(ctx context.Context, source string, filter json.RawMessage) error {
	return v.Store.ReadParts(ctx, func(all []store.Part) error {
		for _, p := range all {
			if p.Name != source {
				continue
			}
			passing, err := v.passing(ctx, filter, Reporting(v.Report, true), partOf(p))
			if err != nil {
				return err
			}
			for _, err := range passing.Topics() {
				return err // one is enough
			}
		}
		return nil
	})
}

// passing returns the part of sources that a filter passes.
func (v View) passing(ctx context.Context, filter json.RawMessage, report func(line string, nothing bool) error,
	parts ...merge.Part) (fragment.Source, error) {
	if v.Pass == nil {
		return nil, fmt.Errorf("%s: its filter needs an extension that this program does not have: use one that has it, "+
			"or show the whole (source set %[1]s --whole)", parts[0].Name)
	}
	return v.Pass(ctx, filter, report, parts...)
}

// Parts calls f with the parts of the merged view, all or those named, and with the sources that they are.
func (v View) Parts(ctx context.Context, claims bool, sources []string,
	f func([]merge.Part, []store.Part) error) error {
	if err := v.loaded(ctx, sources); err != nil {
		return err
	}
	return v.Store.ReadParts(ctx, func(all []store.Part) error {
		all = slices.DeleteFunc(all, func(p store.Part) bool { return len(sources) > 0 && !slices.Contains(sources, p.Name) })
		parts, err := v.partsOf(ctx, all, claims)
		if v.Filter != nil && err == nil {
			one := merge.Part{Published: true}
			one.Source, err = v.passing(ctx, v.Filter, Reporting(v.Report, v.Refuse), parts...)
			parts = []merge.Part{one}
		}
		if err != nil {
			return err
		}
		return f(parts, all)
	})
}

// Languages returns the languages of a reader, the best first, then those of the titles in the parts, in their order.
// Local statements have none, because they comment on other sources.
func Languages(reader titles.Languages, parts []store.Part) titles.Languages {
	all := slices.Clone(reader)
	for i := range parts {
		if parts[i].Name != local.Name {
			all = append(all, parts[i].Called...)
		}
	}
	return slices.Compact(all)
}

// partOf returns what a part of the store has to merge.
func partOf(p store.Part) merge.Part {
	return merge.Part{Name: p.Name, SP: p.SP, Source: p.Source, Published: p.Own}
}

// partsOf returns parts of the merged view, reduced by their filters. A report names the source of its filter. With
// Refuse, it is an error that filters pass nothing of any part.
func (v View) partsOf(ctx context.Context, all []store.Part, claims bool) (parts []merge.Part, err error) {
	var empty []string
	for _, p := range all {
		part := partOf(p)
		if p.Filter != nil && err == nil {
			report := Reporting(v.Report, false)
			part.Source, err = v.passing(ctx, p.Filter, func(line string, nothing bool) error {
				if line = p.Name + ": " + line; nothing {
					empty = append(empty, line)
				}
				return report(line, nothing)
			}, part)
		}
		part.Claims = claims
		parts = append(parts, part)
	}
	filtered := func(p store.Part) bool { return p.Filter != nil }
	if err != nil || !v.Refuse || !slices.ContainsFunc(all, filtered) {
		return parts, err
	}
	for _, part := range parts {
		for _, err := range part.Source.Topics() {
			return parts, err // one is enough
		}
	}
	if len(empty) > 0 {
		err = errors.New(empty[len(empty)-1])
	}
	return parts, err
}

// Unmatched returns the names without a meaning in the filters of sources, as lines, by source.
func (v View) Unmatched(ctx context.Context) (map[string]string, error) {
	lines := map[string]string{}
	return lines, v.Store.ReadParts(ctx, func(all []store.Part) (err error) {
		for _, p := range all {
			if p.Filter == nil || v.Pass == nil || err != nil {
				continue
			}
			_, err = v.passing(ctx, p.Filter, func(line string, _ bool) error {
				lines[p.Name] = strings.TrimPrefix(lines[p.Name]+"; "+line, "; ")
				return nil
			}, partOf(p))
		}
		return err
	})
}

// Call gives the entries of activities the titles that the merged view has in the languages of the reader, the best
// first, or of the sources. Those of other topics stay.
func (v View) Call(ctx context.Context, list []store.Activity, languages ...string) error {
	return v.Store.ReadParts(ctx, func(all []store.Part) error {
		parts, err := v.partsOf(ctx, all, false)
		if err != nil {
			return err
		}
		view := merge.NewView(ctx, parts...)
		names := fragment.Names{In: view, Languages: Languages(languages, all)}
		for _, act := range list {
			if act.Kind == sources.ActivityRejected || act.Kind == sources.ActivityUnrejected { // their titles are claims
				continue
			}
			for i := range act.Entries {
				t, err := view.Topic(fragment.Ref(act.Entries[i].TopicSI))
				if err != nil {
					return err
				}
				if t == nil {
					continue
				}
				title, language, named, err := names.Best(t)
				if err != nil {
					return err
				}
				if named && language != "" {
					act.Entries[i].Title = title
				}
			}
		}
		return nil
	})
}

// Map returns the merged view of the named sources, or of all if none is named, and the number of conflicting
// reifications.
func (v View) Map(ctx context.Context, claims bool, sources ...string) (*tmdm.TopicMap, int, error) {
	var tm *tmdm.TopicMap
	conflicts := 0
	err := v.Parts(ctx, claims, sources, func(parts []merge.Part, _ []store.Part) error {
		joined, conflicting, err := merge.Join(ctx, parts...)
		tm, conflicts = joined, len(conflicting)
		return err
	})
	return tm, conflicts, err
}

// loaded checks that there are sources to merge, and that all named ones exist.
func (v View) loaded(ctx context.Context, sources []string) error {
	all, err := v.Store.Subscriptions(ctx)
	if err != nil {
		return err
	}
	own, err := v.Store.Collections(ctx)
	if err != nil {
		return err
	}
	known := []string{}
	for i := range all {
		known = append(known, all[i].Name)
	}
	for i := range own {
		known = append(known, own[i].Name)
	}
	missing := []string{}
	for i := range all {
		if all[i].State == nil && (len(sources) == 0 || slices.Contains(sources, all[i].Name)) {
			missing = append(missing, all[i].Name)
		}
	}
	for _, name := range sources {
		if !slices.Contains(known, name) {
			return &client.UnknownError{Name: name, Known: known}
		}
	}
	switch {
	case len(known) == 0:
		return errors.New("there are no subscriptions: subscribe to a URL first")
	case len(missing) == len(known), len(missing) > 0 && len(sources) > 0:
		return fmt.Errorf("not loaded yet: %s; sync first", strings.Join(missing, ", "))
	case len(missing) > 0:
		v.Report(fmt.Sprintf("not loaded yet and left out: %s", strings.Join(missing, ", ")))
	}
	return nil
}

// Export writes the merged view of the named sources, or of all, in a format. It returns the losses of the format. If
// the format can write records, memory does not grow with the map. claims gives each statement the item identifiers of
// its sources, in formats that keep them.
func (v View) Export(ctx context.Context, w io.Writer, f *formats.Format, claims bool,
	sources ...string) (losses xtm.Losses, err error) {
	claims = claims && f.Claims
	if f.WriteRecords == nil {
		tm, conflicts, err := v.Map(ctx, claims, sources...)
		if err != nil {
			return losses, err
		}
		v.reportConflicts(conflicts)
		return f.Write(w, tm, formats.WriteOptions{})
	}
	return losses, v.Parts(ctx, claims, sources, func(parts []merge.Part, _ []store.Part) error {
		view := merge.NewView(ctx, parts...)
		conflicts, err := view.Conflicts()
		if err != nil {
			return err
		}
		v.reportConflicts(len(conflicts))
		losses, err = f.WriteRecords(w, view)
		return err
	})
}

func (v View) reportConflicts(n int) {
	if n > 0 {
		v.Report(fmt.Sprintf("topics that reify different statements in several sources: %d; the first by prefix is exported",
			n))
	}
}
