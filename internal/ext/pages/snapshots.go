package pages

import (
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
)

// snapshot is one that was taken.
type snapshot struct {
	Updated time.Time // of the last change in it
	Topics  int
	Files   []file
}

// file is a form of a snapshot.
type file struct {
	link
	Bytes int64
}

// snapshots returns those of a collection, the newest first.
func (p *Pages) snapshots(v *store.View) (all []snapshot, err error) {
	list, err := v.Snapshots()
	for i := range list {
		s := &list[i]
		made := snapshot{Updated: s.Updated, Topics: s.Topics}
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
	return p.writeEachTime(w, r, "snapshots", &page{Title: texts.Snapshots, Path: p.Trail(c), Search: p.searchField(c, ""), Of: struct {
		Snapshots []snapshot
		Feed      string
		Current   []link
	}{all, p.URLs.Snapshots(c), p.data(p.URLs.Current(c), "", c.InRDF())}})
}
