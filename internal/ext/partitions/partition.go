package partitions

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
)

// partition is a server with other collections. Which they are is known from its overview, which is followed.
type partition struct {
	front *front
	name  string
	url   *url.URL
	file  string // has the overview that was read last, for the next start

	fetcher *fetch.Fetcher

	mu    sync.Mutex
	known bool // which collections it has
	names map[string]listed
	all   []feeds.Entry
	etag  string
	away  error // why it cannot be read; nil: it can
}

// listed is what an overview states about the name of a collection.
type listed struct {
	stays bool      // it is the present name of one that is not being moved
	id    string    // of the collection; "": it is a former name
	since time.Time // zero: since the overview of an earlier process
}

// The limits of an overview: 10,000 collections are some 10 MB.
const (
	maxOverview   = 256 << 20
	pauseWhenAway = 2 * time.Second
)

func newPartition(f *front, name string, u *url.URL, file string) *partition {
	p := &partition{front: f, name: name, url: u, file: file}
	fetcher := fetch.Fetcher{
		HTTP: &http.Client{Transport: transport()}, Program: "tmshare-server", Tries: 1, Logger: f.Logger,
		Allow: func(*url.URL) error { return nil }, Stall: 2 * time.Minute,
	}
	p.fetcher = fetcher.WithDefaults()
	return p
}

// restore takes the overview that an earlier process has read last.
func (p *partition) restore() {
	if b, err := os.ReadFile(p.file); err == nil {
		if feed, err := feeds.Decode(bytes.NewReader(b), p.overview(), p.limits()); err == nil {
			p.take(feed, "")
		}
	}
}

func (p *partition) overview() string { return p.url.String() + "/topicmaps" }

func (p *partition) limits() feeds.Limits { return feeds.Limits{MaxBytes: maxOverview} }

// follow keeps what is known of the partition in step with it until ctx ends.
func (p *partition) follow(ctx context.Context) {
	for ctx.Err() == nil {
		changed, waited := true, true
		var err error
		if p.etag != "" && p.unreachable() == nil { // one that was away is asked at once whether it is back
			changed, waited, err = follow.Wait(ctx, p.fetcher, p.overview(), p.etag)
		}
		if err == nil && changed {
			err = p.read(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		p.answers(err)
		if err != nil || !waited {
			select {
			case <-ctx.Done():
			case <-time.After(pauseWhenAway):
			}
		}
	}
}

// read reads the overview, and keeps it for the next start.
func (p *partition) read(ctx context.Context) error {
	var content bytes.Buffer
	request := fetch.Request{URL: p.overview(), Accept: "application/atom+xml", Max: maxOverview}
	feed, a, err := fetch.Do(ctx, p.fetcher, request,
		func(a *fetch.Answer) (*feeds.Feed, error) {
			content.Reset()
			if _, err := content.ReadFrom(a.Body); err != nil {
				return nil, err
			}
			return feeds.Decode(bytes.NewReader(content.Bytes()), a.URL, p.limits())
		})
	if err != nil {
		return err
	}
	if self, _ := feed.Link("self"); self.Href != p.front.URLs.Overview() {
		return fmt.Errorf("its --base-url is another one: its overview says that it is %s, and not %s", self.Href,
			p.front.URLs.Overview())
	}
	p.take(feed, a.ETag)
	err = cmp.Or(os.MkdirAll(filepath.Dir(p.file), 0o700), durable.WriteFile(p.file, content.Bytes()))
	if err != nil {
		p.front.Logger.Warn("the overview of a partition is not kept for the next start", "partition", p.name, "error", err)
	}
	return nil
}

// take notes the collections that an overview lists, and their former names.
func (p *partition) take(feed *feeds.Feed, etag string) {
	names := make(map[string]listed, len(feed.Entries))
	var appeared []string
	p.mu.Lock()
	add := func(l feeds.Link, stays bool, id string) {
		name, now := path.Base(l.Href), listed{stays: stays, id: id}
		if before, is := p.names[name]; is && before.stays == stays && before.id == id {
			now.since = before.since
		} else if appeared = append(appeared, name); p.known {
			now.since = time.Now()
		}
		names[name] = now
	}
	for i := range feed.Entries {
		self, _ := feed.Entries[i].Link("alternate")
		for _, l := range feed.Entries[i].Find(feeds.RelFormer) {
			add(l, false, "")
		}
		add(self, feed.Entries[i].Condition != server.BeingMoved, feed.Entries[i].ID)
	}
	p.known, p.names, p.all, p.etag = true, names, feed.Entries, etag
	p.mu.Unlock()
	p.front.changed()
	own := p.front.own(context.Background())
	for _, name := range appeared {
		if p.front.at(own, name).other != nil {
			time.AfterFunc(settles, func() { p.front.reportTwice(name) })
		}
	}
}

// answers notes whether the partition can be read.
func (p *partition) answers(err error) {
	p.mu.Lock()
	before := p.away
	p.away = err
	p.mu.Unlock()
	up := 1.0
	if err != nil {
		up = 0
	}
	p.front.up.WithLabelValues(p.name).Set(up)
	switch {
	case err != nil && before == nil:
		p.front.Logger.Error("a partition cannot be read; its collections are away", "partition", p.name, "error", err)
	case err == nil && before != nil:
		p.front.Logger.Info("a partition can be read again", "partition", p.name)
	default:
		return
	}
	p.front.changed()
}

// unreachable returns why the partition cannot be read; nil if it can.
func (p *partition) unreachable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away
}

// stands reports whether nothing is passed on to the server of the partition: it does not answer, or is another one, as
// its overview is none, or has another base URL. One that answers with an error may still have what is asked for.
func (p *partition) stands() bool {
	err := p.unreachable()
	failed, is := errors.AsType[*fetch.Error](err)
	return err != nil && (!is || failed.Status == 0 || !failed.Transient())
}

// has returns what is known of a name at the partition, and whether it is listed at all.
func (p *partition) has(name string) (l listed, has bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, has = p.names[name]
	return l, has
}

// entries returns the entries of the collections for the overview of the front.
func (p *partition) entries() (all []feeds.Entry, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all = append(all, p.all...)
	if p.away == nil {
		return all, p.known
	}
	for i := range all {
		all[i].Condition = "not reachable"
		all[i].Summary = "not reachable: the server of the partition " + p.name + " does not answer; this is what it had"
		all[i].SummaryLanguage = "en"
	}
	return all, p.known
}
