package pages

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/store"
)

// The paths of the OpenSearch description and of suggestions, relative to a map, or to the server for a search of all
// maps.
const (
	descriptionPath = "/opensearch.xml"
	suggestPath     = "/suggest"
)

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
	First    int    `xml:"indexOffset,attr,omitempty"`
	Template string `xml:"template,attr"`
}

// suggestions is the media type of texts that may be meant (OpenSearch Suggestions 1.1).
const suggestions = "application/x-suggestions+json"

// Description answers with the OpenSearch description of a map.
func (p *Pages) Description(w http.ResponseWriter, r *http.Request, v *store.View) error {
	return p.describeSearch(w, r, &v.Collection)
}

// DescriptionOfAll answers with that of all maps.
func (p *Pages) DescriptionOfAll(w http.ResponseWriter, r *http.Request) error {
	return p.describeSearch(w, r, nil)
}

func (p *Pages) describeSearch(w http.ResponseWriter, r *http.Request, c *store.Collection) error {
	title := p.titleOfSearched(c)
	short := []rune(title)
	if len(short) > 16 { // OpenSearch 1.1, "ShortName": 16 characters at most
		short = append(short[:15], '…')
	}
	const paged = "&startIndex={startIndex?}"
	return p.Answers.WriteSmall(w, r, "application/opensearchdescription+xml", "no-cache", func(w io.Writer) error {
		return xml.NewEncoder(w).Encode(description{
			ShortName: string(short), Description: fmt.Sprintf(texts.TopicsOf, short1024(title)), Encoding: "UTF-8",
			URLs: []searchURL{
				{"text/html", "", 1, p.search(c) + Ending + "?q={searchTerms}" + paged},
				{"application/json", "", 1, p.search(c) + "?q={searchTerms}&limit={count?}" + paged},
				{suggestions, "suggestions", 0, p.underMap(c) + suggestPath + "?q={searchTerms}"},
				{"application/opensearchdescription+xml", "self", 0, p.underMap(c) + descriptionPath},
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

// mostSuggested is the number of names that are suggested.
const mostSuggested = 10

// Suggest answers with names of topics of a map that ?q= finds (OpenSearch Suggestions 1.1).
func (p *Pages) Suggest(w http.ResponseWriter, r *http.Request, v *store.View) error {
	return p.suggest(w, r, func(a asking) (*searched[suggestion], error) {
		return searchMap(p, r, v, a, (*describer).suggestion)
	})
}

// SuggestOfAll is Suggest for all maps.
func (p *Pages) SuggestOfAll(w http.ResponseWriter, r *http.Request) error {
	return p.suggest(w, r, func(a asking) (*searched[suggestion], error) {
		return searchAll(p, r, a, (*describer).suggestion)
	})
}

type suggestion struct{ name, in, url string }

func (d *describer) suggestion(found *words.Hit, _ words.Query) (suggestion, error) {
	l, err := d.link(found.Topic.TopicSI())
	return suggestion{l.Title, titleOf(&d.v.Collection), l.URL}, err
}

func (p *Pages) suggest(w http.ResponseWriter, r *http.Request,
	search func(asking) (*searched[suggestion], error)) error {
	a, err := askingPrograms(r)
	if err != nil {
		return err
	}
	a.suggests, a.limit = true, mostSuggested
	all, err := search(a)
	if err != nil {
		return err
	}
	names, maps, urls := []string{}, []string{}, []string{}
	for _, s := range all.hits {
		names, maps, urls = append(names, s.name), append(maps, s.in), append(urls, s.url)
	}
	return p.Answers.WriteSmall(w, r, suggestions, "no-cache", func(w io.Writer) error {
		return json.NewEncoder(w).Encode([]any{a.query.Text, names, maps, urls})
	})
}
