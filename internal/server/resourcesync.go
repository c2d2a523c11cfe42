package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/resources"
	"github.com/tmshare/tmshare/internal/server/hub"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// ResourceSync (ANSI/NISO Z39.99): each collection is a set of resources, which are its live
// topics. What there is at one moment, and what has changed up to one, are files that are made
// once: see package resources. The first who asks for them has to wait until they are made.

// capabilityListURL returns the URL of that of a collection, "" where it has none.
func (s *Server) capabilityListURL(c *store.Collection) string {
	if c.NoResourceSync {
		return ""
	}
	return s.site(c).CapabilityListURL()
}

func (s *Server) resourceSyncRoutes(get func(path string, h web.Handler)) {
	get("/.well-known/resourcesync", s.sourceDescription)
	get("/resourcesync/description-{n:"+resources.SeqPattern+"}.xml", s.sourceDescriptionPart)
	get("/robots.txt", s.robots)

	document := func(name string, h web.Handler) { get("/topicmaps/{map}/resourcesync/"+name, h) }
	document("capabilitylist.xml", s.capabilityList)
	document("changelist.xml", s.waiting.Handler(s.changeList))
	document("changelist-open.xml", s.waiting.Handler(s.openChanges))
	document("changelist-index.xml", s.changeListIndex)
	document("changedump.xml", s.changeDump)
	document("notifications", s.notifications)

	newest := func(name string, file func(*resources.Set) resources.File) {
		document(name, func(w http.ResponseWriter, r *http.Request) error { return s.newestSet(w, r, file) })
	}
	newest("resourcelist.xml", (*resources.Set).ResourceList)
	newest("resourcedump.xml", (*resources.Set).ResourceDump)
	const tag, seq, number = "{tag:" + resources.TagPattern + "}", "{seq:" + resources.SeqPattern + "}", "{n:" + resources.SeqPattern + "}"
	some := func(name string, count func(*resources.Set) int, file func(*resources.Set, int) resources.File) {
		document(name, func(w http.ResponseWriter, r *http.Request) error { return s.setFile(w, r, count, file) })
	}
	packages := func(set *resources.Set) int { return len(set.Packages) }
	some("resourcelist-"+tag+"-"+seq+"-"+number+".xml", func(set *resources.Set) int { return set.Lists }, (*resources.Set).List)
	some("resourcedump-"+tag+"-"+seq+"-"+number+".zip", packages, (*resources.Set).Package)
	some("resourcedump-"+tag+"-"+seq+"-"+number+"-manifest.xml", packages, (*resources.Set).Manifest)
	closed := func(name string, file func(*resources.Part) resources.File) {
		document(name, func(w http.ResponseWriter, r *http.Request) error { return s.closedChanges(w, r, file) })
	}
	closed("changelist-"+tag+"-"+number+".xml", (*resources.Part).ListFile)
	closed("changedump-"+tag+"-"+number+".zip", (*resources.Part).PackageFile)
	closed("changedump-"+tag+"-"+number+"-manifest.xml", (*resources.Part).ManifestFile)

	get("/topicmaps/{map}/mementos/{id:[0-9a-f-]{36}}"+web.WithEndings(mementoForms), s.memento)
	get("/topicmaps/{map}/mementos/{id:[0-9a-f-]{36}}"+web.WithAnEnding(mementoForms)+".patch", s.mementoPatch)
	get("/topicmaps/{map}/timegate/{key:[a-z2-7]{26}}", s.timeGate)
	get("/topicmaps/{map}/timemap/{key:[a-z2-7]{26}}{page:|-[1-9][0-9]{0,17}}", s.timeMap)
}

// site says where everything of a collection is.
func (s *Server) site(c *store.Collection) *resources.Site {
	return &resources.Site{Server: s.BaseURL, Map: s.urls.Map(c), Epoch: c.Epoch, Mirrors: c.Mirrors, Via: c.Via, Hubs: s.ifPublic(c, s.NotificationHubs)}
}

// errNotMade says that files are to be made first.
var errNotMade = errors.New("server: what ResourceSync offers is not made yet")

// source calls f with a collection as it is offered. Where that is not made yet, it is now.
// Lists are there only if f wants them.
func (s *Server) source(w http.ResponseWriter, r *http.Request, lists bool, f func(*resources.Source, *store.View) error) error {
	const tries = 5 // others may delete what is made, or change how it is to be
	name := web.Var(r, "map")
	for range tries {
		err := s.view(r, func(v *store.View) error {
			src, err := s.sourceOf(v, lists)
			if err != nil {
				return err
			}
			return f(src, v)
		})
		if err != errNotMade {
			return err
		}
		if err := s.awaitSource(r, name); err != nil {
			return err
		}
	}
	return busyMaking(name)
}

// sourceOf returns a collection as a Source has it. It is errNotMade where some of that is
// missing.
func (s *Server) sourceOf(v *store.View, lists bool) (*resources.Source, error) {
	if v.NoResourceSync {
		return nil, web.Problemf(http.StatusNotFound, "%s is not offered by ResourceSync", v.Name)
	}
	src := &resources.Source{Site: *s.site(&v.Collection), Collection: &v.Collection}
	var err error
	if src.Sets, err = s.keeper.Resources.Sets(v, &src.Site); err != nil {
		return nil, err
	}
	if src.Changes, err = resources.ChangesOf(v); err != nil {
		return nil, err
	}
	if len(src.Sets) == 0 || src.Changes == nil || src.Changes.Pruned(v.Horizon) {
		return nil, errNotMade
	}
	if !lists {
		return src, nil
	}
	if src.Lists, err = resources.ChangeLists(v); err != nil {
		return nil, err
	}
	for i := range src.Lists {
		part, err := s.keeper.Resources.Part(v, &src.Site, src.Lists[i].Number)
		if err != nil {
			return nil, err
		}
		if part == nil {
			return nil, errNotMade
		}
		src.Parts = append(src.Parts, part)
	}
	return src, nil
}

// writeChanges answers with a document that the log is read for. It is made only for those
// who do not know it, and where it was not made lately. Hubs are told when a topic changes.
func (s *Server) writeChanges(w http.ResponseWriter, r *http.Request, isTopic bool, write func(*resources.Source, io.Writer, *store.View) error) error {
	return s.source(w, r, false, func(src *resources.Source, v *store.View) error {
		if isTopic {
			hub.AddLinks(w.Header(), s.hubsOf(&v.Collection), src.ChangeListURL())
		}
		state := stateOf(&v.Collection) + src.Tag() + fmt.Sprint(src.Changes.Closed, src.Changes.Open, src.Changes.OpenFrom)
		for _, set := range src.Sets {
			state += fmt.Sprint(" ", set.Seq)
		}
		w.Header().Set("Vary", "Accept-Encoding")
		w.Header().Set("Content-Type", resourcesync.MediaTypeXML)
		return s.answers.WriteBytes(w, r, s.stateTag(r, state), cacheShortly, func() ([]byte, error) {
			var b bytes.Buffer
			err := write(src, &b, v)
			return b.Bytes(), err
		})
	})
}

func (s *Server) changeList(w http.ResponseWriter, r *http.Request) error {
	return s.writeChanges(w, r, true, (*resources.Source).WriteChangeList)
}

func (s *Server) openChanges(w http.ResponseWriter, r *http.Request) error {
	return s.writeChanges(w, r, false, (*resources.Source).WriteOpenChanges)
}

func (s *Server) writeListed(w http.ResponseWriter, r *http.Request, write func(*resources.Source, io.Writer) error) error {
	return s.source(w, r, true, func(src *resources.Source, v *store.View) error {
		return s.answers.WriteSmall(w, r, resourcesync.MediaTypeXML, cacheShortly, func(to io.Writer) error { return write(src, to) })
	})
}

func (s *Server) capabilityList(w http.ResponseWriter, r *http.Request) error {
	return s.writeListed(w, r, (*resources.Source).WriteCapabilityList)
}

func (s *Server) changeListIndex(w http.ResponseWriter, r *http.Request) error {
	return s.writeListed(w, r, (*resources.Source).WriteChangeListIndex)
}

func (s *Server) changeDump(w http.ResponseWriter, r *http.Request) error {
	return s.writeListed(w, r, (*resources.Source).WriteChangeDump)
}

// notifications answers at the topic of notifications, which are posted to hubs: its headers say to which (WebSub §4, Discovery).
func (s *Server) notifications(w http.ResponseWriter, r *http.Request) error {
	return s.view(r, func(v *store.View) error {
		site := s.notifies(&v.Collection)
		if site == nil {
			return web.Problemf(http.StatusNotFound, "no hub is told of changes of %s; read the change list at %s instead", v.Name, s.site(&v.Collection).ChangeListURL())
		}
		hub.AddLinks(w.Header(), site.Hubs, site.NotificationsURL())
		w.Header().Set("Cache-Control", cacheShortly)
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// newestSet answers with a file of the newest set.
func (s *Server) newestSet(w http.ResponseWriter, r *http.Request, file func(*resources.Set) resources.File) error {
	var f resources.File
	var tag string
	err := s.source(w, r, false, func(src *resources.Source, _ *store.View) error {
		f, tag = file(src.Sets[0]), s.stateTag(r, src.Tag()+fmt.Sprint(src.Sets[0].Seq))
		return nil
	})
	if err != nil {
		return err
	}
	return s.serveFile(w, r, f, tag, cacheShortly)
}

// setFile answers with a file of the set that the URL names.
func (s *Server) setFile(w http.ResponseWriter, r *http.Request, count func(*resources.Set) int, file func(*resources.Set, int) resources.File) error {
	var f *resources.File
	tag, seq := web.Var(r, "tag"), web.Var(r, "seq")
	err := s.source(w, r, false, func(src *resources.Source, _ *store.View) error {
		for _, set := range src.Sets {
			if tag != src.Tag() || seq != strconv.FormatUint(set.Seq, 10) {
				continue
			}
			n, err := strconv.Atoi(web.Var(r, "n"))
			if err != nil || n < 1 || n > count(set) {
				return web.Problemf(http.StatusNotFound, "there are the numbers 1 to %d", count(set))
			}
			one := file(set, n)
			f = &one
			return nil
		}
		return web.Problemf(http.StatusGone, "this is not kept any more; the list of resources is at %s", src.ResourceListURL())
	})
	if err != nil {
		return err
	}
	return s.serveFile(w, r, *f, web.Digest([]byte(r.URL.Path)), cacheForEver)
}

// closedChanges answers with a file of the closed change list that the URL names.
func (s *Server) closedChanges(w http.ResponseWriter, r *http.Request, file func(*resources.Part) resources.File) error {
	var f resources.File
	tag := web.Var(r, "tag")
	err := s.source(w, r, false, func(src *resources.Source, v *store.View) error {
		n, err := strconv.ParseUint(web.Var(r, "n"), 10, 64)
		if err != nil || n == 0 || tag == src.Tag() && n > src.Changes.Closed {
			return web.Problemf(http.StatusNotFound, "there are no such changes yet; the lists are at %s", src.ChangeListIndexURL())
		}
		part, err := s.keeper.Resources.Part(v, &src.Site, n)
		switch {
		case err != nil:
			return err
		case tag != src.Tag():
		case part != nil:
			f = file(part)
			return nil
		default:
			lists, err := resources.ChangeLists(v)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(lists, func(l resources.ChangeList) bool { return l.Number == n }) {
				return errNotMade
			}
		}
		return web.Problemf(http.StatusGone, "these changes are not kept any more; whoever lacks them starts again from the list of resources at %s", src.ResourceListURL())
	})
	if err != nil {
		return err
	}
	return s.serveFile(w, r, f, web.Digest([]byte(r.URL.Path)), cacheForEver)
}

// serveFile answers with a file, the gzipped copy if there is one and the client takes it.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, f resources.File, tag, cache string) error {
	h := w.Header()
	in := []web.Coding{web.Identity}
	if f.Packed {
		h.Set("Vary", "Accept-Encoding")
		in = []web.Coding{web.Gzipped, web.Identity}
	}
	h.Set("Content-Type", f.MediaType)
	h.Set("Cache-Control", cache)
	return web.WriteKept(w, r, web.Validator{Tag: tag}, func(c web.Coding) (web.Kept, error) {
		file, err := s.keeper.Resources.Open(r.Context(), f, c == web.Gzipped)
		if errors.Is(err, os.ErrNotExist) {
			return web.Kept{}, fmt.Errorf("%w: it was replaced a moment ago; ask again", store.ErrGone)
		}
		if err != nil {
			return web.Kept{}, err
		}
		return web.KeptFile(file), nil
	}, in...)
}

// awaitSource waits for what ResourceSync offers of a collection, but not for long: making it
// goes on when the client has gone.
func (s *Server) awaitSource(r *http.Request, name string) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.SlowClientTimeout)
	defer cancel()
	err := s.keeper.AwaitSource(ctx, name)
	if r.Context().Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return busyMaking(name)
	}
	return err
}

func busyMaking(name string) error {
	p := web.Problemf(http.StatusServiceUnavailable, "the lists of %s are being made; try again", name)
	p.RetryAfter = 30 * time.Second
	return p
}
