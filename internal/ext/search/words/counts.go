package words

import (
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/records"
)

// Counts are the numbers of topics that a query finds. A topic may count for several types and languages.
type Counts struct {
	Topics    int
	Types     map[fragment.Ref]int // of results in the query's language, by type
	Languages map[string]int       // of results of the query's type, by language; "": texts without one
	AtLeast   bool                 // the numbers are lower bounds
}

// MostCounted is the number of topics that are counted for a query.
const MostCounted = 100

// Whole returns a query without its type and its language.
func (q Query) Whole() Query {
	q.Type, q.Language = "", nil
	return q
}

// Count counts all results of a query.
func Count(s records.State, q Query, found *Found) (*Counts, error) {
	refs := make([]fragment.Ref, len(found.Hits))
	for i := range refs {
		refs[i] = found.Hits[i].Topic.TopicSI()
	}
	if err := s.Expect(refs, nil); err != nil {
		return nil, err
	}
	all := &Counts{Types: map[fragment.Ref]int{}, Languages: map[string]int{}, AtLeast: found.Next != ""}
	for i := range found.Hits {
		if err := all.add(s, q, &found.Hits[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *Counts) add(s records.State, q Query, h *Hit) error {
	types, err := TypesOf(s, h.Topic.TopicSI(), mostTypes)
	if err != nil {
		return err
	}
	languages := q.languages(h)
	isOf, speaks := q.Type == "", q.Language == nil
	for _, typ := range types {
		isOf = isOf || typ == q.Type
	}
	if q.Language != nil {
		speaks = languages[*q.Language]
	}
	if isOf && speaks {
		c.Topics++
	}
	if isOf {
		for tag := range languages {
			c.Languages[tag]++
		}
	}
	if speaks {
		for _, typ := range types {
			c.Types[typ]++
		}
	}
	return nil
}

// languages returns the languages in which a topic that a query finds has texts which fit.
func (q Query) languages(h *Hit) map[string]bool {
	fits := map[string]bool{}
	has := map[string]uint8{}
	q.Whole().match(h.Topic, allTexts, has)
	for tag, words := range has {
		if words == 1<<len(q.Words)-1 {
			fits[tag] = true
		}
	}
	for i := range h.Topic.Occurrences {
		if o := &h.Topic.Occurrences[i]; kindOf(o) == Notation && q.fitsCode(codeOf(o.Value)) {
			fits[languageOf(o.Scope)] = true
		}
	}
	if h.Match.Text.Kind == Identifier || h.Label != "" {
		fits[h.Match.Text.Language()] = true
	}
	return fits
}
