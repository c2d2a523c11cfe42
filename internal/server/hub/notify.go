package hub

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/resources"
	"github.com/tmshare/tmshare/internal/store"
)

// Viewer is a store whose logs are read.
type Viewer interface {
	Store
	View(ctx context.Context, name string, f func(*store.View) error) error
}

// Notifier posts changes themselves to hubs, as a Source does (ResourceSync Change Notification 1.0.1 §4.1, Source Submits
// Notifications to Hub). Hubs pass them on to their subscribers. Its fields are set before Run.
//
// A hub is told of the changes of a collection in their order, each at least once. What it knows is kept in a file. Changes that it
// refuses are left out. So are the oldest ones where too many wait: from in the next notification is later than until in the one before,
// and Destinations read the change list.
type Notifier struct {
	Store    Viewer
	MayWrite func() error                            // if not nil, is asked before File is written
	Hubs     []string                                // as [Validate] allows
	Site     func(*store.Collection) *resources.Site // nil: hubs are not told of the collection
	File     string                                  // keeps what hubs know
	Logger   *slog.Logger

	// Every is how often is looked for changes: what is committed in between is told at once. The default is a second.
	Every time.Duration
	// Backoff is the time before the second of the five tries of a notification, growing; the default is a second.
	Backoff time.Duration
	// Pause is the time after which a hub is tried again that did not take a notification; the default is a minute.
	Pause time.Duration
	// Within is the time for one try; the default is ten seconds.
	Within time.Duration
	// Most is how many changes are in a notification; the default is 200. MostWaiting is how many of a collection a hub may lack before
	// the oldest are left out; the default is 5,000.
	Most, MostWaiting uint64

	fetcher *fetch.Fetcher
	changes *prometheus.CounterVec

	mu    sync.Mutex
	known knowledge
}

// NewNotifier returns n with its defaults. What it returns must not be copied.
func NewNotifier(n *Notifier) *Notifier {
	n.Every, n.Backoff, n.Pause = cmp.Or(n.Every, time.Second), cmp.Or(n.Backoff, time.Second), cmp.Or(n.Pause, time.Minute)
	n.Within, n.Most, n.MostWaiting = cmp.Or(n.Within, 10*time.Second), cmp.Or(n.Most, 200), cmp.Or(n.MostWaiting, 5000)
	n.fetcher = newFetcher(n.Backoff, n.Logger)
	n.changes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tmshare_hub_changes_total", Help: "Changes of resources that were posted to hubs of ResourceSync Change Notification, or were to be.",
	}, []string{"hub", "result"})
	for _, hub := range n.Hubs {
		for _, result := range []string{sent, refused, leftOut} {
			n.changes.WithLabelValues(hub, result)
		}
	}
	return n
}

// The results of changes, in the metrics, beside sent.
const (
	refused = "refused"
	leftOut = "left_out"
)

// Collector returns the metrics.
func (n *Notifier) Collector() prometheus.Collector { return n.changes }

// Run posts changes to the hubs until ctx ends. Each hub has a goroutine of its own: one that is slow does not delay the others.
func (n *Notifier) Run(ctx context.Context) {
	if len(n.Hubs) == 0 {
		return
	}
	var err error
	if n.known, err = readKnowledge(n.File, n.Hubs); err != nil {
		n.Logger.Error("hubs begin with the changes from now on, since it cannot be read what they know; delete the file if it is damaged", "file", n.File, "error", err)
	}
	var all sync.WaitGroup
	for _, hub := range n.Hubs {
		all.Go(func() {
			to := poster{hub, n.fetcher, n.Within}
			watch(ctx, n.Store, n.Every, n.Logger, func() (time.Duration, error) { return n.tell(ctx, to) })
		})
	}
	all.Wait()
}

// tell tells a hub of all changes that it lacks. It returns after which time the hub is to be tried again, 0 if it lacks none.
func (n *Notifier) tell(ctx context.Context, to poster) (again time.Duration, err error) {
	all, err := n.Store.Collections(ctx)
	if err != nil {
		return 0, err
	}
	var offered []*store.Collection
	for i := range all {
		if n.Site(&all[i]) != nil {
			offered = append(offered, &all[i])
		}
	}
	n.begin(to.hub, offered)
	var failed error
	for _, c := range offered {
		switch err := n.tellOf(ctx, to, c); {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(err, store.ErrNotFound): // it was deleted a moment ago
		case errors.As(err, new(*fetch.Error)): // all other notifications would fare the same
			n.Logger.Warn("a hub does not take notifications of changes; it is tried again. Check that the hub runs, and that --notification-hub is its address",
				"hub", to.hub, "collection", c.Name, "after", n.Pause, "error", err)
			return n.Pause, nil
		default: // another collection may fare better
			failed = errors.Join(failed, err)
		}
	}
	return 0, failed
}

// tellOf tells a hub of the changes of a collection. The error is a *[fetch.Error] where the hub may take them later.
func (n *Notifier) tellOf(ctx context.Context, to poster, c *store.Collection) error {
	for {
		after := n.position(to.hub, c.Name)
		if after >= c.Head {
			return nil
		}
		var document bytes.Buffer
		var last uint64
		err := n.Store.View(ctx, c.Name, func(v *store.View) (err error) {
			if v.Epoch != c.Epoch { // it was made anew
				return store.ErrNotFound
			}
			if first := max(v.Horizon, v.Head-min(v.Head, n.MostWaiting)); after < first {
				n.leaveOut(to.hub, c, after, first)
				after = first
			}
			last, err = n.Site(c).WriteNotification(&document, v, after, int(n.Most))
			return err
		})
		if err != nil {
			return err
		}
		result, err := n.post(ctx, to, n.Site(c).NotificationsURL(), document.Bytes())
		if err != nil {
			return err
		}
		n.changes.WithLabelValues(to.hub, result).Add(float64(last - after))
		n.note(to.hub, c.Name, position{c.Epoch, last})
	}
}

// post posts a notification, and returns whether it was sent or refused. The error says that it may be taken later.
func (n *Notifier) post(ctx context.Context, to poster, topic string, document []byte) (result string, err error) {
	err = to.post(ctx, resourcesync.MediaTypeXML, document, func(h http.Header) { AddLinks(h, []string{to.hub}, topic) })
	var e *fetch.Error
	if err == nil {
		return sent, nil
	}
	if ctx.Err() != nil || !errors.As(err, &e) || e.Transient() {
		return "", err
	}
	n.Logger.Warn("a hub refuses a notification of changes; they are left out. Check that --notification-hub is the address of a hub of ResourceSync Change Notification, and that it takes this topic",
		"hub", to.hub, "topic", topic, "error", err)
	return refused, nil
}

// leaveOut notes that a hub will not be told of the changes behind one up to another.
func (n *Notifier) leaveOut(hub string, c *store.Collection, after, upTo uint64) {
	n.note(hub, c.Name, position{c.Epoch, upTo})
	n.changes.WithLabelValues(hub, leftOut).Add(float64(upTo - after))
	n.Logger.Warn("more changes wait for a hub than it is told of: the oldest are left out, and its subscribers have to read the change list. If nothing large was published, check that the hub is fast enough",
		"hub", hub, "collection", c.Name, "changes", upTo-after, "most", n.MostWaiting)
}
