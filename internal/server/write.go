package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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
	LastChange string `json:"lastChange"`

	// DroppedItemIdentifiers counts the item identifiers of the document that
	// another statement had already.
	DroppedItemIdentifiers int `json:"droppedItemIdentifiers,omitempty"`
}

// putMap publishes a new version of a map.
func (s *Server) putMap(w http.ResponseWriter, r *http.Request) error {
	if coding := strings.ToLower(r.Header.Get("Content-Encoding")); coding != "" && coding != "identity" && coding != "gzip" {
		return problem(http.StatusUnsupportedMediaType, "the content coding %q is not understood; send the document as it is, or gzipped", coding)
	}
	body := http.MaxBytesReader(w, r.Body, s.MaxBody)
	var c store.Collection
	if err := s.view(r, func(v *store.View) error { c = v.Collection; return nil }); err != nil {
		return err
	}
	tm, dropped, err := s.read(body, "request body", c.SP)
	if err != nil {
		return err
	}
	return s.publish(w, r, dropped, func(c store.Collection, prior merge.State) (*fragment.Change, error) {
		next, err := fragment.NameTopics(tm, c.SP, prior)
		if err != nil {
			return nil, problem(http.StatusUnprocessableEntity, "%s", err)
		}
		return fragment.Diff(prior, next)
	})
}

// deleteTopic publishes an empty topic.
func (s *Server) deleteTopic(w http.ResponseWriter, r *http.Request) error {
	var last store.Entry
	err := s.view(r, func(v *store.View) error {
		e, err := lastEntry(v, r)
		if err == nil {
			last = *e
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.publish(w, r, 0, func(_ store.Collection, prior merge.State) (*fragment.Change, error) {
		t, err := prior.Topic(last.TopicSI)
		if err != nil {
			return nil, err
		}
		if t == nil {
			return &fragment.Change{}, nil // deleted already
		}
		if t.TopicSI() != last.TopicSI {
			return nil, problem(http.StatusConflict, "the identifier %s belongs to topic %s now: delete that", last.TopicSI, t.TopicSI())
		}
		mentions, err := prior.Mentions(last.TopicSI)
		if err != nil {
			return nil, err
		}
		return fragment.Delete(prior, last.TopicSI, mentions)
	})
}

// publish publishes the change that decide makes of the published state, and
// answers with what it was.
func (s *Server) publish(w http.ResponseWriter, r *http.Request, dropped int, decide func(store.Collection, merge.State) (*fragment.Change, error)) error {
	start := s.Now()
	var change *fragment.Change
	c, err := s.Store.Publish(r.Context(), mux.Vars(r)["map"], func(c store.Collection, prior merge.State) (*fragment.Change, error) {
		var err error
		change, err = decide(c, prior)
		return change, err
	})
	if err != nil {
		return err
	}
	if !change.Empty() {
		s.Logger.Info("published", "collection", c.Name, "added", change.Added, "updated", change.Updated,
			"deleted", change.Deleted, "took", s.Now().Sub(start).Round(time.Millisecond))
		s.afterChange(c)
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(Published{
		Collection: c.Name, Added: change.Added, Updated: change.Updated, Deleted: change.Deleted,
		Topics: c.Topics, LastChange: feeds.FormatTime(c.Updated),
		DroppedItemIdentifiers: dropped,
	})
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
	switch tooBig := (*http.MaxBytesError)(nil); {
	case limited.left < 0:
		return nil, 0, &http.MaxBytesError{Limit: s.MaxBody}
	case errors.As(limited.err, &tooBig):
		return nil, 0, tooBig
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
