package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// breach is a rule to omit, to show that a run detects it. The zero value omits none.
type breach struct {
	name      string
	skip      int // runs at the beginning that do not notice
	needs     needs
	store     func(n *node, s client.Store) client.Store
	transport func(n *node, t http.RoundTripper) http.RoundTripper
	after     func(n *node, f *followed) // a round that went well
}

func (b breach) storeOf(n *node) client.Store {
	if b.store != nil {
		return b.store(n, n.db)
	}
	return n.db
}

func (b breach) transportOf(n *node) http.RoundTripper {
	if b.transport != nil {
		return b.transport(n, &transport{n})
	}
	return &transport{n}
}

func (b breach) rounded(n *node, f *followed) {
	if b.after != nil {
		b.after(n, f)
	}
}

// needs are the events that a breach needs, which are then more frequent.
type needs struct {
	restores, replicas, derives, crashes bool
}

// breaches are rules that are left out. Each must be noticed.
var breaches = []breach{
	{name: "what arrives is published by the receiver", after: echo},
	{name: "an origin that was put back is taken for one without news", needs: needs{restores: true}, transport: stubborn},
	{name: "a replica that is behind is believed", skip: 60, needs: needs{restores: true, replicas: true}, transport: credulous},
	{name: "any address may say that the history is another one", skip: 32, needs: needs{restores: true, replicas: true}, transport: gullible, store: rotate},
	{name: "an address need not have the entry at the mark", needs: needs{restores: true, replicas: true}, store: forget},
	{name: "what is derived is derived from", needs: needs{derives: true}, transport: unlinked},
	{name: "the mark is committed before what it stands for", needs: needs{crashes: true}, store: hasty},
}

var credulity atomic.Int64

// believing is a client for which replicas seem to have just seen their origin: all of them, or those that are no
// authority.
type believing struct {
	http.RoundTripper
	n   *node
	all bool
}

func credulous(n *node, t http.RoundTripper) http.RoundTripper { return believing{t, n, true} }
func gullible(n *node, t http.RoundTripper) http.RoundTripper  { return believing{t, n, false} }

// authority reports whether a request goes to the authority of a followed collection.
func (b believing) authority(r *http.Request) bool {
	return slices.ContainsFunc(b.n.follows, func(f *followed) bool {
		return f.at[0].url() == "http://"+r.URL.Host && strings.HasPrefix(r.URL.Path, "/topicmaps/"+f.name+"/")
	})
}

func (b believing) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/fragments") && (b.all || !b.authority(r)) {
		res.Header = res.Header.Clone()
		res.Header.Set(feeds.CheckedHeader, feeds.FormatTime(time.Date(2099, 1, 1, 0, 0, int(credulity.Add(1)), 0, time.UTC)))
	}
	return res, err
}

// plain is a client to which derived collections seem to be primary.
type plain struct{ http.RoundTripper }

func unlinked(_ *node, t http.RoundTripper) http.RoundTripper { return plain{t} }

var derivedFrom = regexp.MustCompile(`<link [^>]*` + regexp.QuoteMeta(feeds.RelDerivedFrom) + `[^>]*>`)

func (p plain) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	res, err := p.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), feeds.MediaTypeAtom) {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	header := res.Header.Clone()
	header.Del("Content-Length")
	return answer{res.StatusCode, header, derivedFrom.ReplaceAll(body, nil)}.response(r, nil), nil
}

// changed is a store with subscriptions that a round reads otherwise than they are.
type changed struct {
	client.Store
	change func(*store.Subscription)
}

func (c changed) Subscriptions(ctx context.Context) ([]store.Subscription, error) {
	all, err := c.Store.Subscriptions(ctx)
	for i := range all {
		if len(all[i].Addresses) > 1 {
			c.change(&all[i])
		}
	}
	return all, err
}

// rotate has the address that is followed be the authority.
func rotate(_ *node, s client.Store) client.Store {
	return changed{s, func(s *store.Subscription) {
		i := slices.IndexFunc(s.Addresses, func(a sources.Address) bool { return a.FragmentsFeed == s.FragmentsFeed })
		if i > 0 {
			s.Addresses = append(slices.Clone(s.Addresses[i:]), s.Addresses[:i]...)
		}
	}}
}

// forget has a round know of its mark the time alone.
func forget(_ *node, s client.Store) client.Store {
	return changed{s, func(s *store.Subscription) {
		if s.State != nil {
			state := *s.State
			state.Mark.Handled, state.Mark.Relied = nil, ""
			s.State = &state
		}
	}}
}

// echo publishes a node's merged view as its own collection.
func echo(n *node, _ *followed) {
	tm, _, err := merged.View{Store: n.db, Report: func(string) {}}.Map(background, false)
	n.w.must(err, "%s: its merged view", n.name)
	var b bytes.Buffer
	_, err = xtm.Write(&b, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(n.sp())})
	n.w.must(err, "%s: writing what it sees", n.name)
	n.put(b.Bytes())
}

// stubbornly is a client that keeps a newer feed instead of an older answer.
type stubbornly struct {
	http.RoundTripper
	n    *node
	seen map[string]answer
}

func stubborn(n *node, t http.RoundTripper) http.RoundTripper {
	return &stubbornly{t, n, map[string]answer{}}
}

var updated = regexp.MustCompile(`<entry[ >][\s\S]*?<updated>([^<]*)<`)

func (s *stubbornly) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	res, err := s.RoundTripper.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK || !strings.HasSuffix(r.URL.Path, "/fragments") {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	now, before := answer{res.StatusCode, res.Header, body}, s.seen[r.URL.Path]
	if newest(now) < newest(before) {
		return before.response(r, nil), nil
	}
	s.seen[r.URL.Path] = now
	return now.response(r, nil), nil
}

// newest is the time of the first entry of a feed.
func newest(a answer) string {
	if found := updated.FindSubmatch(a.body); found != nil {
		return string(found[1])
	}
	return ""
}

// hastily is a store that commits a mark separately.
type hastily struct{ client.Store }

func hasty(_ *node, s client.Store) client.Store { return hastily{s} }

var errOnlyTried = errors.New("only tried")

func (h hastily) ApplyEntries(ctx context.Context, name string, f func(*store.Applying) error) error {
	var mark store.Mark
	err := h.Store.ApplyEntries(ctx, name, func(a *store.Applying) error {
		if err := f(a); err != nil {
			return err
		}
		mark = a.Mark
		return errOnlyTried
	})
	if !errors.Is(err, errOnlyTried) {
		return err
	}
	err = h.Store.ApplyEntries(ctx, name, func(a *store.Applying) error {
		a.Mark = mark
		return nil
	})
	if err != nil {
		return err
	}
	return h.Store.ApplyEntries(ctx, name, f)
}
