package pages

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
)

// searchField is the field for words on pages.
type searchField struct {
	Action, Description string // URLs: of the results, of the OpenSearch description
	Title               string // of the map or server
	Map                 string // its URL, "" where all maps are searched
	Query               string
}

func (p *Pages) searchField(c *store.Collection, query string) *searchField {
	field := &searchField{p.search(c) + Ending, p.underMap(c) + descriptionPath, p.titleOfSearched(c), "", query}
	if c != nil {
		field.Map = p.URLs.Map(c)
	}
	return field
}

// titleOfSearched returns the title of a map; the name of the server if c is nil.
func (p *Pages) titleOfSearched(c *store.Collection) string {
	if c != nil {
		return titleOf(c)
	}
	base, err := url.Parse(p.BaseURL)
	if err != nil {
		return cmp.Or(p.Name, p.BaseURL)
	}
	return cmp.Or(p.Name, base.Host)
}

// search returns the URL of search results as JSON, in a map, or in all maps if c is nil.
func (p *Pages) search(c *store.Collection) string { return p.underMap(c) + searchPath }

// underMap returns the prefix of the addresses of a map, or of the server if c is nil.
func (p *Pages) underMap(c *store.Collection) string {
	if c == nil {
		return string(p.URLs)
	}
	return p.URLs.Map(c)
}

const searchPath = "/search"

// The limits of an answer to a search.
const (
	someHits   = 20
	mostHits   = 100
	mostStart  = 1000
	someOf     = 5  // types of a topic
	mostFacets = 12 // types, languages or maps offered to narrow the results
	fewHits    = 3  // with fewer of them, others may be meant
)

// Search is the answer to a search as JSON. The names of numbers are those of OpenSearch.
type Search struct {
	Collection   string   `json:"collection,omitempty"` // "": all of the server were searched
	Query        string   `json:"query"`
	TotalResults int      `json:"totalResults"`
	AtLeast      bool     `json:"atLeast,omitempty"` // there may be more, also of each facet
	StartIndex   int      `json:"startIndex"`        // of the first result, from 1 on
	ItemsPerPage int      `json:"itemsPerPage"`
	Results      []Result `json:"results"`
	Facets       Facets   `json:"facets"`
	DidYouMean   []string `json:"didYouMean,omitempty"`
	Ended        string   `json:"ended,omitempty"` // why the search ended before it was done
	Next         string   `json:"next,omitempty"`  // URL of the answer with more of them
}

// Facets are the numbers of topics found, by type, language or map.
type Facets struct {
	Types       []Facet `json:"types,omitempty"`
	Languages   []Facet `json:"languages,omitempty"`
	Collections []Facet `json:"collections,omitempty"` // where all were searched
}

// Facet is a value by which a search may be narrowed: a subject identifier for ?type=, a language for ?in=, or a
// collection.
type Facet struct {
	Value string `json:"value"`
	Title string `json:"title"`
	Count int    `json:"count"`

	lang string
}

// Result is a topic that was found.
type Result struct {
	Collection string `json:"collection,omitempty"` // where all were searched
	TopicSI    string `json:"topicSI"`
	Title      string `json:"title"`
	URL        string `json:"url"`
	Match      struct {
		Kind     string  `json:"kind"`            // name, notation, variant, identifier, definition or note
		Label    string  `json:"label,omitempty"` // of a name: preferred, alternative or hidden
		Value    string  `json:"value"`
		Language string  `json:"language,omitempty"`
		Cut      int     `json:"cut,omitempty"` // bytes of the whole value, if it is too long to be here
		Type     string  `json:"type,omitempty"`
		Scope    []Named `json:"scope,omitempty"`
	} `json:"match"`
	Types      []Named `json:"types,omitempty"`
	Deprecated bool    `json:"deprecated,omitempty"` // it is no longer to be used
}

// Named is a topic that something about a topic names.
type Named struct {
	TopicSI string `json:"topicSI"`
	Title   string `json:"title"`
}

// hit is a topic that was found, as pages show it.
type hit struct {
	link
	Called []words.Part // the title, with the matching parts marked
	Match  value        // "": it is the title
	Marked []words.Part // Match
	Kind   string       // of Match: a kind of texts, or of names
	In     string       // the language of Match
	Type   *link        // of the matching name, if nothing else shows it
	Scope  []link
	Types  []link
	Map    *link // where all were searched
}

// asking holds the parameters of a search.
type asking struct {
	query words.Query
	typ   string // a subject identifier, or the key of a topic; "": any
	after string
	start int // number of results to skip
	limit int

	suggests bool // a request for suggestions: no counts
	in       *texts.Language
}

func parseSearch(r *http.Request) (a asking, err error) {
	q := r.URL.Query()
	limit, err := web.Number(r, "limit", someHits) // programs that follow an OpenSearch description leave it empty
	if err != nil {
		return a, err
	}
	start, err := web.Number(r, "startIndex", 1)
	if err == nil && start > mostStart && !q.Has("after") {
		err = web.Problemf(http.StatusBadRequest, "?startIndex= may be %d at most: search for more words, or by type",
			mostStart)
	}
	a = asking{query: words.Parse(q.Get("q")), typ: q.Get("type"), after: q.Get("after"), start: int(start - 1),
		limit: int(min(limit, mostHits)), in: layout.LanguageOf(r)}
	if _, err := tmdm.Named(a.typ); strings.Contains(a.typ, ":") && err != nil {
		return a, web.Problemf(http.StatusBadRequest, "?type= is no IRI of a topic: %s", err)
	}
	if q.Has("in") {
		language := q.Get("in")
		a.query.Language = &language
	}
	return a, err
}

// typed returns the query for a map, with the type in it. ok is false where the map has no such topic.
func (a asking) typed(v *store.View) (q words.Query, ok bool, err error) {
	q = a.query
	switch {
	case a.typ == "":
		return q, true, nil
	case strings.Contains(a.typ, ":"):
		_, t, err := fragment.Find(v.Source(), a.typ)
		if t == nil || err != nil {
			return q, false, err
		}
		q.Type = t.TopicSI()
	default:
		last, err := v.Last(a.typ)
		if last == nil || err != nil {
			return q, false, err
		}
		q.Type = last.TopicSI
	}
	return q, true, nil
}

// looked is the result of a search in one map.
type looked struct {
	query  words.Query
	found  *words.Found
	counts words.Counts
	types  map[fragment.Ref]Facet
	near   []string

	name string // of the map
}

// look looks for topics of a map, from the first on or from a position. The error is one for the reader.
func (p *Pages) look(v *store.View, a asking, d *describer) (*looked, error) {
	found := &looked{types: map[fragment.Ref]Facet{}, found: &words.Found{}, name: v.Name}
	q, ok, err := a.typed(v)
	found.query = q
	if !ok || err != nil {
		return found, err
	}
	enough := a.limit
	if a.after == "" {
		enough += a.start
	}
	find := func(q words.Query, position string, limit int) (*words.Found, error) {
		found, err := words.Find(v.State(), q, position, limit, p.searchWithin())
		return found, searchProblem(err)
	}
	if a.suggests {
		found.found, err = find(q, "", enough)
		return found, err
	}
	all, err := find(q.Whole(), "", max(words.MostCounted, enough))
	if err != nil {
		return nil, err
	}
	if found.found = all.First(enough); a.after != "" || q.Type != "" || q.Language != nil {
		if found.found, err = find(q, a.after, enough); err != nil {
			return nil, err
		}
	}
	counts, err := words.Count(v.State(), q, all)
	if err != nil {
		return nil, err
	}
	found.counts = *counts
	hits := found.found.Hits
	if exact := len(hits) > 0 && hits[0].Match.Exact(); found.counts.Topics < fewHits && !found.counts.AtLeast && !exact {
		if found.near, err = words.Near(v.State(), q, fewHits); err != nil {
			return nil, err
		}
	}
	return found, found.describe(d)
}

// describe sets the titles of the most frequent types.
func (found *looked) describe(d *describer) error {
	types := mostOf(found.counts.Types)
	if err := d.v.State().ExpectNames(types); err != nil {
		return err
	}
	for _, typ := range types {
		l, err := d.link(typ)
		if err != nil {
			return err
		}
		found.types[typ] = Facet{Value: string(typ), Title: l.Title, lang: l.Lang}
	}
	return nil
}

// mostOf returns the items with the highest counts.
func mostOf[T ~string](counts map[T]int) []T {
	all := slices.SortedFunc(maps.Keys(counts), func(a, b T) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return all[:min(len(all), mostFacets)]
}

// searchProblem returns an error for the reader.
func searchProblem(err error) error {
	if errors.Is(err, words.ErrPosition) {
		return web.Problemf(http.StatusBadRequest, "%s", err)
	}
	if errors.Is(err, words.ErrSlow) || errors.Is(err, words.ErrLeftBehind) {
		p := web.Problemf(http.StatusServiceUnavailable, "%s", err)
		p.RetryAfter = 10 * time.Second
		return p
	}
	return err
}

func (p *Pages) searchWithin() time.Duration { return cmp.Or(p.SearchWithin, words.Within) }

// searched is the result of a search, and T describes a topic in it.
type searched[T any] struct {
	hits   []T
	total  int
	more   bool // than total
	facets Facets
	near   []string
	ended  bool   // before it was done
	next   string // query of the next answer; "": there is none
}

// say adds the counts of the topics found in a map.
func (s *searched[T]) say(found *looked, types map[fragment.Ref]int, languages map[string]int) {
	s.total += found.counts.Topics
	s.more = s.more || found.counts.AtLeast
	for typ := range found.types {
		types[typ] += found.counts.Types[typ]
	}
	for tag, n := range found.counts.Languages {
		languages[tag] += n
	}
	for _, text := range found.near {
		if len(s.near) < fewHits && !slices.Contains(s.near, text) {
			s.near = append(s.near, text)
		}
	}
}

// sum makes the facets from the counts.
func (s *searched[T]) sum(in *texts.Language, types map[fragment.Ref]int, called map[fragment.Ref]Facet,
	languages map[string]int) {
	for _, typ := range mostOf(types) {
		f := called[typ]
		f.Count = types[typ]
		s.facets.Types = append(s.facets.Types, f)
	}
	for _, tag := range mostOf(languages) {
		s.facets.Languages = append(s.facets.Languages,
			Facet{Value: tag, Title: cmp.Or(titleOfLanguage(in, tag), in.Say(texts.NoLanguage)), Count: languages[tag]})
	}
}

// nextOf returns the query of the answer with more.
func (a asking) nextOf(r *http.Request, after string) string {
	pairs := []string{"after", after, "startIndex", strconv.Itoa(a.start + a.limit + 1)}
	if a.limit == someHits {
		pairs = append(pairs, "limit", "")
	}
	return "?" + with(r, pairs...)
}

// searchMap looks for topics of one map.
func searchMap[T any](p *Pages, r *http.Request, v *store.View, a asking,
	say func(d *describer, h *words.Hit, q words.Query) (T, error)) (*searched[T], error) {
	d := p.describer(v, r)
	found, err := p.look(v, a, d)
	if err != nil {
		return nil, err
	}
	all := &searched[T]{}
	if a.after == "" {
		found.found.Hits = found.found.Hits[min(a.start, len(found.found.Hits)):]
	}
	if all.hits, err = saidOf(d, found.found.Hits, found.query, say); err != nil {
		return nil, err
	}
	types, languages := map[fragment.Ref]int{}, map[string]int{}
	all.say(found, types, languages)
	all.sum(a.in, types, found.types, languages)
	if found.found.Ended {
		all.ended = true
	}
	if found.found.Next != "" {
		all.next = a.nextOf(r, found.found.Next)
	}
	return all, nil
}

// saidOf returns the descriptions of the topics found in a map.
func saidOf[T any](d *describer, hits []words.Hit, q words.Query,
	say func(d *describer, h *words.Hit, q words.Query) (T, error)) (all []T, err error) {
	refs := make([]fragment.Ref, len(hits))
	for i := range refs {
		refs[i] = hits[i].Topic.TopicSI()
	}
	if err := d.expectMarked(refs...); err != nil { // their types are shown
		return nil, err
	}
	for i := range hits {
		one, err := say(d, &hits[i], q)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// searchAll searches all maps that the reader may read, one after the other, and returns the best matches first.
func searchAll[T any](p *Pages, r *http.Request, a asking,
	say func(d *describer, h *words.Hit, q words.Query) (T, error)) (*searched[T], error) {
	visible, err := p.Visible(r)
	if err != nil {
		return nil, err
	}
	all := &searched[T]{}
	types, languages := map[fragment.Ref]int{}, map[string]int{}
	called := map[fragment.Ref]Facet{}
	end := time.Now().Add(p.searchWithin())
	var in []*looked
	for i := range visible {
		c := &visible[i]
		if c.Hidden {
			continue
		}
		if time.Now().After(end) {
			all.ended, all.more = true, true
			break
		}
		err := p.Store.View(r.Context(), c.Name, func(v *store.View) error {
			found, err := p.look(v, a, p.describer(v, r))
			if err != nil {
				return err
			}
			in = append(in, found)
			all.say(found, types, languages)
			for typ, f := range found.types {
				called[typ] = f
			}
			if n := found.counts.Topics; n > 0 {
				all.facets.Collections = append(all.facets.Collections, Facet{Value: c.Name, Title: titleOf(c), Count: n})
			}
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) { // it may have been deleted meanwhile
			return nil, err
		}
	}
	if all.total >= fewHits {
		all.near = nil
	}
	all.sum(a.in, types, called, languages)
	slices.SortStableFunc(all.facets.Collections, func(a, b Facet) int { return cmp.Compare(b.Count, a.Count) })
	chosen, more := bestOf(in, a)
	if more && a.start+a.limit < mostStart {
		all.next = a.nextOf(r, "")
	}
	all.hits = make([]T, len(chosen))
	for _, one := range in {
		var hits []words.Hit
		var at []int
		for i, c := range chosen {
			if c.in == one {
				hits, at = append(hits, c.hit), append(at, i)
			}
		}
		if len(hits) == 0 {
			continue
		}
		err := p.Store.View(r.Context(), one.name, func(v *store.View) error {
			some, err := saidOf(p.describer(v, r), hits, one.query, say)
			for i := range some {
				all.hits[at[i]] = some[i]
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// chosen is a topic among the results of a map.
type chosen struct {
	in  *looked
	hit words.Hit
}

// bestOf returns the requested results of several maps, and reports whether there are more. It keeps the order of the
// results of each map.
func bestOf(in []*looked, a asking) (all []chosen, more bool) {
	at := make([]int, len(in))
	for n := 0; n < a.start+a.limit; n++ {
		best := -1
		for i, one := range in {
			if at[i] < len(one.found.Hits) && (best < 0 ||
				one.found.Hits[at[i]].Match.Compare(in[best].found.Hits[at[best]].Match) < 0) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		if n >= a.start {
			all = append(all, chosen{in[best], in[best].found.Hits[at[best]]})
		}
		at[best]++
	}
	for i, one := range in {
		more = more || at[i] < len(one.found.Hits) || one.found.Next != ""
	}
	return all, more
}

// SearchPage answers with the page of the topics that ?q= finds in a map. An identifier of a topic leads to that.
func (p *Pages) SearchPage(w http.ResponseWriter, r *http.Request, v *store.View) error {
	a, err := parseSearch(r)
	if err != nil {
		return err
	}
	c := &v.Collection
	to, err := identified(v, a)
	if err != nil {
		return err
	}
	if to != "" {
		return p.SeeOther(w, r, p.URLs.Topic(c, to)+Ending)
	}
	return p.write(w, r, v, "search", func() (*page, error) {
		all, err := searchMap(p, r, v, a, (*describer).hit)
		if err != nil {
			return nil, err
		}
		return p.foundPage(r, c, a, all), nil
	})
}

// SearchAllPage is SearchPage of all maps that the reader may read.
func (p *Pages) SearchAllPage(w http.ResponseWriter, r *http.Request) error {
	a, err := parseSearch(r)
	if err != nil {
		return err
	}
	all, err := searchAll(p, r, a, func(d *describer, found *words.Hit, q words.Query) (hit, error) {
		h, err := d.hit(found, q)
		h.Map = &link{Title: titleOf(&d.v.Collection), URL: p.URLs.Map(&d.v.Collection) + Ending}
		return h, err
	})
	if err != nil {
		return err
	}
	return p.writeEachTime(w, r, "search", p.foundPage(r, nil, a, all))
}

// narrowings are links to the results of some types, in some languages, or in some maps.
type narrowings struct {
	What  string
	Links []narrowing
	All   string // URL of the results of all of these; "": it is this page
}

type narrowing struct {
	choice
	Lang  string
	Count int
}

// narrowed returns links to the results with other values of a parameter.
func narrowed(r *http.Request, what, name string, facets []Facet) (list narrowings) {
	list.What = what
	asked := r.URL.Query()
	if asked.Get(name) != "" || name == "in" && asked.Has(name) {
		list.All = filtered(r, name)
	}
	for _, f := range facets {
		here := list.All != "" && asked.Get(name) == f.Value
		list.Links = append(list.Links, narrowing{choice{f.Title, filtered(r, name, f.Value), here}, f.lang, f.Count})
	}
	return list
}

// foundPage makes the page of the results in a map, or in all maps if c is nil.
func (p *Pages) foundPage(r *http.Request, c *store.Collection, a asking, all *searched[hit]) *page {
	data := struct {
		Query       string
		Hits        []hit
		Total       int
		AtLeast     bool
		Narrow      []narrowings
		Narrowed    bool // to a type or a language
		Near        []choice
		Next, First string // URLs; "": none
		Ended       string // why the search ended before it was done
		Later       bool   // it is not the first page
		Overview    string // of the types of the map; "": all maps were searched
	}{Query: a.query.Text, Hits: all.hits, Total: all.total, AtLeast: all.more, Next: all.next,
		Narrowed: a.typ != "" || a.query.Language != nil,
		First:    filtered(r, "after"), Later: a.after != "" || a.start > 0,
		Narrow: []narrowings{narrowed(r, a.in.Say(texts.Types), "type", all.facets.Types),
			narrowed(r, a.in.Say(texts.ByLanguage), "in", all.facets.Languages)}}
	if c != nil {
		data.Overview = p.URLs.Map(c) + "/types" + Ending
	}
	in := narrowings{What: a.in.Say(texts.Maps)}
	for _, f := range all.facets.Collections {
		in.Links = append(in.Links, narrowing{choice: choice{Title: f.Title,
			URL: p.search(&store.Collection{Name: f.Value}) + Ending + filtered(r, "after")}, Count: f.Count})
	}
	data.Narrow = append(data.Narrow, in)
	for _, text := range all.near {
		data.Near = append(data.Near, choice{Title: text, URL: filtered(r, "q", text)})
	}
	title := a.in.Say(texts.Search)
	if a.query.Text != "" {
		title = a.in.Say(texts.Found, layout.Cut(a.query.Text))
	}
	if all.ended {
		data.Ended = a.in.Say(texts.SearchEnded, p.searchWithin())
	}
	return &page{Title: title, Path: p.Trail(r, c), frame: frame{Search: p.searchField(c, a.query.Text)}, Of: data}
}

// filtered returns the query of a request with a value of a parameter, or without the parameter, on the first page.
func filtered(r *http.Request, name string, value ...string) string {
	q := r.URL.Query()
	q.Del("after")
	q.Del("startIndex")
	if q.Del(name); len(value) > 0 {
		q[name] = value
	}
	return "?" + q.Encode()
}

// identified returns the TopicSI of the topic that has or had the identifier in the query; "" if there is none.
func identified(v *store.View, a asking) (fragment.Ref, error) {
	if a.after != "" || a.typ != "" || a.query.Language != nil {
		return "", nil
	}
	return server.Identified(v, a.query.Locators, true, true)
}

func (d *describer) hit(found *words.Hit, q words.Query) (h hit, err error) {
	t, text := found.Topic, found.Match.Text
	if h.link, err = d.link(t.TopicSI()); err != nil {
		return h, err
	}
	title, err := d.names.Title(t)
	if err != nil {
		return h, err
	}
	if err := d.mark(1, func(int) (fragment.Ref, *link) { return t.TopicSI(), &h.link }); err != nil {
		return h, err
	}
	h.Called = q.Marks(h.Title)
	h.Kind = text.Kind.String()
	if text.Kind == words.Name {
		h.Kind = text.Label().String()
	}
	if text.Value != title && text.Value != h.Notation {
		h.Match = valueOf(iri.Shown(text.Value), text.Scope)
		h.In = d.titleOfLanguage(h.Match.Lang)
		h.Marked = q.Marks(h.Match.Text)
		if text.Kind >= words.Definition {
			h.Match.Cut = 0
			h.Marked = excerpt(h.Marked)
		}
	}
	if text.Kind == words.Note || text.Kind != words.Notation && text.Kind != words.Definition &&
		!slices.Contains(plainTypes, text.Type) {
		l, err := d.link(text.Type)
		if err != nil {
			return h, err
		}
		h.Type = &l
	}
	scope := slices.DeleteFunc(slices.Clone(text.Scope), func(theme fragment.Ref) bool {
		_, ok := titles.LanguageOf(theme)
		return ok // the language tag of the text shows it
	})
	if h.Scope, err = d.links(scope); err != nil {
		return h, err
	}
	types, err := words.TypesOf(d.v.State(), t.TopicSI(), someOf+1)
	if err == nil {
		h.Types, err = d.links(types[:min(len(types), someOf)])
	}
	if len(types) > someOf {
		h.Types = append(h.Types, link{Title: nodes.More})
	}
	return h, err
}

// plainTypes are the types of names that a page does not name.
var plainTypes = []fragment.Ref{"", tmdm.PSIDefaultNameType, titles.PrefLabel, titles.AltLabel, titles.HiddenLabel,
	titles.RDFSLabel, titles.LiteralForm}

// aroundMarks is the number of letters of a long text shown on either side of the marked part.
const aroundMarks = 80

// excerpt cuts parts of a text that are long and not marked.
func excerpt(parts []words.Part) []words.Part {
	for i := range parts {
		runes := []rune(parts[i].Text)
		if parts[i].Marked || len(runes) <= 2*aroundMarks {
			continue
		}
		first, last := string(runes[:aroundMarks]), string(runes[len(runes)-aroundMarks:])
		if i == 0 {
			first = ""
		}
		if i == len(parts)-1 && i > 0 {
			last = ""
		}
		parts[i].Text = first + " … " + last
	}
	return parts
}

// Search answers with the topics that ?q= finds in a map, as JSON.
func (p *Pages) Search(w http.ResponseWriter, r *http.Request, v *store.View) error {
	a, err := askingPrograms(r)
	if err != nil {
		return err
	}
	c := &v.Collection
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Accept-Encoding, Accept-Language")
	return p.Answers.WriteBytes(w, r, p.tag(r, c), "no-cache", func() ([]byte, error) {
		all, err := searchMap(p, r, v, a, (*describer).result)
		if err != nil {
			return nil, err
		}
		return json.Marshal(p.answer(c, a, all))
	})
}

// SearchAll is Search in all maps that the reader may read.
func (p *Pages) SearchAll(w http.ResponseWriter, r *http.Request) error {
	a, err := askingPrograms(r)
	if err != nil {
		return err
	}
	all, err := searchAll(p, r, a, func(d *describer, found *words.Hit, q words.Query) (Result, error) {
		result, err := d.result(found, q)
		result.Collection = d.v.Name
		return result, err
	})
	if err != nil {
		return err
	}
	return p.Answers.WriteSmall(w, r, "application/json", "no-cache", func(w io.Writer) error {
		return json.NewEncoder(w).Encode(p.answer(nil, a, all))
	})
}

// askingPrograms is parseSearch for programs, whose query must not be empty.
func askingPrograms(r *http.Request) (asking, error) {
	a, err := parseSearch(r)
	a.in = texts.English
	if err == nil && a.query.Text == "" {
		err = web.Problemf(http.StatusBadRequest,
			"say what to look for: ?q=WORDS, names or the beginnings of names, or an identifier")
	}
	return a, err
}

func (p *Pages) answer(c *store.Collection, a asking, all *searched[Result]) *Search {
	s := &Search{Query: a.query.Text, TotalResults: max(all.total, a.start+len(all.hits)), AtLeast: all.more,
		StartIndex: a.start + 1, ItemsPerPage: a.limit, Results: append([]Result{}, all.hits...), Facets: all.facets,
		DidYouMean: all.near}
	if all.ended {
		s.Ended = a.in.Say(texts.SearchEnded, p.searchWithin())
	}
	if c != nil {
		s.Collection = c.Name
	}
	if all.next != "" {
		s.Next = p.search(c) + all.next
	}
	return s
}

func (d *describer) result(found *words.Hit, _ words.Query) (result Result, err error) {
	t, text := found.Topic, found.Match.Text
	named := func(refs []fragment.Ref) (all []Named) {
		for _, ref := range refs[:min(len(refs), most)] {
			l, failed := d.link(ref)
			err = errors.Join(err, failed)
			all = append(all, Named{string(ref), l.Title})
		}
		return all
	}
	self, failed := d.link(t.TopicSI())
	err = errors.Join(err, failed, d.mark(1, func(int) (fragment.Ref, *link) { return t.TopicSI(), &self }))
	result.TopicSI, result.Title, result.Deprecated = string(t.TopicSI()), self.Title, self.Deprecated
	result.URL = d.URLs.Topic(&d.v.Collection, t.TopicSI())
	shown := valueOf(text.Value, text.Scope)
	m := &result.Match
	m.Kind, m.Value, m.Cut, m.Type, m.Scope = text.Kind.String(), shown.Text, shown.Cut, string(text.Type),
		named(text.Scope)
	if m.Language = shown.Lang; text.Kind == words.Name {
		m.Label = text.Label().String()
	}
	types, failed := words.TypesOf(d.v.State(), t.TopicSI(), someOf)
	result.Types = named(types)
	return result, errors.Join(err, failed)
}
