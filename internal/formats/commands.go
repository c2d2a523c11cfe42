package formats

import (
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/xtm"
)

// Warning describes the violations of a rule by a document, and the first place: line 0 is the whole document.
type Warning struct {
	Rule   xtm.Rule `json:"rule"`
	Times  int      `json:"times"`
	Line   int      `json:"line"`
	Column int      `json:"column"`
	Text   string   `json:"text"`
}

// Warnings describes the tolerated violations of rules in a document, and its omitted parts.
func Warnings(tolerated *xtm.Tally) (all []Warning) {
	for _, c := range tolerated.Counts() {
		all = append(all, Warning{c.Rule, c.Times, c.First.Line, c.First.Column, c.Warning()})
	}
	return all
}

// Texts returns the texts of warnings without their places, so that equal texts mean the same warnings.
func Texts(warnings []Warning) string {
	var all strings.Builder
	for _, w := range warnings {
		fmt.Fprintf(&all, "%s\n", w.Text)
	}
	return all.String()
}

// SameWarnings returns the short text for n warnings that equal those of the last time.
func SameWarnings(n int) string { return fmt.Sprintf("warnings: %d, the same as last time", n) }

// WriteWarnings writes the same, a line for each rule.
func WriteWarnings(w io.Writer, tolerated *xtm.Tally) {
	for _, c := range tolerated.Counts() {
		fmt.Fprintf(w, "%s:%d:%d: warning: %s\n", c.First.URI, c.First.Line, c.First.Column, c.Warning())
	}
}

// DescribeCounts returns a sentence about the parts of a document that were omitted or changed.
func DescribeCounts(lost []xtm.Count) string {
	var parts []string
	for _, c := range lost {
		parts = append(parts, c.Tolerated())
	}
	return strings.Join(parts, "; ")
}

// ReportLosses prints the losses of a format.
func ReportLosses(w io.Writer, format *Format, lost xtm.Losses) {
	if n := lost.FileSubjects; n > 0 {
		const text = "warning: %d subjects are named for a file (file:///…), which is elsewhere for others: "
		fmt.Fprintf(w, text+"give --base with the URL that the map has for all\n", n)
		lost.FileSubjects = 0
	}
	if lost.Total() > 0 {
		fmt.Fprintf(w, "left out, because %s cannot carry it: %s\n", format, DescribeLosses(lost))
	}
}

// DescribeLosses returns the number of losses of each kind.
func DescribeLosses(l xtm.Losses) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{l.NameTypes, "types of names"}, {l.Datatypes, "datatypes"}, {l.ItemIdentifiers, "item identifiers"},
		{l.SubjectIdentifiers, "subject identifiers that XTM 1.0 replaces"}, {l.Variants, "variants"},
		{l.Associations, "associations without roles"},
		{l.Scopes, "scopes that are no language"}, {l.Reifiers, "topics that reify statements"},
		{l.SubjectLocators, "subject locators"}, {l.FileSubjects, "subjects named for a file, which need --base"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}
