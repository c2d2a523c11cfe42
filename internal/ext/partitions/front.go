package partitions

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// front is a server in front of partitions. It is safe for concurrent use.
type front struct {
	*server.Server
	partitions []*partition
	up         *prometheus.GaugeVec
	changes    atomic.Int64 // of what is known of the partitions
	known      atomic.Pointer[own]
}

func (f *front) changed() {
	f.changes.Add(1)
	f.ChangedElsewhere()
}

// settles is the time after which two overviews that list a collection are no longer those before and after a move.
const settles = 5 * time.Second

// place is where a collection is.
type place struct {
	here  bool       // at this server
	at    *partition // the one that has it longest; nil: none
	other *partition // has it, too; nil: none
	since time.Time  // the other one has it
}

// at returns where a collection is. A partition that it leaves, or that had another one under this name, counts if no
// other has it. One that moves counts if another server has a different collection of this name.
func (f *front) at(own map[string]listed, name string) (is place) {
	var all, left []place // each of which has it, or had it
	mine, here := own[name]
	id, differ := mine.id, false
	for _, p := range f.partitions {
		l, has := p.has(name)
		id = cmp.Or(id, l.id)
		differ = differ || l.id != "" && l.id != id
		switch {
		case !has:
		case !l.stays || here && !mine.stays:
			left, is.at = append(left, place{at: p, since: l.since}), p
		default:
			all = append(all, place{at: p, since: l.since})
		}
	}
	if differ {
		all = append(all, left...)
	}
	slices.SortStableFunc(all, func(a, b place) int { return a.since.Compare(b.since) })
	is.here = here
	if !here && len(all) > 0 {
		is.at, all = all[0].at, all[1:]
	}
	if len(all) > 0 {
		is.other, is.since = all[0].at, all[0].since
	}
	return is
}

// disputed returns the error for a collection that two servers have: one of them may have an earlier state, so it is
// neither read nor written.
func (is place) disputed(name string) error {
	if is.other == nil || time.Since(is.since) < settles {
		return nil
	}
	servers := "this server and the partition " + is.other.name
	if !is.here {
		servers = "the partitions " + is.at.name + " and " + is.other.name
	}
	return later(time.Minute, "%s both have a collection %s: one may be an earlier state of it, from a backup. It is not "+
		"read or written here until one of them is deleted or renamed at its own server", servers, name)
}

// later returns the error for what may be asked for again after a time.
func later(after time.Duration, format string, args ...any) error {
	p := web.Problemf(http.StatusServiceUnavailable, format, args...)
	p.RetryAfter = after
	return p
}

// reportTwice logs that two servers have a collection, if they still do, and has the overview made anew.
func (f *front) reportTwice(name string) {
	if err := f.at(f.own(context.Background()), name).disputed(name); err != nil {
		f.Logger.Error("a collection is at two servers", "collection", name, "error", err)
	}
	f.changed()
}

// entries returns the entries of the collections of all partitions, one for each name.
func (f *front) entries() (all []feeds.Entry, state string, err error) {
	state = strconv.FormatInt(f.changes.Load(), 10)
	own := f.own(context.Background())
	for _, p := range f.partitions {
		some, known := p.entries()
		if !known {
			return nil, "", f.away(p, "which collections it has is not known yet")
		}
		for i := range some {
			self, _ := some[i].Link("alternate")
			name := path.Base(self.Href)
			is := f.at(own, name)
			if is.here || is.at != p {
				continue
			}
			if is.disputed(name) != nil {
				some[i].Condition = "at two servers"
				some[i].Summary = "at two servers: it is not read or written until one of them deletes or renames it"
				some[i].SummaryLanguage = "en"
			}
			all = append(all, some[i])
		}
	}
	return all, state, nil
}

// own are the names of the collections of this server, as of a listing: those that stay, and those that move or are
// former names.
type own struct {
	listing *store.Listing
	names   map[string]listed
}

func (f *front) own(ctx context.Context) map[string]listed {
	node, err := f.Store.Listing(ctx)
	if err != nil {
		return nil // the store of this server is away, which does not affect the partitions
	}
	if last := f.known.Load(); last != nil && last.listing == node {
		return last.names
	}
	names := make(map[string]listed, len(node.Collections))
	for i := range node.Collections {
		c := &node.Collections[i]
		for _, name := range c.Former {
			names[name] = listed{}
		}
		names[c.Name] = listed{stays: c.Leaving == nil, id: server.DerivedID(c, "topicmap")}
	}
	f.known.Store(&own{node, names})
	return names
}

// elsewhere returns a handler that passes a request on to the partition with its collection. What no server has is
// answered here, but only if that is certain: a server that is away may have it.
func (f *front) elsewhere(r *http.Request) web.Handler {
	rest, is := strings.CutPrefix(r.URL.Path, "/topicmaps/")
	name, below, _ := strings.Cut(rest, "/")
	name, _, _ = strings.Cut(name, ".")
	if !is || store.ValidateName(name) != nil ||
		below == "move" || below == "move/rows" { // a move is from or to this server
		return nil
	}
	at := f.at(f.own(r.Context()), name)
	if err := at.disputed(name); err != nil {
		return func(http.ResponseWriter, *http.Request) error { return err }
	}
	switch {
	case at.here:
		return nil
	case at.at != nil:
		return f.pass(at.at, name)
	}
	return f.unknown(r, name)
}

// unknown asks all partitions for a collection that none of them lists: it is new, or its readers need a token. One
// that was moved to a server without it may come back: it is neither made anew, nor said to be deleted.
func (f *front) unknown(r *http.Request, name string) web.Handler {
	ctx, cancel := context.WithTimeout(r.Context(), askingTakes)
	defer cancel()
	answers := make([]int, len(f.partitions))
	var all sync.WaitGroup
	for i, p := range f.partitions {
		all.Go(func() { answers[i] = p.asked(ctx, r.Header, name) })
	}
	all.Wait()
	var away, deleted, moved web.Handler
	for i, p := range f.partitions {
		switch status := answers[i]; {
		case status == 0 || status >= 500:
			away = func(http.ResponseWriter, *http.Request) error { return f.away(p, "it may have this collection") }
		case status == http.StatusGone:
			deleted = f.pass(p, name)
		case status == http.StatusMisdirectedRequest:
			moved = func(http.ResponseWriter, *http.Request) error {
				return later(pauseWhenAway, "%s was moved from the partition %s to a server that has it no more, or is not "+
					"known here: restore that server, or free the name at the partition (\"collections forget\")", name, p.name)
			}
		case status != http.StatusNotFound:
			return f.pass(p, name)
		}
	}
	_, err := f.Store.Latest(ctx, name)
	if _, former := errors.AsType[*store.FormerError](err); err == nil || former && away == nil { // it is or was here
		return nil
	}
	for _, answer := range []web.Handler{away, deleted, moved} {
		if answer != nil {
			return answer
		}
	}
	return nil
}

const askingTakes = 5 * time.Second

var errNotThere = errors.New("there is no such collection")

// asked asks the partition for a collection, as a client with the tokens in a header. It returns the status of the
// answer; 0: there is none.
func (p *partition) asked(ctx context.Context, tokens http.Header, name string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, p.overview()+"/"+name, nil)
	if err != nil || p.stands() {
		return 0
	}
	for _, name := range []string{"Authorization", "Cookie"} {
		r.Header[name] = tokens[name]
	}
	client := http.Client{Transport: p.fetcher.HTTP.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(r)
	if err != nil {
		return 0
	}
	a.Body.Close()
	return a.StatusCode
}

// pass returns a handler that passes a request on to the partition with a collection, and its answer back as it is. If
// the partition has the collection no more, the one that has it is asked.
func (f *front) pass(p *partition, name string) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) (err error) {
		if p.stands() {
			return f.away(p, "this collection is there")
		}
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		proxy := httputil.ReverseProxy{
			Transport: p.fetcher.HTTP.Transport, FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host = p.url.Scheme, p.url.Host
				r.Out.URL.Path = p.url.Path + r.In.URL.Path
				if r.In.URL.RawPath != "" {
					r.Out.URL.RawPath = p.url.EscapedPath() + r.In.URL.RawPath
				}
				r.Out.Host = r.In.Host
				r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
				r.SetXForwarded()
				r.Out.Header.Set("X-Request-Id", w.Header().Get("X-Request-Id"))
			},
			ModifyResponse: func(a *http.Response) error {
				status := a.StatusCode
				if reads && status == http.StatusNotFound {
					status = p.asked(r.Context(), r.Header, name)
				}
				if status == http.StatusMisdirectedRequest || reads && status == http.StatusNotFound {
					return errNotThere
				}
				for name := range a.Header {
					w.Header().Del(name)
				}
				return nil
			},
			ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) {
				if errors.Is(failed, errNotThere) {
					err = f.anew(w, r, name, reads)
					return
				}
				if err = r.Context().Err(); err != nil {
					return // the client has gone
				}
				f.Logger.Warn("a partition does not answer", "partition", p.name, "error", failed)
				err = f.away(p, "this collection is there")
			},
		}
		proxy.ServeHTTP(w, r)
		return err
	}
}

// anew answers a request about a collection that is no longer where it was. What writes is to be sent again, since its
// body is gone.
func (f *front) anew(w http.ResponseWriter, r *http.Request, name string, reads bool) error {
	if !reads {
		return later(time.Second, "%s was moved to another server a moment ago: send it again", name)
	}
	if now := f.unknown(r, name); now != nil {
		return now(w, r)
	}
	return web.Problemf(http.StatusNotFound, "there is no topic map with the name %s", name)
}

// away is the answer while a partition is away.
func (f *front) away(p *partition, what string) error {
	return later(pauseWhenAway, "the server of the partition %s does not answer, and %s; other collections are not "+
		"affected: try again later", p.name, what)
}
