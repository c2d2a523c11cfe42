package server

import (
	"net/http"
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// inXTM is a table of the XTM forms of a thing: those in which fragments, snapshots and records are kept.
func inXTM[T any](write func(*Server, http.ResponseWriter, *http.Request, T, xtm.Version) error) (table []web.Representation[*Server, T]) {
	for _, v := range store.Forms {
		f := formats.Stored(v)
		table = append(table, web.Representation[*Server, T]{Form: web.NewForm(f.URLEnding, f.MediaTypes...), Write: func(s *Server, w http.ResponseWriter, r *http.Request, of T) error {
			return write(s, w, r, of, v)
		}})
	}
	return table
}

// offered leaves out of a table of XTM forms the versions that are not offered.
func offered[T any](table []web.Representation[*Server, T], versions []xtm.Version) []web.Representation[*Server, T] {
	return slices.DeleteFunc(slices.Clone(table), func(p web.Representation[*Server, T]) bool {
		return !slices.ContainsFunc(versions, func(v xtm.Version) bool { return ending(v) == p.Ending })
	})
}

// ending is that of the addresses that offer an XTM version alone.
func ending(v xtm.Version) string { return formats.Stored(v).URLEnding }

type feedTable = []web.Representation[*Server, feedDocument]

// bundleEnding is that of the address of a document of the fragments feed with the fragments.
const bundleEnding = ".bundle"

// The tables. A new form of something is a row here.
var (
	atomForm  = web.NewForm("", feeds.MediaTypeAtom, "text/xml")
	feedForms = feedTable{{Form: atomForm, Write: (*Server).writeAtomDocument}}
	// The fragments feed is available with the fragments in it, too.
	fragmentsFeedForms = append(feedForms, web.Representation[*Server, feedDocument]{Form: web.NewForm(bundleEnding, feeds.MediaTypeBundle), Write: (*Server).writeBundle})
	// Feeds that are streamed, as all records are in them.
	completeForms = []web.Representation[*Server, stream]{{Form: atomForm, Write: (*Server).writeStream}}
	topicForms    = inXTM((*Server).writeRecord)
	fragmentForms = inXTM((*Server).writeFragment)
	snapshotForms = inXTM((*Server).writeSnapshotFile)
	currentForms  = inXTM((*Server).writeCurrent)
)
