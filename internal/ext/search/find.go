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

// found is the result of a search: topics, the best match first.
type found struct {
	Results []result `json:"results"`
	More    bool     `json:"more"` // there are more than these

	DidYouMean []string `json:"didYouMean,omitempty"` // other queries, where few topics were found
}

// asking holds the options of a search.
type asking struct {
	text      string
	typ       string  // a subject identifier of the type; "": any
	in        *string // the language of matching texts; nil: any
	limit     int
	languages titles.Languages // the reader's
}

// result is a topic that was found.
type result struct {
	TopicSI fragment.Ref   `json:"topicSI"` // in the merged view, or at the server
	Title   string         `json:"title"`
	Kind    string         `json:"kind"`            // of the matching text, as servers call it
	Label   string         `json:"label,omitempty"` // of a matching name: preferred, alternative or hidden
	Value   string         `json:"value"`           // of the matching text
	Scope   []fragment.Ref `json:"scope,omitempty"`
	By      []string       `json:"by,omitempty"` // the sources that state it

	match words.Match
}

// mostAsked is the number of pages of results that are read of one source: matches may be rejected, or found in another
// source.
const mostAsked = 5

// fewFound is the number of topics below which the answer suggests other queries.
const fewFound = 3

// find returns topics of the merged view that match some words. One source must have all the words and the type. It
// ignores rejected claims.
func find(ctx context.Context, v merged.View, a asking, sources []string) (all *found, err error) {
	q := words.Parse(a.text)
	if len(q.Words) == 0 && q.Locators == nil {
		return nil, fmt.Errorf("%q has no word: write letters or digits of a name", a.text)
	}
	q.Language = a.in
	all = &found{Results: []result{}}
	err = v.Parts(ctx, false, sources, func(parts []merge.Part, sources []store.Part) error {
		view := merge.NewView(ctx, parts...)
		a.languages = merged.Languages(a.languages, sources)
		seen := map[fragment.Ref]bool{}
		for _, p := range sources {
			if err := all.add(seen, view, p.All, q, a); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		exact := slices.ContainsFunc(all.Results, func(r result) bool { return r.match.Exact() })
		if len(all.Results) < fewFound && !all.More && !exact {
			if err := all.near(view, sources, q, a); err != nil {
				return err
			}
		}
		terms.Sort(all.Results, a.languages.String(), func(r *result) []string {
			return []string{r.Title, string(r.TopicSI)}
		})
		slices.SortStableFunc(all.Results, func(a, b result) int { return a.match.Rank(b.match) })
		if len(all.Results) > a.limit {
			all.Results, all.More = all.Results[:a.limit], true
		}
		return nil
	})
	return all, err
}

// add adds the results of one source.
func (all *found) add(
	seen map[fragment.Ref]bool, view *merge.View, from records.State, q words.Query, a asking,
) error {
	if a.typ != "" {
		_, typ, err := fragment.Find(from, a.typ)
		if typ == nil || err != nil {
			return err
		}
		q.Type = typ.TopicSI()
	}
	added, position := 0, ""
	for range mostAsked {
		some, err := words.Find(from, q, position, a.limit, words.Within)
		if err != nil {
			return err
		}
		for i := range some.Hits {
			r, err := resultOf(view, &some.Hits[i], seen, q, a.languages)
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
		if added >= a.limit {
			break
		}
	}
	all.More = true
	return nil
}

// near adds similar queries that have results.
func (all *found) near(view *merge.View, sources []store.Part, q words.Query, a asking) error {
	for _, p := range sources {
		texts, err := words.Near(p.All, q, fewFound)
		for i := 0; i < len(texts) && err == nil; i++ {
			some, other := &found{}, words.Parse(texts[i])
			other.Language = q.Language
			err = some.add(map[fragment.Ref]bool{}, view, p.All, other, a)
			if len(some.Results) > 0 && !slices.Contains(all.DidYouMean, texts[i]) {
				all.DidYouMean = append(all.DidYouMean, texts[i])
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// resultOf returns the match of a topic. It is nil where the matching claims are rejected, and where the topic was seen
// before.
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
	if hit.Label != "" {
		label, err := view.Topic(hit.Label)
		if err != nil {
			return nil, err
		}
		if label != nil {
			if by, fits := q.Match(label); fits && (!ok || by.Rank(match) < 0) {
				ref, match, ok = hit.Label, by, true
			}
		}
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
	label := ""
	if text.Kind == words.Name {
		label = text.Label().String()
	}
	return &result{t.TopicSI(), title, text.Kind.String(), label, text.Value, text.Scope,
		sayersOf(claims, view.Parts(), text), match}, nil
}

// sayersOf returns the names of the sources that state a text of a topic.
func sayersOf(c *merge.Claims, parts []merge.Part, text words.Text) (names []string) {
	var by []int
	is := func(kind words.Kind, value string, scope []fragment.Ref, subscriptions []int) {
		if by == nil && kind == text.Kind && value == text.Value && slices.Equal(scope, text.Scope) {
			by = subscriptions
		}
	}
	for _, n := range c.Names {
		is(words.Name, n.Value.Value, n.Value.Scope, n.By)
		for _, v := range n.Variants {
			is(words.Variant, v.Value.Value, v.Value.Scope, v.By)
		}
	}
	if text.Kind != words.Variant && text.Kind != words.Identifier {
		for _, o := range c.Occurrences {
			is(text.Kind, o.Value.Value, o.Value.Scope, o.By)
		}
	}
	for _, l := range slices.Concat(c.SubjectIdentifiers, c.SubjectLocators) {
		is(words.Identifier, string(l.Value), nil, l.By)
	}
	for _, i := range by {
		names = append(names, parts[i].Name)
	}
	return names
}

// maxAnswer is the largest answer to a search that is read, in bytes.
const maxAnswer = 4 << 20

// findAt searches the topics of a map at its server.
func findAt(ctx context.Context, f *fetch.Fetcher, mapURL string, a asking) (*found, error) {
	f, err := f.From(mapURL)
	if err != nil {
		return nil, err
	}
	query := url.Values{"q": {a.text}, "limit": {strconv.Itoa(a.limit)}}
	if len(a.languages) > 0 {
		query.Set("lang", a.languages.String())
	}
	if a.typ != "" {
		query.Set("type", a.typ)
	}
	if a.in != nil {
		query.Set("in", *a.in)
	}
	at := strings.TrimSuffix(mapURL, "/") + "/search?" + query.Encode()
	all, _, err := fetch.Do(ctx, f, fetch.Request{URL: at, Accept: "application/json", Max: maxAnswer,
		Within: f.MaxTime}, func(a *fetch.Answer) (*found, error) {
		var answer struct {
			Results []struct {
				TopicSI fragment.Ref
				Title   string
				Match   struct {
					Kind, Label, Value string
					Scope              []struct{ TopicSI fragment.Ref }
				}
			}
			Next       string
			DidYouMean []string
		}
		if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
			return nil, fmt.Errorf("the answer of %s cannot be read: %w", at, err)
		}
		all := &found{Results: []result{}, More: answer.Next != "", DidYouMean: answer.DidYouMean}
		for _, hit := range answer.Results {
			r := result{TopicSI: hit.TopicSI, Title: hit.Title, Kind: hit.Match.Kind, Label: hit.Match.Label,
				Value: hit.Match.Value}
			for _, theme := range hit.Match.Scope {
				r.Scope = append(r.Scope, theme.TopicSI)
			}
			all.Results = append(all.Results, r)
		}
		return all, nil
	})
	return all, err
}
