package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/gorilla/mux"
	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Published is the answer to a change: how many entries it made, and the time
// of the collection's last change.
type Published struct {
	Collection string `json:"collection"`
	Added      int    `json:"added"`
	Updated    int    `json:"updated"`
	Deleted    int    `json:"deleted"`
	Topics     int    `json:"topics"`
	LastChange string `json:"lastChange,omitempty"`

	// DroppedItemIdentifiers counts the item identifiers of the document that
	// another statement had already.
	DroppedItemIdentifiers int `json:"droppedItemIdentifiers,omitempty"`
}

// put publishes a new version of a map, or, where the body is JSON, changes the
// settings of the collection.
func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && media == "application/json" {
		return s.putCollection(w, r)
	}
	return s.fewUploads(s.putVersion)(w, r)
}

// putVersion publishes the document in the body. The first version of a map goes
// the way that is made for that.
func (s *Server) putVersion(w http.ResponseWriter, r *http.Request) error {
	empty := false
	err := s.view(r, func(v *store.View) error { empty = v.Head == 0; return nil })
	switch {
	case errors.Is(err, store.ErrNotFound):
		return problem(http.StatusNotFound, "there is no collection %q; create it with its settings first: PUT {} as application/json", mux.Vars(r)["map"])
	case err != nil:
		return err
	case empty:
		return s.putFirst(w, r)
	}
	return s.publishBody(w, r, newVersion)
}

func (s *Server) putFirst(w http.ResponseWriter, r *http.Request) error {
	tm, was, dropped, err := s.readVersion(w, r)
	if err != nil {
		return err
	}
	first, err := fragment.NameTopics(tm, was.SP, nil)
	if err != nil {
		return err
	}
	start := s.Now()
	changed := s.changes.begin(was.Name)
	defer changed()
	c, err := s.Store.FillCollection(r.Context(), was.Name, first, func(c *store.Collection) error { return s.ifMatch(r, c) })
	switch {
	case errors.Is(err, store.ErrExists): // somebody was quicker
		return s.publishRead(w, r, was, dropped, newVersion(tm))
	case err != nil:
		return err
	}
	s.Logger.Info("published", "collection", c.Name, "added", c.Topics, "updated", 0, "deleted", 0, "took", s.Now().Sub(start).Round(time.Millisecond))
	if _, err := s.Store.TakeSnapshot(r.Context(), c.Name, cmp.Or(c.SnapshotsKept, s.SnapshotsKept)); err != nil {
		s.Logger.Warn("no snapshot of the first version yet", "collection", c.Name, "error", err)
	}
	s.afterChange(c)
	return writeJSON(w, http.StatusOK, Published{
		Collection: c.Name, Added: c.Topics, Topics: c.Topics, LastChange: feeds.FormatTime(c.Updated), DroppedItemIdentifiers: dropped,
	})
}

// newVersion decides on the change that makes a map the published state.
func newVersion(tm *tmdm.TopicMap) decision {
	return func(c store.Collection, prior merge.State) (*fragment.Change, error) {
		next, err := fragment.NameTopics(tm, c.SP, prior)
		if err != nil {
			return nil, err
		}
		return fragment.Diff(prior, next)
	}
}

// decision says what is to change in the published state of a collection.
type decision = func(store.Collection, merge.State) (*fragment.Change, error)

// publishBody publishes what decide makes of the XTM document in the body of a
// request to a collection.
func (s *Server) publishBody(w http.ResponseWriter, r *http.Request, decide func(*tmdm.TopicMap) decision) error {
	tm, was, dropped, err := s.readVersion(w, r)
	if err != nil {
		return err
	}
	return s.publishRead(w, r, was, dropped, decide(tm))
}

// readVersion reads the XTM document in the body of a request to a collection,
// and says which collection it was read for.
func (s *Server) readVersion(w http.ResponseWriter, r *http.Request) (tm *tmdm.TopicMap, was store.Collection, dropped int, err error) {
	if err := checkContent(w, r); err != nil {
		return nil, was, 0, err
	}
	err = s.view(r, func(v *store.View) error {
		was = v.Collection
		return s.ifMatch(r, &was) // and again when it is published: this saves the work
	})
	if err != nil {
		return nil, was, 0, err
	}
	tm, dropped, err = s.read(http.MaxBytesReader(w, r.Body, s.MaxBody), "request body", was.SP)
	return tm, was, dropped, err
}

// publishRead publishes what was read for the collection was.
func (s *Server) publishRead(w http.ResponseWriter, r *http.Request, was store.Collection, dropped int, decide decision) error {
	return s.publish(w, r, dropped, func(c store.Collection, prior merge.State) (*fragment.Change, error) {
		if c.Epoch != was.Epoch { // the document was read on the prefix of another
			return nil, problem(http.StatusConflict, "%s was deleted and created anew while the document came; send it again if it belongs there", c.Name)
		}
		return decide(c, prior)
	})
}

// publish publishes the change that decide makes of the published state, and
// answers with what it was.
func (s *Server) publish(w http.ResponseWriter, r *http.Request, dropped int, decide decision) error {
	p, err := s.commit(r.Context(), mux.Vars(r)["map"], dropped, func(c store.Collection, prior merge.State) (*fragment.Change, error) {
		if err := s.ifMatch(r, &c); err != nil {
			return nil, err
		}
		return decide(c, prior)
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}

// commit publishes the change that decide makes of the published state, and says
// what it was.
func (s *Server) commit(ctx context.Context, name string, dropped int, decide decision) (*Published, error) {
	start := s.Now()
	changed := s.changes.begin(name)
	defer changed()
	var change *fragment.Change
	c, err := s.Store.Publish(ctx, name, func(c store.Collection, prior merge.State) (*fragment.Change, error) {
		var err error
		change, err = decide(c, prior)
		return change, err
	})
	if err != nil {
		return nil, err
	}
	if !change.Empty() {
		s.Logger.Info("published", "collection", c.Name, "added", change.Added, "updated", change.Updated,
			"deleted", change.Deleted, "took", s.Now().Sub(start).Round(time.Millisecond))
		s.afterChange(c)
	}
	return &Published{
		Collection: c.Name, Added: change.Added, Updated: change.Updated, Deleted: change.Deleted,
		Topics: c.Topics, LastChange: feeds.FormatTime(c.Updated),
		DroppedItemIdentifiers: dropped,
	}, nil
}

// read reads an XTM document, gzipped or not, on the source locator prefix as
// its base. Item identifiers that a second statement has are dropped, logged and
// counted.
func (s *Server) read(r io.Reader, uri, sp string) (tm *tmdm.TopicMap, dropped int, err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	r = b
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1F, 0x8B}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, 0, problem(http.StatusBadRequest, "%s: not a gzip file: %s", uri, err)
		}
		defer z.Close()
		r = z
	}
	limited := &countedReader{r: r, left: s.MaxBody}
	tm, err = xtm.Read(limited, xtm.Options{
		Base: tmdm.Locator(sp), URI: uri, Lenient: s.Lenient, Limits: s.Limits, DropClashes: true,
		Dropped: func(e *xtm.SyntaxError) {
			if dropped++; dropped <= maxLogged {
				s.Logger.Warn("left out", "error", e)
			}
		},
	})
	var tooSlow *Problem
	switch tooBig := (*http.MaxBytesError)(nil); {
	case limited.left < 0:
		return nil, 0, &http.MaxBytesError{Limit: s.MaxBody}
	case errors.As(limited.err, &tooBig):
		return nil, 0, tooBig
	case errors.As(limited.err, &tooSlow):
		return nil, 0, tooSlow
	case limited.err != nil:
		return nil, 0, problem(http.StatusBadRequest, "%s: cannot be read to its end: %s", uri, limited.err)
	}
	return tm, dropped, err
}

// maxLogged is how many things that were left out of a document are logged.
const maxLogged = 10

// countedReader bounds what a packed body unpacks to, and remembers the error
// that ended it, which the XML reader may report as a truncated document.
type countedReader struct {
	r    io.Reader
	left int64
	err  error
}

func (c *countedReader) Read(p []byte) (int, error) {
	if c.left < 0 {
		return 0, errors.New("too long")
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left+1)])
	c.left -= int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// Import creates a collection from an XTM document and takes its first snapshot.
// c needs Name and SP. uri names the document in errors.
func (s *Server) Import(ctx context.Context, c store.Collection, r io.Reader, uri string) (*store.Collection, error) {
	if err := ValidateName(c.Name); err != nil {
		return nil, err
	}
	if err := fragment.ValidatePrefix(c.SP); err != nil {
		return nil, fmt.Errorf("collection %s: %w", c.Name, err)
	}
	tm, _, err := s.read(r, uri, c.SP)
	if err != nil {
		return nil, err
	}
	named, err := fragment.NameTopics(tm, c.SP, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", uri, err)
	}
	c.DocumentSize = s.DocumentSize
	changed := s.changes.begin(c.Name)
	defer changed()
	created, err := s.Store.CreateCollection(ctx, c, named, func(records int) {
		s.Logger.Debug("importing", "collection", c.Name, "records", records)
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.Store.TakeSnapshot(ctx, c.Name, s.SnapshotsKept); err != nil {
		return nil, err
	}
	return created, nil
}

// ValidateName checks the name of a collection, which stands in URLs.
func ValidateName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("collection name %.80q: 1 to 64 characters are needed", name)
	}
	for i, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case i > 0 && (r == '-' || r == '_'):
		default:
			return fmt.Errorf("collection name %q: use letters, digits, - and _, beginning with a letter or digit", name)
		}
	}
	return nil
}
