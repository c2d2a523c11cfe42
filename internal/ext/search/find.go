package search

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/titles"
	terms "github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/merge"
)

// found are topics that were found by name, the best first.
type found struct {
	Results []result `json:"results"`
	More    bool     `json:"more"` // there are more than these
}

// result is a topic that was found.
type result struct {
	TopicSI fragment.Ref   `json:"topicSI"` // in the merged view, or at the server
	Title   string         `json:"title"`
	Kind    string         `json:"kind"`  // of what fits: name, variant or identifier
	Value   string         `json:"value"` // of what fits
	Scope   []fragment.Ref `json:"scope,omitempty"`
	By      []string       `json:"by,omitempty"` // the sources that say it

	match words.Match
}

// mostAsked is how many answers of one source are looked at: each may have topics of which what fits is rejected, or
// others have found them.
const mostAsked = 5

// find returns topics of the merged view that have some words in their names, limit at most. One source must say all
// the words. What is rejected finds nothing.
func find(
	ctx context.Context, v merged.View, text string, limit int, sources []string, languages titles.Languages,
) (all *found, err error) {
	q := words.Parse(text)
	if len(q.Words) == 0 && q.Locators == nil {
		return nil, fmt.Errorf("%q has no word: write letters or digits of a name", text)
	}
	all = &found{Results: []result{}}
	err = v.Parts(ctx, false, sources, func(parts []merge.Part, sources []store.Part) error {
		view, languages := merge.NewView(ctx, parts...), merged.Languages(languages, sources)
		seen := map[fragment.Ref]bool{}
		for _, p := range sources {
			if err := all.add(seen, view, p.All, q, limit, languages); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		terms.Sort(all.Results, languages.String(), func(r *result) []string { return []string{r.Title, string(r.TopicSI)} })
		slices.SortStableFunc(all.Results, func(a, b result) int { return a.match.Rank(b.match) })
		if len(all.Results) > limit {
			all.Results, all.More = all.Results[:limit], true
		}
		return nil
	})
	return all, err
}

// add adds what one source finds.
func (all *found) add(
	seen map[fragment.Ref]bool, view *merge.View, from records.State, q words.Query, limit int, languages titles.Languages,
) error {
	added, position := 0, ""
	for range mostAsked {
		some, err := words.Find(from, q, position, limit, words.Within)
		if err != nil {
			return err
		}
		for i := range some.Hits {
			r, err := resultOf(view, &some.Hits[i], seen, q, languages)
			if err != nil {
				return err
			}
			if r != nil {
				all.Results = append(all.Results, *r)
				added++
			}
		}
		if position = some.Next; position == "" {
			return nil
		}
		if added >= limit {
			break
		}
	}
	all.More = true
	return nil
}

// resultOf returns how a topic fits a query. It is nil where the topic does not, as what would fit is rejected, and
// where it was seen before.
func resultOf(
	view *merge.View, hit *words.Hit, seen map[fragment.Ref]bool, q words.Query, languages titles.Languages,
) (*result, error) {
	ref := hit.Topic.TopicSI()
	t, err := view.Topic(ref)
	if t == nil || err != nil || seen[t.TopicSI()] {
		return nil, err
	}
	seen[t.TopicSI()] = true
	match, ok := q.Match(t)
	if !ok && hit.Label != "" {
		ref = hit.Label
		label, err := view.Topic(ref)
		if label == nil || err != nil {
			return nil, err
		}
		match, ok = q.Match(label)
	}
	for _, l := range slices.Concat(t.SubjectIdentifiers, t.SubjectLocators) {
		if !ok && q.Begins(l) {
			match, ok = words.ByIdentifier(l), true
		}
	}
	if !ok {
		return nil, nil
	}
	claims, err := view.ClaimsAs(ref)
	if claims == nil || err != nil {
		return nil, err
	}
	text := match.Text
	title, err := nodes.NewReader(nodes.SourceOf(languages, view)).Title(t.TopicSI())
	if err != nil {
		return nil, err
	}
	return &result{t.TopicSI(), title, text.Kind.String(), text.Value, text.Scope, sayersOf(claims, view.Parts(), text),
		match}, nil
}

// sayersOf returns the sources that say a text of a topic.
func sayersOf(c *merge.Claims, parts []merge.Part, text words.Text) (names []string) {
	var by []int
	is := func(kind words.Kind, value string, scope []fragment.Ref, of []int) {
		if by == nil && kind == text.Kind && value == text.Value && slices.Equal(scope, text.Scope) {
			by = of
		}
	}
	for _, n := range c.Names {
		is(words.Name, n.Value.Value, n.Value.Scope, n.By)
		for _, v := range n.Variants {
			is(words.Variant, v.Value.Value, v.Value.Scope, v.By)
		}
	}
	for _, o := range c.Occurrences {
		is(words.Name, o.Value.Value, o.Value.Scope, o.By) // the text of a label
	}
	for _, l := range slices.Concat(c.SubjectIdentifiers, c.SubjectLocators) {
		is(words.Identifier, string(l.Value), nil, l.By)
	}
	for _, i := range by {
		names = append(names, parts[i].Name)
	}
	return names
}

// maxAnswer bounds what a server answers to a search, in bytes.
const maxAnswer = 4 << 20

// findAt asks a server for topics of a map by name.
func findAt(ctx context.Context, f *fetch.Fetcher, mapURL, text string, limit int,
	languages titles.Languages) (*found, error) {
	allow, err := f.AllowURL(mapURL)
	if err != nil {
		return nil, err
	}
	query := url.Values{"q": {text}, "limit": {strconv.Itoa(limit)}}
	if len(languages) > 0 {
		query.Set("lang", languages.String())
	}
	at := strings.TrimSuffix(mapURL, "/") + "/search?" + query.Encode()
	all, _, err := fetch.Do(ctx, f, fetch.Request{URL: at, Accept: "application/json", Max: maxAnswer, AllowURL: allow,
		Within: f.MaxTime}, func(a *fetch.Answer) (*found, error) {
		var answer struct {
			Results []struct {
				TopicSI fragment.Ref
				Title   string
				Match   struct {
					Kind, Value string
					Scope       []struct{ TopicSI fragment.Ref }
				}
			}
			Next string
		}
		if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
			return nil, fmt.Errorf("the answer of %s cannot be read: %w", at, err)
		}
		all := &found{Results: []result{}, More: answer.Next != ""}
		for _, of := range answer.Results {
			r := result{TopicSI: of.TopicSI, Title: of.Title, Kind: of.Match.Kind, Value: of.Match.Value}
			for _, theme := range of.Match.Scope {
				r.Scope = append(r.Scope, theme.TopicSI)
			}
			all.Results = append(all.Results, r)
		}
		return all, nil
	})
	return all, err
}
