package server

import (
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment/stream"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// bundleEnding is that of the address of a document of the fragments feed with the fragments.
const bundleEnding = ".bundle"

// The forms of feeds. VersionForms are those in which the versions of topics are available: those in which they are
// kept.
var (
	FeedForms          = []web.Form{web.NewForm("", feeds.MediaTypeAtom, "text/xml")}
	fragmentsFeedForms = append(FeedForms, web.NewForm(bundleEnding, feeds.MediaTypeBundle))
	VersionForms       = formsOf(dataFormats(nil))
)

// dataFormats returns the formats of topics and maps (SDShare 2012, fragments and snapshots in RDF, needs more than
// XTM). Snapshots are converted from the stored ones in XTM 2.1, all others from the map in the state of an entry.
func dataFormats(r formats.Registry) (all []*formats.Format) {
	for _, v := range store.Forms {
		all = append(all, formats.StoredAs(v))
	}
	return append(all, r.Exchanged()...)
}

func formsOf(all []*formats.Format) (forms []web.Form) {
	for _, f := range all {
		forms = append(forms, web.NewForm(f.URLEnding, f.MediaTypes...))
	}
	return forms
}

// offered removes the versions of XTM that are not offered, and, unless exchanged, the formats of extensions.
func (s *Server) offered(versions []xtm.Version, exchanged bool) (all []*formats.Format, forms []web.Form) {
	for i, f := range s.dataFormats {
		if f.Exchange != nil && exchanged || slices.Contains(versions, f.Stored) {
			all, forms = append(all, f), append(forms, s.dataForms[i])
		}
	}
	return all, forms
}

// choose returns the format that a request accepts, among the offered ones. were states that the formats of extensions
// were offered before: formats that were never offered are not found.
func (s *Server) choose(w http.ResponseWriter, r *http.Request, versions []xtm.Version, exchanged,
	were bool) (*formats.Format, error) {
	all, forms := s.offered(versions, exchanged)
	i, err := web.Choose(w, r, forms)
	if err == nil {
		return all[i], nil
	}
	ending := web.Var(r, web.EndingVar)
	never := func(f *formats.Format) bool { return f.URLEnding == ending && f.Exchange != nil }
	if !exchanged && !were && slices.ContainsFunc(s.dataFormats, never) {
		err = web.NeverOffered(forms)
	}
	return nil, err
}

// formLinks returns the links to all forms of a fragment or a snapshot: as TMShare and SDShare name them, and as
// alternates for feed readers. SDShare of the CWA era knows XTM alone, as does TMShare.
func (s *Server) formLinks(href string, exchanged bool, sdshare, cwa feeds.Rel) (links []feeds.Link) {
	all, _ := s.offered(store.Forms[:], exchanged)
	for _, f := range all {
		rels := []feeds.Rel{feeds.RelTopicMapData, sdshare, cwa, "alternate"}
		if f.Exchange != nil {
			rels = []feeds.Rel{sdshare, "alternate"}
		}
		for _, rel := range rels {
			links = append(links, feeds.Link{Rel: rel, Type: f.MediaType(), Href: href + f.URLEnding})
		}
	}
	return links
}

// writeConverted writes a snapshot in another form than the stored one. It may open the file twice. If the file's
// content is damaged, it returns an error, whatever it has written.
func writeConverted(w io.Writer, f *formats.Format, sp string, open func() (web.File, error)) (err error) {
	unpacked := func() (io.ReadCloser, error) {
		packed, err := open()
		if err != nil {
			return nil, err
		}
		z, err := gzip.NewReader(packed)
		if err != nil {
			packed.Close()
			return nil, err
		}
		return formats.ReadCloser{Reader: z, Closer: packed}, nil
	}
	// What was published has passed the limits that held then.
	const most = 1 << 30
	own := xtm.Options{Base: tmdm.Locator(sp), Limits: xtm.Limits{Token: most, Locator: most, Themes: most, Roles: most}}
	whole := func(read func(io.Reader) error) error {
		r, err := unpacked()
		if err != nil {
			return err
		}
		defer r.Close()
		return read(r)
	}
	if f.Exchange != nil {
		err = f.Snapshot(w, sp, stream.Snapshot(unpacked, own))
	} else {
		err = whole(func(r io.Reader) error { return xtm.Copy(w, f.Stored, r, own) })
	}
	if err == nil {
		return nil
	}
	openErr := whole(func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r) // which compares the checksum
		return err
	})
	if openErr != nil {
		return fmt.Errorf("the file of a snapshot cannot be unpacked; \"check --repair\" makes another one: %w", openErr)
	}
	return err
}
