// Package dataforms has the forms in which topics and maps are available: the versions of XTM, and the notations of
// RDF (SDShare 2012, fragments and snapshots in RDF). Snapshots are made of the stored ones in XTM 2.1, all else of the
// map as an entry shows it.
package dataforms

import (
	"net/http"
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// all are the formats, XTM first.
var all = func() (of []*formats.Format) {
	for _, v := range store.Forms {
		of = append(of, formats.Stored(v))
	}
	return append(of, formats.ServedRDF()...)
}()

// Table is a table of all forms of a thing T, with which a server S answers by write.
func Table[S, T any](write func(S, http.ResponseWriter, *http.Request, T, *formats.Format) error) []web.Representation[S, T] {
	table := make([]web.Representation[S, T], len(all))
	for i, f := range all {
		table[i] = web.Representation[S, T]{Form: web.NewForm(f.URLEnding, f.MediaTypes...), Write: func(s S, w http.ResponseWriter, r *http.Request, of T) error {
			return write(s, w, r, of, f)
		}}
	}
	return table
}

// Offered leaves out of a table the versions of XTM that are not offered, and RDF where that is not.
func Offered[S, T any](table []web.Representation[S, T], versions []xtm.Version, inRDF bool) (kept []web.Representation[S, T]) {
	for i, f := range all {
		if f.Statements != nil && inRDF || slices.Contains(versions, f.Stored) {
			kept = append(kept, table[i])
		}
	}
	return kept
}

// Links returns the links to all forms of a fragment or a snapshot: as TMShare and SDShare name them, and as
// alternates for feed readers. SDShare of the CWA era knows no RDF, nor does TMShare.
func Links(href string, inRDF bool, sdshare, cwa feeds.Rel) (links []feeds.Link) {
	for _, f := range all {
		rels := []feeds.Rel{feeds.RelTopicMapData, sdshare, cwa, "alternate"}
		if f.Statements != nil {
			if !inRDF {
				continue
			}
			rels = []feeds.Rel{sdshare, "alternate"}
		}
		for _, rel := range rels {
			links = append(links, feeds.Link{Rel: rel, Type: f.MediaType(), Href: href + f.URLEnding})
		}
	}
	return links
}
