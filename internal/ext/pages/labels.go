package pages

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	xl "github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
)

// labelTable has the labels of a concept, those of a language in each row.
type labelTable struct {
	Kinds []link // of the columns that have labels
	Rows  []labelRow
}

type labelRow struct {
	Language string
	Cells    [][]name
}

// kindsOfLabels are the types of names of concepts (SKOS reference, section 5).
var kindsOfLabels = []fragment.Ref{titles.PrefLabel, titles.AltLabel, titles.HiddenLabel}

// byLanguage sorts labels before other names, and names in the reader's languages first.
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
func (d *describer) labels(names []name) (table labelTable, others []name) {
	types := map[int]link{}
	for _, n := range names {
		if n.label > 0 {
			types[n.label] = *n.Type
		}
	}
	kinds := slices.Sorted(maps.Keys(types))
	for _, kind := range kinds {
		table.Kinds = append(table.Kinds, types[kind])
	}
	last := "-"
	for _, n := range names {
		if n.label == 0 {
			others = append(others, n)
			continue
		}
		if n.Value.Lang != last {
			last = n.Value.Lang
			table.Rows = append(table.Rows, labelRow{cmp.Or(d.titleOfLanguage(last), d.in.Say(texts.NoLanguage)),
				make([][]name, len(kinds))})
		}
		cell := &table.Rows[len(table.Rows)-1].Cells[slices.Index(kinds, n.label)]
		*cell = append(*cell, n)
	}
	return table, others
}

// resources returns the labels of a topic that are resources (SKOS-XL) and differ from its names. It removes the others
// from the topic's associations.
func (d *describer) resources(self fragment.Ref, names []name) (all []name, err error) {
	if has, err := d.names.HaveLabels(); !has || err != nil || d.past != nil {
		return nil, err
	}
	d.labelled = map[fragment.Ref]bool{}
	for a, err := range d.v.State().AssociationsOfTypes(self, mostOfOne, xl.LabelProperties...) {
		if err != nil {
			return nil, err
		}
		typ, err := d.link(a.Type)
		if err != nil {
			return nil, err
		}
		for _, r := range a.Roles {
			if r.Type != fragment.RDFObject || r.Player == self {
				continue
			}
			t, err := d.v.Source().Topic(r.Player)
			if t == nil || err != nil {
				return nil, err
			}
			for _, o := range t.Occurrences {
				if o.Type != titles.LiteralForm {
					continue
				}
				n := name{Value: valueOf(o.Value, o.Scope), By: d.by[associationKey(a)], Type: &typ,
					label: slices.Index(xl.LabelProperties, a.Type) + 1}
				d.labelled[r.Player] = words.IsOpaque(string(r.Player)) && len(t.Occurrences)+len(t.Names) == 1
				if !slices.ContainsFunc(names, func(o name) bool { return o.Value == n.Value && o.label == n.label }) {
					all = append(all, n)
				}
			}
		}
	}
	return all, nil
}
