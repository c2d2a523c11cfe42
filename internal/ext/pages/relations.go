package pages

import (
	"bytes"
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/words"
)

// relations adds types, instances and associations.
func (d *describer) relations(described *topic, self fragment.Ref) error {
	var types []typed
	for a, err := range d.window(described, fragment.AsInstance, self) {
		if err != nil {
			return err
		}
		class, _, _ := a.TypeInstance()
		l, err := d.link(class)
		if err != nil {
			return err
		}
		types = append(types, typed{l, d.by[associationKey(a)], class})
	}
	var instances []typed
	for a, err := range d.window(described, fragment.AsType, self) {
		if err != nil {
			return err
		}
		_, instance, _ := a.TypeInstance()
		l, err := d.link(instance)
		if err != nil {
			return err
		}
		instances = append(instances, typed{link: l, ref: instance})
	}
	inOrder := func(a, b typed) int { return d.order(a.link, b.link) }
	slices.SortFunc(types, inOrder)
	slices.SortFunc(instances, inOrder)
	described.Types, described.Pages[typesList] = pageOf(d, typesList, d.in.Say(texts.MoreTypes), most, types)
	described.Instances, described.Pages[instancesList] = pageOf(d, instancesList, d.in.Say(texts.MoreInstances), most,
		instances)
	if err := d.mark(len(described.Instances), func(i int) (fragment.Ref, *link) {
		return described.Instances[i].ref, &described.Instances[i].link
	}); err != nil {
		return err
	}
	return d.blocks(described, self)
}

// order compares links, and text compares texts, in the order of the reader's language.
type order func(a, b link) int

func (o order) text(a, b string) int { return o(link{Title: a}, link{Title: b}) }

// orderFor returns the language whose rules sort lists for the reader.
func orderFor(r *http.Request, c *store.Collection) string {
	return words.OrderFor(strings.Join(LanguagesOf(r, c), ","))
}

// orderOf returns the order for the reader: by notations, where concepts have them, and by titles. It is for one page.
func orderOf(r *http.Request, c *store.Collection) order {
	compare := words.Collator(orderFor(r, c))
	return func(a, b link) int {
		switch {
		case a.Notation == b.Notation:
			return cmp.Or(compare(a.Title, b.Title), cmp.Compare(a.URL, b.URL))
		case a.Notation == "" || b.Notation == "":
			return cmp.Compare(b.Notation, a.Notation)
		}
		return compare(a.Notation, b.Notation)
	}
}

// notationOf returns the notation of a concept (SKOS reference, section 6); the first if it has several.
func notationOf(t *fragment.Topic) string {
	for i := range t.Occurrences {
		if t.Occurrences[i].Type == skos+"notation" {
			return t.Occurrences[i].Value
		}
	}
	return ""
}

// expected iterates over these associations in batches of a hundred and one, or of those with a thousand roles. It
// prefetches the topics that a page of a batch links to.
func (d *describer) expected(all iter.Seq2[*fragment.Association, error]) iter.Seq2[*fragment.Association, error] {
	enough := func(some []*fragment.Association) bool {
		roles := 0
		for _, a := range some {
			roles += len(a.Roles)
		}
		return len(some) > most || roles > 10*most
	}
	return records.InParts(all, enough, func(some []*fragment.Association) error {
		return d.expect(func(yield func(fragment.Ref)) {
			for _, a := range some {
				a.Mentions(yield)
				for i := range a.Roles[:min(len(a.Roles), most)] {
					yield(a.Roles[i].Player)
				}
			}
		})
	})
}

// associations iterates over the associations after the one with a key.
func (d *describer) associations(self fragment.Ref, part fragment.Part,
	after *fragment.AssociationKey) iter.Seq2[*fragment.Association, error] {
	if d.past == nil {
		return d.v.State().AssociationsAfter(self, part, after)
	}
	return func(yield func(*fragment.Association, error) bool) {
		for a, err := range d.past.AssociationsOf(self, part) {
			if err == nil && after != nil {
				if key := a.Key(); bytes.Compare(key[:], after[:]) <= 0 {
					continue
				}
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}
