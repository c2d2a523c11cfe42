package pages

import (
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// snapshot is one that was taken.
type snapshot struct {
	ID      string
	Updated time.Time // of the last change in it
	Topics  int
	Files   []file
}

// file is a form of a snapshot.
type file struct {
	link
	Bytes int64
}

// snapshots returns the snapshots of a collection, the newest first.
func (p *Pages) snapshots(v *store.View) (all []snapshot, err error) {
	list, err := v.Snapshots()
	for i := range list {
		s := &list[i]
		made := snapshot{ID: s.ID.String(), Updated: s.Updated, Topics: s.Topics}
		for i, form := range p.data(p.URLs.Snapshot(&v.Collection, s.ID), "", v.InRDF()) {
			made.Files = append(made.Files, file{link: form})
			if i < len(store.Forms) && store.Forms[i] == store.SnapshotForm {
				made.Files[i].Bytes = s.Size
			}
		}
		all = append(all, made)
	}
	return all, err
}

// Snapshots answers with the page of the snapshots of a map.
func (p *Pages) Snapshots(w http.ResponseWriter, r *http.Request, v *store.View) error {
	c := &v.Collection
	all, err := p.snapshots(v)
	if err != nil {
		return err
	}
	made := &page{Title: Say(r, texts.Snapshots), Path: p.Trail(r, c), Of: struct {
		Snapshots []snapshot
		Feed      string
		Current   []link
	}{all, p.URLs.Snapshots(c), p.data(p.URLs.Current(c), "", c.InRDF())}}
	if err := p.framed(r, v, made); err != nil {
		return err
	}
	return p.writeEachTime(w, r, "snapshots", made)
}

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

// graphs returns the RDF notations available at an address.
func (p *Pages) graphs(address string) (all []alternate) {
	for _, f := range p.Formats.Exchanged() {
		all = append(all, alternate{f.MediaType(), address + f.URLEnding})
	}
	return all
}

// Snapshot leads to where the page of the snapshots has one.
func (p *Pages) Snapshot(w http.ResponseWriter, r *http.Request, v *store.View) error {
	return p.SeeOther(w, r, p.URLs.Snapshots(&v.Collection)+Ending+"#"+web.Var(r, "id"))
}
