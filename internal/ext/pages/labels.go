package pages

import (
	"cmp"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/titles"
)

// labelTable has the labels of a concept, those of a language in each row.
type labelTable struct {
	Kinds []link // of the columns: those of which there are any
	Rows  []labelRow
}

type labelRow struct {
	Language string
	Cells    [][]name
}

// kindsOfLabels are the types of names of concepts (SKOS reference, section 5).
var kindsOfLabels = []fragment.Ref{titles.PrefLabel, titles.AltLabel, titles.HiddenLabel}

// byLanguage has labels before other names, and those of the languages of who reads first.
func (d *describer) byLanguage(a, b *name) int {
	if a.label == 0 || b.label == 0 {
		return min(b.label, 1) - min(a.label, 1)
	}
	tagA, tagB := a.Value.Lang, b.Value.Lang
	none := func(tag string) int {
		if tag == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(d.rank(tagA), d.rank(tagB)), cmp.Compare(none(tagA), none(tagB)),
		d.order.text(d.titleOfLanguage(tagA), d.titleOfLanguage(tagB)), cmp.Compare(tagA, tagB))
}

// labels makes a table of the labels among names, which are in order, and returns the other names.
func (d *describer) labels(names []name) (of labelTable, others []name, err error) {
	var kinds []int
	for _, n := range names {
		if n.label > 0 && !slices.Contains(kinds, n.label) {
			kinds = append(kinds, n.label)
		}
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		l, err := d.link(kindsOfLabels[kind-1])
		if err != nil {
			return of, nil, err
		}
		of.Kinds = append(of.Kinds, l)
	}
	last := "-"
	for _, n := range names {
		if n.label == 0 {
			others = append(others, n)
			continue
		}
		if n.Value.Lang != last {
			last = n.Value.Lang
			of.Rows = append(of.Rows, labelRow{cmp.Or(d.titleOfLanguage(last), d.in.Say(texts.NoLanguage)),
				make([][]name, len(kinds))})
		}
		cell := &of.Rows[len(of.Rows)-1].Cells[slices.Index(kinds, n.label)]
		*cell = append(*cell, n)
	}
	return of, others, nil
}
