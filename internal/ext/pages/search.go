package pages

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

// searchField is the field for words on the pages of a map.
type searchField struct {
	Action, Description string // URLs: of what is found, of the OpenSearch description
	Title, Map          string // of the map, and its URL
	Query               string
}

func (p *Pages) searchField(c *store.Collection, query string) *searchField {
	return &searchField{p.search(c) + Ending, p.URLs.Map(c) + descriptionPath, titleOf(c), p.URLs.Map(c), query}
}

// search is the URL of what is found in a map, as JSON.
func (p *Pages) search(c *store.Collection) string { return p.URLs.Map(c) + "/search" }

// The limits of what an answer to a search has.
const (
	someHits = 20
	mostHits = 100
	someOf   = 5 // types of a topic
)

// Search is the answer to a search as JSON.
type Search struct {
	Collection string   `json:"collection"`
	Query      string   `json:"query"`
	Results    []Result `json:"results"`
	Ended      string   `json:"ended,omitempty"` // why the search ended before it was done
	Next       string   `json:"next,omitempty"`  // URL of the answer with more of them
}

// Result is a topic that was found.
type Result struct {
	TopicSI string `json:"topicSI"`
	Title   string `json:"title"`
	URL     string `json:"url"`
	Match   struct {
		Kind  string  `json:"kind"` // name, variant or identifier
		Value string  `json:"value"`
		Cut   int     `json:"cut,omitempty"` // bytes of the whole value, if it is too long to be here
		Type  string  `json:"type,omitempty"`
		Scope []Named `json:"scope,omitempty"`
	} `json:"match"`
	Types []Named `json:"types,omitempty"`
}

// Named is a topic that something about a topic names.
type Named struct {
	TopicSI string `json:"topicSI"`
	Title   string `json:"title"`
}

// hit is a topic that was found, as pages show it.
type hit struct {
	link
	Match value  // "": it is the title
	Kind  string // of Match
	Type  *link  // of the name that matches, if it is not the default one
	Scope []link
	Types []link
}

// asking is what a request looks for.
type asking struct {
	query words.Query
	after string
	limit int
}

func parseSearch(r *http.Request) (a asking, err error) {
	q := r.URL.Query()
	limit, err := web.Number(r, "limit", someHits) // programs that follow an OpenSearch description leave it empty
	return asking{query: words.Parse(q.Get("q")), after: q.Get("after"), limit: int(min(limit, mostHits))}, err
}

func (p *Pages) find(v *store.View, a asking) (*words.Found, error) {
	found, err := words.Find(v.State(), a.query, a.after, a.limit, p.searchWithin())
	if errors.Is(err, words.ErrPosition) {
		return nil, web.Problemf(http.StatusBadRequest, "%s", err)
	}
	if errors.Is(err, words.ErrSlow) || errors.Is(err, words.ErrLeftBehind) {
		p := web.Problemf(http.StatusServiceUnavailable, "%s", err)
		p.RetryAfter = 10 * time.Second
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	refs := make([]fragment.Ref, len(found.Hits))
	for i := range refs {
		refs[i] = found.Hits[i].Topic.TopicSI()
	}
	return found, v.State().Expect(refs, nil) // their types are shown
}

func (p *Pages) searchWithin() time.Duration { return cmp.Or(p.SearchWithin, words.Within) }

// ended says that the time was over, "" if it was not.
func (p *Pages) ended(in *texts.Language, found *words.Found) string {
	if !found.Ended {
		return ""
	}
	return in.Say(texts.SearchEnded, p.searchWithin())
}

// next returns the query of the answer with more, "" if there is none.
func (a asking) next(found *words.Found) string {
	if found.Next == "" {
		return ""
	}
	q := url.Values{"q": {a.query.Text}, "after": {found.Next}}
	if a.limit != someHits {
		q.Set("limit", strconv.Itoa(a.limit))
	}
	return "?" + q.Encode()
}

// SearchPage answers with the page of the topics that ?q= finds. An identifier of a topic leads to that.
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
	return p.write(w, r, c, "search", func() (*page, error) {
		found, err := p.find(v, a)
		if err != nil {
			return nil, err
		}
		d := p.describer(v, r)
		hits := make([]hit, len(found.Hits))
		for i := range hits {
			if hits[i], err = d.hit(&found.Hits[i]); err != nil {
				return nil, err
			}
		}
		title := d.in.Say(texts.Search)
		if a.query.Text != "" {
			title = d.in.Say(texts.Found, layout.Cut(a.query.Text))
		}
		return &page{Title: title, Path: p.Trail(r, c), Search: p.searchField(c, a.query.Text), Of: struct {
			Query       string
			Hits        []hit
			Next, First string // URLs; "": none
			Ended       string // why the search ended before it was done
			Later       bool   // it is not the first page
			Types       string
		}{a.query.Text, hits, a.next(found), "?" + url.Values{"q": {a.query.Text}}.Encode(), p.ended(d.in, found),
			a.after != "", p.URLs.Map(c) + "/types" + Ending}}, nil
	})
}

// identified returns the TopicSI of the topic that has the identifier which a request looks for, or had it, "" where
// there is none.
func identified(v *store.View, a asking) (fragment.Ref, error) {
	if a.after != "" {
		return "", nil
	}
	for _, l := range a.query.Locators {
		t, err := v.Source().Topic(l)
		if t == nil && err == nil {
			t, err = v.Source().TopicBySubjectLocator(l)
		}
		if err != nil {
			return "", err
		}
		if t != nil {
			return t.TopicSI(), nil
		}
		if last, err := v.LastOf(l); last != nil || err != nil {
			return l, err
		}
	}
	return "", nil
}

func (d *describer) hit(found *words.Hit) (h hit, err error) {
	t, text := found.Topic, found.Match.Text
	if h.link, err = d.link(t.TopicSI()); err != nil {
		return h, err
	}
	title, err := d.names.Title(t)
	if err != nil {
		return h, err
	}
	if text.Value != title {
		h.Match, h.Kind = valueOf(iri.Shown(text.Value), text.Scope), text.Kind.String()
	}
	if text.Type != "" && text.Type != tmdm.PSIDefaultNameType {
		l, err := d.link(text.Type)
		if err != nil {
			return h, err
		}
		h.Type = &l
	}
	if h.Scope, err = d.links(text.Scope); err != nil {
		return h, err
	}
	types, err := d.typesOf(t.TopicSI(), someOf+1)
	if err == nil {
		h.Types, err = d.links(types[:min(len(types), someOf)])
	}
	if len(types) > someOf {
		h.Types = append(h.Types, link{Title: nodes.More})
	}
	return h, err
}

// typesOf returns as many types of a topic as are asked for at most.
func (d *describer) typesOf(ref fragment.Ref, most int) (types []fragment.Ref, err error) {
	for a, err := range d.v.Source().AssociationsOf(ref, fragment.AsInstance) {
		if err != nil {
			return nil, err
		}
		class, _, _ := a.TypeInstance()
		if types = append(types, class); len(types) == most {
			break
		}
	}
	return types, nil
}

// Search answers with the topics that ?q= finds, as JSON.
func (p *Pages) Search(w http.ResponseWriter, r *http.Request, v *store.View) error {
	a, err := parseSearch(r)
	if err != nil {
		return err
	}
	if a.query.Text == "" {
		return web.Problemf(http.StatusBadRequest,
			"say what to look for: ?q=WORDS, names or the beginnings of names, or an identifier")
	}
	c := &v.Collection
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Accept-Encoding, Accept-Language")
	return p.Answers.WriteBytes(w, r, p.tag(r, c), "no-cache", func() ([]byte, error) {
		found, err := p.find(v, a)
		if err != nil {
			return nil, err
		}
		d := p.describer(v, r)
		answer := Search{Collection: c.Name, Query: a.query.Text, Results: []Result{}, Ended: p.ended(texts.English, found)}
		for i := range found.Hits {
			result, err := d.result(&found.Hits[i])
			if err != nil {
				return nil, err
			}
			answer.Results = append(answer.Results, result)
		}
		if next := a.next(found); next != "" {
			answer.Next = p.search(c) + next
		}
		return json.Marshal(answer)
	})
}

func (d *describer) result(found *words.Hit) (result Result, err error) {
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
	err = errors.Join(err, failed)
	result.TopicSI, result.Title = string(t.TopicSI()), self.Title
	result.URL = d.URLs.Topic(&d.v.Collection, t.TopicSI())
	shown := valueOf(text.Value, text.Scope)
	m := &result.Match
	m.Kind, m.Value, m.Cut, m.Type, m.Scope = text.Kind.String(), shown.Text, shown.Cut, string(text.Type),
		named(text.Scope)
	types, failed := d.typesOf(t.TopicSI(), someOf)
	result.Types = named(types)
	return result, errors.Join(err, failed)
}

// descriptionPath is the path of the OpenSearch description of a map, behind that of the map.
const descriptionPath = "/opensearch.xml"

// description is an OpenSearch description document (OpenSearch 1.1, draft 6).
type description struct {
	XMLName     xml.Name `xml:"http://a9.com/-/spec/opensearch/1.1/ OpenSearchDescription"`
	ShortName   string
	Description string
	URLs        []searchURL `xml:"Url"`
	Encoding    string      `xml:"InputEncoding"`
}

type searchURL struct {
	Type     string `xml:"type,attr"`
	Rel      string `xml:"rel,attr,omitempty"`
	Template string `xml:"template,attr"`
}

// Description answers with the OpenSearch description of a map.
func (p *Pages) Description(w http.ResponseWriter, r *http.Request, v *store.View) error {
	c := &v.Collection
	short := []rune(titleOf(c))
	if len(short) > 16 { // OpenSearch 1.1, "ShortName": 16 characters at most
		short = append(short[:15], '…')
	}
	w.Header().Set("Content-Type", "application/opensearchdescription+xml")
	w.Header().Set("Vary", "Accept-Encoding")
	return p.Answers.WriteBytes(w, r, p.tag(r, c), "no-cache", func() ([]byte, error) {
		return xml.Marshal(description{
			ShortName: string(short), Description: fmt.Sprintf(texts.TopicsOf, short1024(titleOf(c))), Encoding: "UTF-8",
			URLs: []searchURL{
				{"text/html", "", p.search(c) + Ending + "?q={searchTerms}"},
				{"application/json", "", p.search(c) + "?q={searchTerms}&limit={count?}"},
				{"application/opensearchdescription+xml", "self", p.URLs.Map(c) + descriptionPath},
			},
		})
	})
}

// short1024 cuts a text for the element Description, which has 1,024 characters at most.
func short1024(text string) string {
	if runes := []rune(text); len(runes) > 1000 {
		return string(runes[:1000])
	}
	return text
}
