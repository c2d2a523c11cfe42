package server

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// fragmentData is the Topic Map Fragment Data Service of TMShare.
func (s *Server) fragmentData(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		e, err := findEntry(v, r)
		if err != nil {
			return err
		}
		return s.writeFragment(w, r, v, e, cacheForEver)
	})
}

// topicData answers with the fragment of a topic's last entry.
func (s *Server) topicData(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		e, err := lastEntry(v, r)
		if err != nil {
			return err
		}
		return s.writeFragment(w, r, v, e, cacheShortly)
	})
}

// lastEntry returns the last entry of the topic key in the URL.
func lastEntry(v *store.View, r *http.Request) (*store.Entry, error) {
	key := mux.Vars(r)["key"]
	e, err := v.Last(key)
	if err == nil && e == nil {
		err = problem(http.StatusNotFound, "there is no topic with the key %s in %s", key, v.Name)
	}
	return e, err
}

// findTopic leads from ?si= to the topic with that subject identifier.
func (s *Server) findTopic(w http.ResponseWriter, r *http.Request) error {
	si, err := iri.Normalize(r.URL.Query().Get("si"))
	if err != nil {
		return problem(http.StatusBadRequest, "name a topic by its subject identifier: ?si=…")
	}
	return s.view(r, func(v *store.View) error {
		t, err := v.Source().Topic(fragment.Ref(si))
		if err != nil {
			return err
		}
		if t == nil {
			return problem(http.StatusNotFound, "no topic of %s has the subject identifier %s", v.Name, si)
		}
		http.Redirect(w, r, s.mapURL(&v.Collection)+"/topics/"+url.PathEscape(fragment.Key(t.TopicSI())), http.StatusSeeOther)
		return nil
	})
}

func (s *Server) writeFragment(w http.ResponseWriter, r *http.Request, v *store.View, e *store.Entry, cache string) error {
	version, err := negotiateXTM(r, mux.Vars(r)["ext"])
	if err != nil {
		return err
	}
	if !e.Stored {
		setData(w, version, "no-cache")
		w.Header().Set(currentVersion, feeds.FormatTime(v.Updated))
		return v.RenderFragment(w, e, version)
	}
	data, err := v.StoredFragment(e, version)
	if err != nil {
		return err
	}
	setData(w, version, cache)
	tag := etag(data)
	if acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		return nil
	}
	w.Header().Set("ETag", tag[:len(tag)-1]+`-plain"`) // strong tags differ by content coding
	plain, err := unzip(data)
	if err != nil {
		return err
	}
	http.ServeContent(w, withoutRange(r), "", time.Time{}, bytes.NewReader(plain))
	return nil
}

// setData sets what the answers with XTM have in common.
func setData(w http.ResponseWriter, version xtm.Version, cache string) {
	h := w.Header()
	h.Set("Content-Type", mediaType(version))
	h.Set("Vary", "Accept, Accept-Encoding")
	h.Set("Cache-Control", cache)
}

// withoutRange returns r without its Range: parts are served of the stored
// coding only.
func withoutRange(r *http.Request) *http.Request {
	if r.Header.Get("Range") == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Del("Range")
	return r
}

func unzip(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// snapshotData serves a snapshot's file.
func (s *Server) snapshotData(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		version, err := negotiateXTM(r, mux.Vars(r)["ext"])
		if err != nil {
			return err
		}
		snap, err := findSnapshot(v, r)
		if err != nil {
			return err
		}
		f, err := v.OpenSnapshot(snap, version)
		if err != nil {
			return err
		}
		defer f.Close()
		setData(w, version, cacheForEver)
		tag := snap.ID.String() + extension(version)
		if acceptsGzip(r) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("ETag", `"`+tag+`.gz"`)
			http.ServeContent(w, r, "", time.Time{}, f)
			return nil
		}
		w.Header().Set("ETag", `"`+tag+`"`)
		if known(r, `"`+tag+`"`) {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		if r.Method == http.MethodHead {
			return nil
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, z)
		return err
	})
}

// known reports whether the client says that it has the answer with the tag
// already (RFC 9110 §13.1.2, If-None-Match).
func known(r *http.Request, tag string) bool {
	for given := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if given = strings.TrimSpace(given); given == "*" || strings.TrimPrefix(given, "W/") == tag {
			return true
		}
	}
	return false
}

// currentSnapshot streams the map as it is now and says as of when.
func (s *Server) currentSnapshot(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		version, err := negotiateXTM(r, mux.Vars(r)["ext"])
		if err != nil {
			return err
		}
		setData(w, version, "no-store")
		w.Header().Set(currentVersion, feeds.FormatTime(v.Updated))
		packed := acceptsGzip(r)
		if packed {
			w.Header().Set("Content-Encoding", "gzip")
		}
		if r.Method == http.MethodHead {
			return nil
		}
		if !packed {
			return v.WriteSnapshot(w, version)
		}
		z := gzip.NewWriter(w)
		if err := v.WriteSnapshot(z, version); err != nil {
			return err
		}
		return z.Close()
	})
}
