package pages

import (
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
)

// data are the links to all forms of a topic, a fragment or a map at an address, for programs.
func (p *Pages) data(address, query string, inRDF bool) (all []link) {
	for _, form := range store.Forms {
		all = append(all, link{Title: texts.XTM + string(form), URL: address + formats.StoredAs(form).URLEnding + query})
	}
	if inRDF {
		for _, f := range p.Formats.Exchanged() {
			all = append(all, link{Title: f.Title, URL: address + f.URLEnding + query})
		}
	}
	return all
}

// alternate is a link from the head of a page to the same thing in another form.
type alternate struct{ Type, URL string }

// graphs are the notations of RDF of what is at an address.
func (p *Pages) graphs(address string) (all []alternate) {
	for _, f := range p.Formats.Exchanged() {
		all = append(all, alternate{f.MediaType(), address + f.URLEnding})
	}
	return all
}
