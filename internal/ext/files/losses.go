package files

import (
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/xtm"
)

// ReportLosses says what a format could not carry.
func (o Output) ReportLosses(w io.Writer, format *formats.Format, lost xtm.Losses) {
	if lost.Total() > 0 && !o.Quiet {
		fmt.Fprintf(w, "left out, because %s cannot carry it: %s\n", format, describeLosses(lost))
	}
}

func describeLosses(l xtm.Losses) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{l.NameTypes, "types of names"}, {l.Datatypes, "datatypes"}, {l.ItemIdentifiers, "item identifiers"},
		{l.SubjectIdentifiers, "subject identifiers that XTM 1.0 replaces"}, {l.Variants, "variants"}, {l.Associations, "associations without roles"},
		{l.Scopes, "scopes that are no language"}, {l.Reifiers, "topics that reify statements"},
		{l.SubjectLocators, "subject locators"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}
