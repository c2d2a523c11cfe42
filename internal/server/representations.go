package server

import (
	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/dataforms"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

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
	topicForms    = dataforms.Table((*Server).writeRecord)
	fragmentForms = dataforms.Table((*Server).writeFragment)
	snapshotForms = dataforms.Table((*Server).writeSnapshotFile)
	currentForms  = dataforms.Table((*Server).writeCurrent)
	// VersionForms are the forms in which the versions of topics are available: those in which they are kept.
	VersionForms = dataforms.Offered(topicForms, store.Forms[:], false)
)
