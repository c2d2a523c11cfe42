package client

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// Formats in which a map can be exported.
const (
	FormatXTM1  = "xtm1"
	FormatXTM21 = "xtm2.1"
	FormatCXTM  = "cxtm"
)

// parts calls f with the parts of the merged view: all, or those named.
func (c *Client) parts(claims bool, sources []string, f func([]merge.Part) error) error {
	if err := c.loaded(sources); err != nil {
		return err
	}
	return c.Store.ReadParts(LocalName, func(all []store.Part) error {
		var parts []merge.Part
		for _, p := range all {
			if len(sources) == 0 || slices.Contains(sources, p.Name) {
				parts = append(parts, merge.Part{Name: p.Name, SP: p.SP, Source: p.Source, Claims: claims, Published: p.Local})
			}
		}
		return f(parts)
	})
}

// Merged returns the merged view of the named sources, or of all where none is
// named, and how many reifications they disagree about.
func (c *Client) Merged(claims bool, sources ...string) (*tmdm.TopicMap, int, error) {
	var tm *tmdm.TopicMap
	conflicts := 0
	err := c.parts(claims, sources, func(parts []merge.Part) error {
		joined, conflicting, err := merge.Join(parts...)
		tm, conflicts = joined, len(conflicting)
		return err
	})
	return tm, conflicts, err
}

// loaded checks that there is something to merge, and that all is there that was
// named.
func (c *Client) loaded(sources []string) error {
	all, err := c.Store.Subscriptions()
	if err != nil {
		return err
	}
	local, _, err := c.localPrefix()
	if err != nil {
		return err
	}
	known := names(all)
	if local != "" {
		known = append(known, LocalName)
	}
	missing := []string{}
	for i := range all {
		if all[i].State == nil && (len(sources) == 0 || slices.Contains(sources, all[i].Name)) {
			missing = append(missing, all[i].Name)
		}
	}
	for _, name := range sources {
		if !slices.Contains(known, name) {
			return &UnknownError{name, known}
		}
	}
	switch {
	case len(known) == 0:
		return errors.New("there are no subscriptions: subscribe to a URL first")
	case len(missing) == len(known), len(missing) > 0 && len(sources) > 0:
		return fmt.Errorf("not loaded yet: %s; sync first", strings.Join(missing, ", "))
	case len(missing) > 0:
		c.Report(fmt.Sprintf("not loaded yet and left out: %s", strings.Join(missing, ", ")))
	}
	return nil
}

// CheckFormat checks the name of a format.
func CheckFormat(format string) error {
	switch format {
	case FormatXTM1, FormatXTM21, FormatCXTM:
		return nil
	}
	return fmt.Errorf("unknown format %q: use %s, %s or %s", format, FormatXTM21, FormatXTM1, FormatCXTM)
}

// Export writes the merged view of the named sources, or of all. It returns what
// XTM 1.0 could not carry. XTM is written as it is read, in memory that does not
// grow with the map; the canonical form needs the whole map in memory.
func (c *Client) Export(w io.Writer, format string, claims bool, sources ...string) (losses xtm.Losses, err error) {
	if err := CheckFormat(format); err != nil {
		return losses, err
	}
	if format == FormatCXTM {
		tm, conflicts, err := c.Merged(claims, sources...)
		if err != nil {
			return losses, err
		}
		c.reportConflicts(conflicts)
		return losses, cxtm.Write(w, tm, cxtm.Options{})
	}
	form := fragment.Form{Version: xtm.V21}
	if format == FormatXTM1 {
		form.Version = xtm.V10
	}
	return losses, c.parts(claims, sources, func(parts []merge.Part) error {
		view := merge.NewView(parts...)
		conflicts, err := view.Conflicts()
		if err != nil {
			return err
		}
		c.reportConflicts(len(conflicts))
		losses, err = fragment.WriteMap(w, view, form)
		return err
	})
}

func (c *Client) reportConflicts(n int) {
	if n > 0 {
		c.Report(fmt.Sprintf("topics that reify different statements in several sources: %d; the first by prefix is exported", n))
	}
}
