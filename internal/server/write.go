package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// put publishes a new version of a map, or, if the body is JSON, changes the
// settings of the collection.
func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	if err := store.ValidateName(web.Var(r, "map")); err != nil {
		return web.Problemf(http.StatusUnprocessableEntity, "%s", err)
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && media == "application/json" {
		if isDryRun(r) {
			return web.Problemf(http.StatusUnsupportedMediaType,
				"settings have no dry run: send the map as XTM, or the settings to the address without /dry-run")
		}
		return s.putCollection(w, r)
	}
	return s.FewUploads(s.putVersion)(w, r)
}

// putVersion publishes the document in the body as the whole map.
func (s *Server) putVersion(w http.ResponseWriter, r *http.Request) error {
	limit, err := s.maxDelete(r)
	if err != nil {
		return err
	}
	err = s.publish(w, r, publish.Publication{
		Read: s.bodyOf(w, r), Decide: publish.NewVersion(limit), Version: true,
		Missing: func() (store.Collection, error) { return s.missing(r) },
	})
	former, is := errors.AsType[*store.FormerError](err)
	if errors.Is(err, store.ErrNotFound) && (!is || !former.Leads()) {
		return web.Problemf(http.StatusNotFound,
			"there is no collection %q; create it with its settings first: PUT {} as application/json", web.Var(r, "map"))
	}
	return err
}

// requestBody is the name of the document in a request, for errors.
const requestBody = "request body"

// bodyOf reads the document in the body of a request.
func (s *Server) bodyOf(w http.ResponseWriter, r *http.Request) func(sp string) (*tmdm.TopicMap, *xtm.Tally, error) {
	return func(sp string) (*tmdm.TopicMap, *xtm.Tally, error) {
		if err := s.checkContent(w, r); err != nil {
			return nil, nil, err
		}
		asked, kind := r.URL.Query(), r.Header.Get("Content-Type")
		for _, f := range s.Formats {
			for _, name := range f.Asks {
				if format := s.Formats.ToRead(kind); asked.Has(name) && !slices.Contains(format.Asks, name) {
					return nil, nil, web.Problemf(http.StatusBadRequest,
						"?%s= says how a document in %s is read, and this one is in %s: leave it out", name, f, format)
				}
			}
		}
		return s.Reader.ReadTyped(r.Context(), r.Body, kind, asked, requestBody, sp)
	}
}

// publish publishes for a request, and answers with the changes.
func (s *Server) publish(w http.ResponseWriter, r *http.Request, pub publish.Publication) error {
	var err error
	otherwise := pub.Note
	if pub.Author, pub.Note, err = s.attribution(r); err != nil {
		return err
	}
	pub.Note = cmp.Or(pub.Note, otherwise)
	pub.Collection, pub.DryRun = web.Var(r, "map"), isDryRun(r)
	pub.RDF = s.Formats.ToRead(r.Header.Get("Content-Type")).Exchange != nil
	pub.Allowed = func(c *store.Collection) error { return s.ifMatch(r, c) }
	p, err := s.Publisher.Publish(r.Context(), pub)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, p)
}

// Import creates a collection from an XTM document and takes its first snapshot.
// c needs Name and SP. uri names the document in errors.
func (s *Server) Import(ctx context.Context, c store.Collection, r io.Reader, uri string) (*store.Collection, error) {
	return s.create(ctx, c, uri, false, func(sp string) (*tmdm.TopicMap, error) {
		tm, _, err := s.Reader.Read(ctx, r, formats.Default, uri, sp)
		return tm, err
	})
}

// ImportFile does the same with a file and those that it merges in. [Server.Watch] can follow file then.
func (s *Server) ImportFile(ctx context.Context, c store.Collection, file *publish.Watched) (*store.Collection, error) {
	return s.create(ctx, c, file.File, s.Reader.IsExchanged(file.File), func(sp string) (*tmdm.TopicMap, error) {
		return s.Reader.First(ctx, file, sp)
	})
}

func (s *Server) create(ctx context.Context, c store.Collection, uri string, graph bool,
	read func(string) (*tmdm.TopicMap, error)) (*store.Collection, error) {
	if err := store.ValidateName(c.Name); err != nil {
		return nil, err
	}
	c.DocumentSize = s.DocumentSize
	return s.Publisher.Create(ctx, c, uri, graph, read)
}

// maxDelete returns the number of topics that the version in a request may delete.
func (s *Server) maxDelete(r *http.Request) (losses.Limit, error) {
	limit := s.MaxDelete
	if given := r.Header.Get(problems.MaxDeleteHeader); given != "" {
		if err := limit.UnmarshalText([]byte(given)); err != nil {
			return limit, web.Problemf(http.StatusBadRequest, "%s: %s", problems.MaxDeleteHeader, err)
		}
	}
	return limit, nil
}

// Headers for the author of a change, and the reason.
const (
	authorHeader = "TMShare-Author"
	noteHeader   = "TMShare-Note"
)

// attribution returns the author of the change in a request, and the reason. A token with a name determines the author.
func (s *Server) attribution(r *http.Request) (author, note string, err error) {
	given := map[string]string{}
	for name, most := range map[string]int{authorHeader: publish.MaxAuthor, noteHeader: publish.MaxNote} {
		text := strings.TrimSpace(r.Header.Get(name))
		if len(text) > most || !utf8.ValidString(text) {
			return "", "", web.Problemf(http.StatusBadRequest, "%s: at most %d bytes of UTF-8 are taken", name, most)
		}
		given[name] = text
	}
	author = given[authorHeader]
	if name := s.Writers.NameOf(r); name != "" {
		if author != "" && author != name {
			return "", "", web.Problemf(http.StatusForbidden, "the token is that of %s: leave the author out (%s)", name,
				authorHeader)
		}
		author = name
	}
	return author, given[noteHeader], nil
}

type dryRunKey struct{}

// dryRun makes a writing handler return the possible changes without publishing.
func dryRun(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return h(w, r.WithContext(context.WithValue(r.Context(), dryRunKey{}, true)))
	}
}

func isDryRun(r *http.Request) bool { return r.Context().Value(dryRunKey{}) != nil }

// missing returns a collection for a dry run if there is none of the name. ?sp= is its source locator prefix.
func (s *Server) missing(r *http.Request) (store.Collection, error) {
	name := web.Var(r, "map")
	var given *string
	if q := r.URL.Query(); q.Has("sp") {
		given = new(q.Get("sp"))
	}
	sp, err := s.PrefixFor(r.Context(), name, given)
	return store.Collection{Name: name, SP: sp}, err
}

// FewUploads limits the number of documents that are read into memory at the same time. Others wait for a short time,
// unread. A small one does not wait for large ones. A body with too large a Content-Length is not read: net/http closes
// the connection instead.
func (s *Server) FewUploads(h web.Handler) web.Handler {
	large := s.inTurn(h)
	return func(w http.ResponseWriter, r *http.Request) error {
		switch {
		case r.ContentLength > s.MaxBody:
			return s.Reader.TooLarge(requestBody)
		case !readSmall(r):
			return large(w, r)
		}
		return web.InTurn(r, s.smallUploads, s.SlowClientTimeout/3, "small uploads", func() error { return h(w, r) })
	}
}

// inTurn is FewUploads for requests with as much work as a large document, whatever the size of the body.
func (s *Server) inTurn(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return web.InTurn(r, s.uploads, s.SlowClientTimeout/3, "uploads", func() error { return h(w, r) })
	}
}

const (
	maxSmallUploads = 16       // at a time
	smallUpload     = 64 << 10 // bytes of the body of one, at most
)

// readSmall reads the body of a request, and reports whether it is small, by its headers, and not packed. The request
// has the same body as before, and the same error if the client sends less.
func readSmall(r *http.Request) bool {
	if r.ContentLength < 0 || r.ContentLength > smallUpload || r.Header.Get("Content-Encoding") != "" {
		return false
	}
	content, err := io.ReadAll(r.Body)
	r.Body = &readBody{Reader: *bytes.NewReader(content), Closer: r.Body, err: err}
	return !formats.IsGzipped(content)
}

// readBody is a body that was read until an error; nil: to its end.
type readBody struct {
	bytes.Reader
	io.Closer
	err error
}

func (b *readBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

// checkContent checks the headers of the body of a request: a type must be one of a topic map, and a coding must be
// known. It also accepts the default type of curl.
func (s *Server) checkContent(w http.ResponseWriter, r *http.Request) error {
	switch c := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); c {
	case "", "identity", "gzip":
	default:
		w.Header().Set("Accept-Encoding", "gzip")
		return web.Problemf(http.StatusUnsupportedMediaType,
			"the content coding %q is not understood; send the document as it is, or gzipped", c)
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(given)
	switch {
	case err != nil:
	case strings.HasSuffix(media, "+xml"), strings.HasSuffix(media, "/xml"), media == "text/plain",
		media == "application/octet-stream", media == "application/x-www-form-urlencoded",
		media == "application/gzip", media == "application/x-gzip":
		return nil
	case s.Formats.ToRead(media) != formats.Default:
		return nil
	}
	taken := s.takenTypes()
	w.Header().Set("Accept", taken)
	return web.Problemf(http.StatusUnsupportedMediaType, "a topic map is expected (%s), not %q", taken, given)
}

// takenTypes are the media types of documents that are read.
func (s *Server) takenTypes() string {
	var types []string
	for _, f := range s.Formats.Readable() {
		if len(f.MediaTypes) > 0 {
			types = append(types, f.MediaType())
		}
	}
	return strings.Join(append(types, "application/xml", "application/gzip"), ", ")
}
