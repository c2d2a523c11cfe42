package resourcesync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

func (p *part) routes(get func(path string, h web.Handler)) {
	get("/.well-known/resourcesync", p.sourceDescription)
	get("/resourcesync/description-{n:"+addresses.SeqPattern+"}.xml", p.sourceDescriptionPart)
	get("/robots.txt", p.robots)

	document := func(name string, h web.Handler) { get("/topicmaps/{map}/resourcesync/"+name, h) }
	document("capabilitylist.xml", p.listed((*resources.Source).WriteCapabilityList))
	document("changelist.xml", p.server.Waiting(p.changes(true, (*resources.Source).WriteChangeList)))
	document("changelist-open.xml", p.server.Waiting(p.changes(false, (*resources.Source).WriteOpenChanges)))
	document("changelist-index.xml", p.listed((*resources.Source).WriteChangeListIndex))
	document("changedump.xml", p.listed((*resources.Source).WriteChangeDump))

	document("resourcelist.xml", p.newestSet((*resources.Set).ResourceList))
	document("resourcedump.xml", p.newestSet((*resources.Set).ResourceDump))
	const tag, seq, number = "{tag:" + resources.TagPattern + "}", "{seq:" + addresses.SeqPattern + "}",
		"{n:" + addresses.SeqPattern + "}"
	lists := func(set *resources.Set) int { return set.Lists }
	packages := func(set *resources.Set) int { return len(set.Packages) }
	document("resourcelist-"+tag+"-"+seq+"-"+number+".xml", p.setFile(lists, (*resources.Set).List))
	document("resourcedump-"+tag+"-"+seq+"-"+number+".zip", p.setFile(packages, (*resources.Set).Package))
	document("resourcedump-"+tag+"-"+seq+"-"+number+"-manifest.xml", p.setFile(packages, (*resources.Set).Manifest))
	document("changelist-"+tag+"-"+number+".xml", p.closedChanges((*resources.Part).ListFile))
	document("changedump-"+tag+"-"+number+".zip", p.closedChanges((*resources.Part).PackageFile))
	document("changedump-"+tag+"-"+number+"-manifest.xml", p.closedChanges((*resources.Part).ManifestFile))

	get("/topicmaps/{map}/mementos/{id:[0-9a-f-]{36}}"+web.WithEndings(server.VersionForms), p.memento)
	get("/topicmaps/{map}/mementos/{id:[0-9a-f-]{36}}"+web.WithAnEnding(server.VersionForms)+".patch", p.mementoPatch)
	get("/topicmaps/{map}/timegate/{key:[a-z2-7]{26}}", p.timeGate)
	get("/topicmaps/{map}/timemap/{key:[a-z2-7]{26}}{page:|-[1-9][0-9]{0,17}}", p.timeMap)
}

// site returns the URLs of a collection's documents.
func (p *part) site(c *store.Collection) *resources.Site {
	return &resources.Site{Server: p.server.BaseURL, Map: p.server.URLs.Map(c), Epoch: c.Epoch,
		Mirrors: c.Mirrors, Via: c.Via}
}

// errNotMade is the error for files that must be made first.
var errNotMade = errors.New("resourcesync: what ResourceSync offers is not made yet")

// source calls f with the source of a collection. If its files are missing, it makes them first. It loads lists only if
// f needs them.
func (p *part) source(r *http.Request, lists bool, f func(*resources.Source, *store.View) error) error {
	const tries = 5 // others may delete files or change the options
	name := web.Var(r, "map")
	for range tries {
		err := p.server.View(r, func(v *store.View) error {
			src, err := p.sourceOf(v, lists)
			if err != nil {
				return err
			}
			return f(src, v)
		})
		if err != errNotMade {
			return err
		}
		if err := p.awaitSource(r, name); err != nil {
			return err
		}
	}
	return busyMaking(name)
}

// sourceOf returns a collection as a Source has it. It is errNotMade where some of that is
// missing.
func (p *part) sourceOf(v *store.View, lists bool) (*resources.Source, error) {
	if !resources.IsOffered(&v.Collection) {
		return nil, web.Problemf(http.StatusNotFound, "%s is not offered by ResourceSync", v.Name)
	}
	src := &resources.Source{Site: *p.site(&v.Collection), Collection: &v.Collection}
	var err error
	if src.Sets, err = p.folder.Sets(v, &src.Site); err != nil {
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
		part, err := p.folder.Part(v, &src.Site, src.Lists[i].Number)
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

// changes serves a document made from the log. It is not made if the client has it, or it was made lately. With
// isTopic, the answer links to the hubs that notify of its changes.
func (p *part) changes(isTopic bool, write func(*resources.Source, io.Writer, *store.View) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return p.source(r, false, func(src *resources.Source, v *store.View) error {
			if isTopic {
				p.server.AddFollowLinks(w.Header(), &v.Collection, src.ChangeListURL())
			}
			state := server.StateOf(&v.Collection) + src.Tag() + fmt.Sprint(src.Changes.Closed, src.Changes.Open,
				src.Changes.OpenFrom)
			for _, set := range src.Sets {
				state += fmt.Sprint(" ", set.Seq)
			}
			w.Header().Set("Vary", "Accept-Encoding")
			w.Header().Set("Content-Type", resourcesync.MediaTypeXML)
			return p.server.Answers.WriteBytes(w, r, p.server.StateTag(r, state), server.CacheShortly, func() ([]byte, error) {
				var b bytes.Buffer
				err := write(src, &b, v)
				return b.Bytes(), err
			})
		})
	}
}

// listed answers with a document that lists others.
func (p *part) listed(write func(*resources.Source, io.Writer) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return p.source(r, true, func(src *resources.Source, _ *store.View) error {
			return p.server.Answers.WriteSmall(w, r, resourcesync.MediaTypeXML, server.CacheShortly, func(to io.Writer) error {
				return write(src, to)
			})
		})
	}
}

// kept is a file of a source, its ETag, and its time to live in caches.
type kept struct {
	resources.File
	tag, cache string
}

// sourceFile answers with a file of a source, which find finds. One that turns out not to be there as it was made is
// made again.
func (p *part) sourceFile(find func(*http.Request, *resources.Source, *store.View) (kept, error)) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		const tries = 3
		for range tries {
			var k kept
			err := p.source(r, false, func(src *resources.Source, v *store.View) (err error) {
				k, err = find(r, src, v)
				return err
			})
			if err == nil {
				err = p.serveFile(w, r, &k)
			}
			if !errors.Is(err, resources.ErrNotThere) {
				return err
			}
			p.server.Logger.Warn(
				"a file of ResourceSync was removed, or is damaged; it is looked for anew, and made again where it must be",
				"error", err)
		}
		return busyMaking(web.Var(r, "map"))
	}
}

// newestSet answers with a file of the newest set.
func (p *part) newestSet(file func(*resources.Set) resources.File) web.Handler {
	return p.sourceFile(func(r *http.Request, src *resources.Source, _ *store.View) (kept, error) {
		return kept{file(src.Sets[0]), p.server.StateTag(r, src.Tag()+fmt.Sprint(src.Sets[0].Seq)), server.CacheShortly}, nil
	})
}

// lasting returns a file with a URL that never changes its content.
func lasting(r *http.Request, f resources.File) kept {
	return kept{f, web.Digest([]byte(r.URL.Path)), server.CacheForEver}
}

// setFile answers with a file of the set that the URL names.
func (p *part) setFile(count func(*resources.Set) int, file func(*resources.Set, int) resources.File) web.Handler {
	return p.sourceFile(func(r *http.Request, src *resources.Source, _ *store.View) (kept, error) {
		for _, set := range src.Sets {
			if web.Var(r, "tag") != src.Tag() || web.Var(r, "seq") != strconv.FormatUint(set.Seq, 10) {
				continue
			}
			n, err := strconv.Atoi(web.Var(r, "n"))
			if err != nil || n < 1 || n > count(set) {
				return kept{}, web.Problemf(http.StatusNotFound, "there are the numbers 1 to %d", count(set))
			}
			return lasting(r, file(set, n)), nil
		}
		return kept{}, web.Problemf(http.StatusGone, "this is no longer kept; the list of resources is at %s",
			src.ResourceListURL())
	})
}

// closedChanges answers with a file of the closed change list that the URL names.
func (p *part) closedChanges(file func(*resources.Part) resources.File) web.Handler {
	return p.sourceFile(func(r *http.Request, src *resources.Source, v *store.View) (kept, error) {
		tag := web.Var(r, "tag")
		n, err := strconv.ParseUint(web.Var(r, "n"), 10, 64)
		if err != nil || n == 0 || tag == src.Tag() && n > src.Changes.Closed {
			return kept{}, web.Problemf(http.StatusNotFound, "there are no such changes yet; the lists are at %s",
				src.ChangeListIndexURL())
		}
		part, err := p.folder.Part(v, &src.Site, n)
		switch {
		case err != nil:
			return kept{}, err
		case tag != src.Tag():
		case part != nil:
			return lasting(r, file(part)), nil
		default:
			lists, err := resources.ChangeLists(v)
			if err != nil {
				return kept{}, err
			}
			if slices.ContainsFunc(lists, func(l resources.ChangeList) bool { return l.Number == n }) {
				return kept{}, errNotMade
			}
		}
		return kept{}, web.Problemf(http.StatusGone,
			"these changes are no longer kept; readers that lack them start again from the list of resources at %s",
			src.ResourceListURL())
	})
}

// serveFile serves a file; its gzipped copy if there is one and the client accepts it.
func (p *part) serveFile(w http.ResponseWriter, r *http.Request, k *kept) error {
	h := w.Header()
	in := []web.Coding{web.Identity}
	if k.Packed {
		h.Set("Vary", "Accept-Encoding")
		in = []web.Coding{web.Gzipped, web.Identity}
	}
	h.Set("Content-Type", k.MediaType)
	h.Set("Cache-Control", k.cache)
	return web.WriteKept(w, r, web.Validator{Tag: k.tag}, func(c web.Coding) (web.File, error) {
		return p.folder.Open(r.Context(), k.File, c == web.Gzipped)
	}, in...)
}

// awaitSource waits a limited time for the files of a collection. Making them continues if the client leaves.
func (p *part) awaitSource(r *http.Request, name string) error {
	ctx, cancel := context.WithTimeout(r.Context(), p.server.SlowClientTimeout)
	defer cancel()
	err := p.await(ctx, name)
	if r.Context().Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return busyMaking(name)
	}
	return problems.NoSpaceFor("the lists of "+name, "Its feeds and its snapshots can be read", err)
}

func busyMaking(name string) error {
	p := web.Problemf(http.StatusServiceUnavailable, "the lists of %s are being made; try again", name)
	p.RetryAfter = 30 * time.Second
	return p
}
