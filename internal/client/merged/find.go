package merged

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	search "github.com/tmshare/tmshare/internal/ext/search/text"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/merge"
)

// Found are topics that were found by name, the best first.
type Found struct {
	Results []Result `json:"results"`
	More    bool     `json:"more"` // there are more than these
}

// Result is a topic that was found.
type Result struct {
	TopicSI string   `json:"topicSI"` // in the merged view, or at the server
	Title   string   `json:"title"`
	Kind    string   `json:"kind"`  // of what fits: name, variant or identifier
	Value   string   `json:"value"` // of what fits
	Scope   []string `json:"scope,omitempty"`
	By      []string `json:"by,omitempty"` // the sources that say it

	match search.Match
}

// finder is a source with an index of words.
type finder interface {
	Find(q search.Query, position string, limit int, within time.Duration) (*records.Found, error)
}

// mostAsked is how many answers of one source are looked at: each may have topics of which what fits is rejected, or
// others have found them.
const mostAsked = 5

// Find returns topics of the merged view that have some words in their names, limit at most. One source must say all
// the words. What is rejected finds nothing.
func (v View) Find(ctx context.Context, text string, limit int, sources ...string) (found *Found, err error) {
	q := search.Parse(text)
	if len(q.Words) == 0 && q.Locator == "" {
		return nil, fmt.Errorf("%q has no word: write letters or digits of a name", text)
	}
	found = &Found{Results: []Result{}}
	err = v.parts(ctx, false, sources, func(parts []merge.Part) error {
		view := merge.NewView(ctx, parts...)
		seen := map[fragment.Ref]bool{}
		for _, p := range parts {
			if err := addFound(found, seen, view, p.Source, q, limit); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		slices.SortStableFunc(found.Results, func(a, b Result) int { return cmp.Or(a.match.Compare(b.match), cmp.Compare(a.TopicSI, b.TopicSI)) })
		if len(found.Results) > limit {
			found.Results, found.More = found.Results[:limit], true
		}
		return nil
	})
	return found, err
}

// addFound adds what one source finds.
func addFound(found *Found, seen map[fragment.Ref]bool, view *merge.View, from fragment.Source, q search.Query, limit int) error {
	if less, ok := from.(*rejections.Source); ok {
		from = less.All()
	}
	index, ok := from.(finder)
	if !ok {
		return errors.New("this source has no index of words")
	}
	added, position := 0, ""
	for range mostAsked {
		some, err := index.Find(q, position, limit, records.Within)
		if err != nil {
			return err
		}
		for i := range some.Hits {
			claims, err := view.Claims(some.Hits[i].Topic.TopicSI(), false)
			if err != nil {
				return err
			}
			if claims == nil || seen[claims.SubjectIdentifiers[0].Value] {
				continue
			}
			seen[claims.SubjectIdentifiers[0].Value] = true
			if r, ok := resultOf(claims, view.Parts(), q); ok {
				found.Results = append(found.Results, r)
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
	found.More = true
	return nil
}

// resultOf returns how a topic fits a query. ok is false where it does not, as what would fit is rejected.
func resultOf(c *merge.Claims, parts []merge.Part, q search.Query) (r Result, ok bool) {
	said := topicView(c, parts)
	t := &fragment.Topic{}
	for _, l := range c.SubjectIdentifiers {
		t.SubjectIdentifiers = append(t.SubjectIdentifiers, l.Value)
	}
	for _, l := range c.SubjectLocators {
		t.SubjectLocators = append(t.SubjectLocators, l.Value)
	}
	for _, n := range c.Names {
		name := n.Value
		name.Variants = nil
		for _, v := range n.Variants {
			name.Variants = append(name.Variants, v.Value)
		}
		t.Names = append(t.Names, name)
	}
	if r.match, ok = q.Match(t); !ok {
		r.match, ok = byIdentifier(t, q)
	}
	text := r.match.Text
	r.TopicSI, r.Title, r.Kind, r.Value, r.Scope = said.TopicSI, t.Title(), text.Kind.String(), text.Value, texts(text.Scope)
	r.By = sayersOf(said, text)
	return r, ok
}

func byIdentifier(t *fragment.Topic, q search.Query) (search.Match, bool) {
	for _, l := range slices.Concat(t.SubjectIdentifiers, t.SubjectLocators) {
		if q.Locator != "" && strings.HasPrefix(string(l), string(q.Locator)) {
			return search.ByIdentifier(l), true
		}
	}
	return search.Match{}, false
}

// sayersOf returns the sources that say a text of a topic.
func sayersOf(t *Topic, text search.Text) []string {
	is := func(v ClaimedValue) bool { return v.Value == text.Value && slices.Equal(v.Scope, texts(text.Scope)) }
	for _, n := range t.Names {
		if text.Kind == search.Name && is(n.ClaimedValue) {
			return n.By
		}
		if i := slices.IndexFunc(n.Variants, is); text.Kind == search.Variant && i >= 0 {
			return n.Variants[i].By
		}
	}
	for _, l := range slices.Concat(t.SubjectIdentifiers, t.SubjectLocators) {
		if text.Kind == search.Identifier && l.Locator == text.Value {
			return l.By
		}
	}
	return nil
}

// maxAnswer bounds what a server answers to a search, in bytes.
const maxAnswer = 4 << 20

// FindAt asks a server for topics of a map by name.
func FindAt(ctx context.Context, f *fetch.Fetcher, mapURL, text string, limit int) (*Found, error) {
	allow, err := f.AllowURL(mapURL)
	if err != nil {
		return nil, err
	}
	at := strings.TrimSuffix(mapURL, "/") + "/search?" + url.Values{"q": {text}, "limit": {strconv.Itoa(limit)}}.Encode()
	found, _, err := fetch.Do(ctx, f, fetch.Request{URL: at, Accept: "application/json", Max: maxAnswer, AllowURL: allow, Within: f.MaxTime}, func(a *fetch.Answer) (*Found, error) {
		var answer struct {
			Results []struct {
				TopicSI, Title string
				Match          struct {
					Kind, Value string
					Scope       []struct{ TopicSI string }
				}
			}
			Next string
		}
		if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
			return nil, fmt.Errorf("the answer of %s cannot be read: %w", at, err)
		}
		found := &Found{Results: []Result{}, More: answer.Next != ""}
		for _, of := range answer.Results {
			r := Result{TopicSI: of.TopicSI, Title: of.Title, Kind: of.Match.Kind, Value: of.Match.Value}
			for _, theme := range of.Match.Scope {
				r.Scope = append(r.Scope, theme.TopicSI)
			}
			found.Results = append(found.Results, r)
		}
		return found, nil
	})
	return found, err
}
