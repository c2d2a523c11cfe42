package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/words"
)

// example is an address of a map with a command that uses it.
type example struct {
	texts.Address
	Said, Curl string
}

// API answers with the addresses of a map for programs. Each has an example that can be run: with a topic of the map,
// and the time of its last change.
func (p *Pages) API(w http.ResponseWriter, r *http.Request, v *store.View) error {
	c := &v.Collection
	return p.write(w, r, v, "api", func() (*page, error) {
		si, name, err := exampleOf(v)
		if err != nil {
			return nil, err
		}
		fill := strings.NewReplacer("{si}", url.QueryEscape(si), "{name}", url.QueryEscape(name),
			"{time}", url.QueryEscape(feeds.FormatTime(v.Updated)))
		all := texts.API
		if c.InRDF() {
			for _, f := range p.Formats.Exchanged() {
				all = append(all[:len(all):len(all)], texts.Address{Method: http.MethodGet, Type: f.MediaType(),
					Path: "/snapshots/current" + f.URLEnding, What: texts.Text(Say(r, texts.Graphs, f.Title))})
			}
		}
		var shown []example
		for _, a := range all {
			if si == "" && strings.Contains(a.Path, "{") { // there is no topic to ask for
				continue
			}
			command := []string{texts.Curl}
			if a.Method == http.MethodGet {
				command = append(command, fmt.Sprintf(texts.CurlAccept, a.Type))
			} else {
				if a.Send == "" || a.Method == http.MethodPost {
					command = append(command, "-X "+a.Method)
				}
				command = append(command, a.Send, texts.CurlToken)
			}
			command = append(command, "'"+p.URLs.Map(c)+fill.Replace(a.Path)+"'")
			shown = append(shown, example{a, Say(r, a.What), strings.Join(strings.Fields(strings.Join(command, " ")), " ")})
		}
		return &page{Title: Say(r, texts.Programs), Path: p.Trail(r, c), Of: struct {
			Map      string
			Examples []example
			Links    []feeds.Link
		}{p.URLs.Map(c), shown, p.Links(c)}}, nil
	})
}

// exampleOf returns a subject identifier of a topic of a map, and a word of its name; "" where there is none.
func exampleOf(v *store.View) (si, name string, err error) {
	for t, err := range v.Source().Topics() {
		if err != nil {
			return "", "", err
		}
		text, named := t.BestName(v.Languages()...)
		if first := strings.Fields(text); named && len(first) > 0 && !words.IsOpaque(string(t.TopicSI())) {
			return string(t.TopicSI()), first[0], nil
		}
	}
	return "", "", nil
}
