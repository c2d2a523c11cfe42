// Package websub is an extension by which a server notifies hubs of WebSub (W3C Recommendation, 23 January 2018) of
// changed documents. Hubs then fetch them and distribute them to their subscribers.
package websub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns it, with the flag --hub.
func Extension() extension.Extension {
	var hubs []string
	var p *Publisher // in the process that serves
	return extension.Extension{
		Name: "websub",
		Flags: func(fl *pflag.FlagSet) {
			fl.StringArrayVar(&hubs, "hub", nil,
				"`URL` of a WebSub hub to notify of each change of a map that everybody may read (repeatable, 5 at most)")
		},
		Serve: func(s *server.Server) (part *server.Part, err error) {
			p, part, err = serve(s, hubs)
			return part, err
		},
		Dependents: func(context.Context, *store.DB) ([]store.Dependent, error) {
			if p == nil {
				return nil, nil
			}
			return p.dependents(), nil
		},
	}
}

// Serve returns the part of a server that notifies hubs.
func Serve(s *server.Server, hubs []string) (*server.Part, error) {
	_, part, err := serve(s, hubs)
	return part, err
}

func serve(s *server.Server, hubs []string) (*Publisher, *server.Part, error) {
	if err := Validate(hubs); err != nil {
		return nil, nil, err
	}
	p := New(Publisher{Store: s.Store, Hubs: hubs, Topics: s.Followed, Logger: s.Logger})
	links := Links(hubs)
	return p, &server.Part{
		FollowLinks: func(*store.Collection) []feeds.Link { return links },
		Jobs:        []server.Job{{Name: "hubs", Run: p.Run}},
		Metrics:     []prometheus.Collector{p.Collector()},
	}, nil
}

// Most is the maximum number of hubs of a server, because each is notified of every change.
const Most = 5

// Validate checks the URLs of hubs.
func Validate(hubs []string) error {
	if len(hubs) > Most {
		return fmt.Errorf("there are %d hubs, more than %d: leave some out", len(hubs), Most)
	}
	for i, hub := range hubs {
		u, err := url.Parse(hub)
		switch {
		case err == nil && u.Fragment != "":
			return fmt.Errorf("the hub %q has a fragment (#%s): leave that out, as it is not sent to a hub", hub, u.Fragment)
		case err == nil && !validPort(u.Port()):
			return fmt.Errorf("the hub %q has the port %s: give one from 1 to 65535", hub, u.Port())
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return fmt.Errorf("the hub %q is not an http or https URL: write it as in https://hub.example.org/", hub)
		case u.User != nil: // every feed would show it
			return fmt.Errorf(
				"the URL of the hub on %s has a name or a password in it: leave that out, since feeds show the URL to everybody",
				u.Host)
		case slices.Contains(hubs[:i], hub):
			return fmt.Errorf("the hub %s is given twice: give it once", hub)
		}
	}
	return nil
}

// validPort reports whether a port is possible; "" is that of the scheme.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// Links returns the links from a feed to the hubs (WebSub §4, Discovery).
func Links(hubs []string) (links []feeds.Link) {
	for _, hub := range hubs {
		links = append(links, feeds.Link{Rel: "hub", Href: hub})
	}
	return links
}

// Store has the methods of a store that a Publisher needs.
type Store interface {
	Await(ctx context.Context, since store.Version, every time.Duration) (store.Version, error)
	Collections(ctx context.Context) ([]store.Collection, error)
}

// Publisher notifies hubs of changes. Its fields are set before Run.
type Publisher struct {
	Store  Store
	Hubs   []string                         // as [Validate] allows
	Topics func(*store.Collection) []string // returns the URLs of a collection's feeds; none: no notifications
	Logger *slog.Logger

	// Every is the time between two checks for changes; each topic gets one ping for all commits in between. The
	// default is a second.
	Every time.Duration
	// Backoff is the time before the second of the tries of a ping, growing; the default is a second. There are five.
	Backoff time.Duration
	// Within is the time for one try; the default is ten seconds.
	Within time.Duration

	fetcher *fetch.Fetcher
	pings   *prometheus.CounterVec

	mu    *sync.Mutex
	wrong map[string]map[string]string // hub → topic → why the last notification failed
}

// New returns p with its defaults.
func New(p Publisher) *Publisher {
	p.Every, p.Backoff, p.Within = cmp.Or(p.Every, time.Second), cmp.Or(p.Backoff, time.Second),
		cmp.Or(p.Within, 10*time.Second)
	p.fetcher = fetch.Fetcher{Program: "tmshare-server", Tries: 5, Backoff: p.Backoff, Logger: p.Logger}.WithDefaults()
	p.mu, p.wrong = &sync.Mutex{}, map[string]map[string]string{}
	p.pings = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tmshare_hub_pings_total",
		Help: "Changes of topics that hubs of WebSub were to be told of."}, []string{"hub", "result"})
	for _, hub := range p.Hubs {
		p.pings.WithLabelValues(hub, sent)
		p.pings.WithLabelValues(hub, failed)
	}
	return &p
}

// The results of pings, in the metrics.
const (
	sent   = "sent"
	failed = "failed"
)

// Collector returns the metrics.
func (p *Publisher) Collector() prometheus.Collector { return p.pings }

// Run notifies the hubs of changes until ctx ends. Each has its own goroutine, so that a slow one does not delay the
// others. It begins with all topics, because any may have changed while the process was not running.
func (p *Publisher) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, hub := range p.Hubs {
		all.Go(func() { p.tell(ctx, hub) })
	}
	all.Wait()
}

// state identifies a state of the log of a collection.
type state struct {
	epoch uuid.UUID
	head  uint64
}

// tell notifies one hub.
func (p *Publisher) tell(ctx context.Context, hub string) {
	states := map[string]state{} // by collection
	for last := (store.Version{}); ; {
		version, err := p.Store.Await(ctx, last, p.Every) // before the state, so that later changes are seen next time
		var topics []string
		known := map[string]bool{}
		if err == nil {
			topics, err = p.changed(ctx, states, known)
		}
		if err == nil {
			p.forget(hub, known)
			p.pingAll(ctx, hub, topics)
			last = version
		} else if ctx.Err() == nil {
			p.Logger.Error("hubs are not told of changes: the store cannot be read; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.Every):
		}
	}
}

// changed returns the topics of the collections whose log has changed since the last notification of the hub, and
// records that. known gets all topics.
func (p *Publisher) changed(ctx context.Context, states map[string]state, known map[string]bool) (topics []string,
	err error) {
	all, err := p.Store.Collections(ctx)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for i := range all {
		c := &all[i]
		some := p.Topics(c)
		for _, topic := range some {
			known[topic] = true
		}
		if len(some) == 0 {
			continue
		}
		there[c.Name] = true
		if now := (state{c.Epoch, c.Head}); states[c.Name] != now {
			states[c.Name] = now
			topics = append(topics, some...)
		}
	}
	for name := range states {
		if !there[name] {
			delete(states, name)
		}
	}
	return topics, nil
}

// pingAll notifies the hub of topics. If the hub does not answer, the rest waits for the next change.
func (p *Publisher) pingAll(ctx context.Context, hub string, topics []string) {
	for i, topic := range topics {
		err := p.ping(ctx, hub, topic)
		if ctx.Err() != nil {
			return
		}
		p.note(hub, topic, err)
		if err == nil {
			p.pings.WithLabelValues(hub, sent).Inc()
			p.Logger.Debug("hub told", "hub", hub, "topic", topic)
			continue
		}
		lost := 1
		var e *fetch.Error
		if !errors.As(err, &e) || e.Transient() { // the others would fail, too
			lost = len(topics) - i
		}
		p.pings.WithLabelValues(hub, failed).Add(float64(lost))
		p.Logger.Warn(
			"a hub was not notified of a change; it is of the next one. Check that the hub runs, that --hub is its address, "+
				"and that it takes this topic",
			"hub", hub, "topic", topic, "topics", lost, "error", err)
		if lost > 1 {
			return
		}
	}
}

// note notes how a hub has answered.
func (p *Publisher) note(hub, topic string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong[hub] == nil {
		p.wrong[hub] = map[string]string{}
	}
	delete(p.wrong[hub], topic)
	if err != nil {
		p.wrong[hub][topic] = err.Error()
	}
}

// forget drops the state of removed topics.
func (p *Publisher) forget(hub string, known map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.wrong[hub], func(topic, _ string) bool { return !known[topic] })
}

// dependents returns the state of the hubs.
func (p *Publisher) dependents() (all []store.Dependent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, hub := range p.Hubs {
		d := store.Dependent{Name: "hub " + hub, State: "in step"}
		for _, topic := range slices.Sorted(maps.Keys(p.wrong[hub])) {
			why := p.wrong[hub][topic]
			d.Wrong, d.Facts = cmp.Or(d.Wrong, "it was not told of the last change: "+why), append(d.Facts, topic+": "+why)
			d.Advice = "look that the hub runs, that --hub is its address, and that it takes the topic"
		}
		all = append(all, d)
	}
	return all
}

// ping notifies the hub of one topic. WebSub does not define the request (§6, Publishing); this is the one of
// PubSubHubbub 0.3 and 0.4. It tries five times in all.
func (p *Publisher) ping(ctx context.Context, hub, topic string) error {
	at, err := url.Parse(hub)
	if err != nil {
		return err
	}
	form := url.Values{"hub.mode": {"publish"}, "hub.url": {topic}, "hub.topic": {topic}}
	fetcher := *p.fetcher
	fetcher.Allow = func(to *url.URL) error { return only(at, to) }
	_, _, err = fetch.Do(ctx, &fetcher, fetch.Request{
		Method: http.MethodPost, URL: hub, Accept: "*/*", Within: p.Within, Packed: true,
		Post: []byte(form.Encode()), PostType: "application/x-www-form-urlencoded",
		Also: []int{http.StatusCreated, http.StatusAccepted, http.StatusNonAuthoritativeInfo, http.StatusNoContent,
			http.StatusResetContent},
	}, func(*fetch.Answer) (struct{}, error) { return struct{}{}, nil }) // the body is ignored
	return err
}

// only allows no other URL, because a redirect may lead into the server's network, and may drop the posted body.
func only(hub, to *url.URL) error {
	if to.String() == hub.String() {
		return nil
	}
	return fmt.Errorf("the hub redirects to %s; if that is right, give that address as the hub's", to)
}
