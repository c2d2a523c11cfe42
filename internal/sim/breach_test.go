package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// breach is a rule that is left out, to show that a run notices. The zero value leaves out none.
type breach struct {
	name      string
	from      uint64 // the seed to begin with: few runs come to it
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

// breaches are rules that are left out. Each must be noticed.
var breaches = []breach{
	{name: "what arrives is published by the receiver", after: echo},
	{name: "an origin that was put back is taken for one without news", from: 60, transport: stubborn},
	{name: "a replica that is behind is believed", from: 300, transport: credulous},
	{name: "the mark is committed before what it stands for", store: hasty},
}

var credulity atomic.Int64

// believing is a client to which each replica seems to have seen its origin just now.
type believing struct{ http.RoundTripper }

func credulous(_ *node, t http.RoundTripper) http.RoundTripper { return believing{t} }

func (b believing) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/fragments") {
		res.Header = res.Header.Clone()
		res.Header.Set(feeds.CheckedHeader, feeds.FormatTime(time.Date(2099, 1, 1, 0, 0, int(credulity.Add(1)), 0, time.UTC)))
	}
	return res, err
}

// echo publishes what a node sees as its own.
func echo(n *node, _ *followed) {
	tm, _, err := merged.View{Store: n.db, Report: func(string) {}}.Map(background, false)
	n.w.must(err, "%s: its merged view", n.name)
	var b bytes.Buffer
	_, err = xtm.Write(&b, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(n.sp())})
	n.w.must(err, "%s: writing what it sees", n.name)
	n.put(b.Bytes())
}

// stubbornly is a client that goes on with the feed that it has, where the one that comes is older.
type stubbornly struct {
	http.RoundTripper
	n    *node
	seen map[string]answer
}

func stubborn(n *node, t http.RoundTripper) http.RoundTripper {
	return &stubbornly{t, n, map[string]answer{}}
}

var updated = regexp.MustCompile(`<entry>[\s\S]*?<updated>([^<]*)<`)

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

// hastily is a store that keeps a mark in a commit of its own.
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
