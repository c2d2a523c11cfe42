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

// Merged returns the merged view of the named subscriptions, or of all where
// none is named, and how many reifications the sources disagree about.
func (c *Client) Merged(claims bool, sources ...string) (*tmdm.TopicMap, int, error) {
	if err := c.loaded(sources); err != nil {
		return nil, 0, err
	}
	var tm *tmdm.TopicMap
	conflicts := 0
	err := c.Store.ReadSources(func(subscriptions []store.Subscription, all []fragment.Source) error {
		var parts []merge.Part
		for i := range subscriptions {
			if len(sources) == 0 || slices.Contains(sources, subscriptions[i].Name) {
				parts = append(parts, merge.Part{SP: subscriptions[i].SP, Source: all[i], Claims: claims})
			}
		}
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
	missing := []string{}
	for i := range all {
		if all[i].State == nil && (len(sources) == 0 || slices.Contains(sources, all[i].Name)) {
			missing = append(missing, all[i].Name)
		}
	}
	for _, name := range sources {
		if !slices.Contains(names(all), name) {
			return &UnknownError{name, names(all)}
		}
	}
	switch {
	case len(all) == 0:
		return errors.New("there are no subscriptions: subscribe to a URL first")
	case len(missing) == len(all), len(missing) > 0 && len(sources) > 0:
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

// Export writes the merged view of the named subscriptions, or of all. It
// returns what XTM 1.0 could not carry.
func (c *Client) Export(w io.Writer, format string, claims bool, sources ...string) (xtm.Losses, error) {
	if err := CheckFormat(format); err != nil {
		return xtm.Losses{}, err
	}
	tm, conflicts, err := c.Merged(claims, sources...)
	if err != nil {
		return xtm.Losses{}, err
	}
	if conflicts > 0 {
		c.Report(fmt.Sprintf("topics that reify different statements in several sources: %d; the first by prefix is exported", conflicts))
	}
	switch format {
	case FormatXTM1:
		return xtm.Write(w, tm, xtm.WriteOptions{Version: xtm.V10})
	case FormatXTM21:
		return xtm.Write(w, tm, xtm.WriteOptions{Version: xtm.V21})
	}
	return xtm.Losses{}, cxtm.Write(w, tm, cxtm.Options{})
}
