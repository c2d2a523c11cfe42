package clientcmd

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/nodepages"
	"github.com/tmshare/tmshare/internal/ext/pages/ui"
	"github.com/tmshare/tmshare/internal/locks"
	"github.com/tmshare/tmshare/internal/store"
)

// Holding is a store that this process holds. The commands of tmshare-client on
// it work in other processes too: they are executed here.
type Holding struct {
	db      *store.DB
	owned   bool        // close closes the store as well
	locks   locks.Locks // of all commands that are executed here
	server  *control.Server
	watcher atomic.Pointer[watch.Watcher] // nil: none is at work
}

// Hold takes the commands of other processes for db. program is the name that
// they are told.
func Hold(db *store.DB, program string) (*Holding, error) {
	h := &Holding{db: db}
	var err error
	h.server, err = control.Serve(db.Dir(), program, func(ctx context.Context, r *control.Request) int {
		code := execute(ctx, r, h)
		if w := h.watcher.Load(); w != nil { // subscriptions may have come and gone
			w.Refresh()
		}
		return code
	})
	return h, err
}

// Lease is that of the store.
func (h *Holding) Lease(ctx context.Context, job string, do func(context.Context)) {
	h.db.Lease(ctx, job, do)
}

// Following says how the subscriptions of a store are followed.
type Following struct {
	Interval time.Duration // between two rounds of a source
	Hosts    []string      // that links may lead to besides those subscribed to
	// ConfirmAfter and MaxDelete are those of [client.Config].
	ConfirmAfter time.Duration
	MaxDelete    losses.Limit
	Lenient      bool // XTM that breaks the rules of its version is read where what is meant is plain
	Logger       *slog.Logger
}

// Follow returns what keeps the subscriptions of the store up to date, those to come too. Commands that change one wait
// for a round of it.
func (h *Holding) Follow(f Following) (*watch.Watcher, error) {
	return h.follow(client.Config{ConfirmAfter: f.ConfirmAfter, MaxDelete: f.MaxDelete, Hosts: f.Hosts, Lenient: f.Lenient, Logger: f.Logger}, watch.Options{
		Interval: f.Interval, Jitter: someJitter,
		Done: func(name string, r *client.Round, err error) { logRound(f.Logger, name, r, err) },
	})
}

func (h *Holding) follow(c client.Config, o watch.Options) (*watch.Watcher, error) {
	c.Store, c.Locks, o.Store = h.db, &h.locks, h.db
	c.Report = func(line string) { c.Logger.Info(line) }
	of, err := client.New(c)
	if err != nil {
		return nil, err
	}
	w, err := watch.New(of, o)
	if err == nil {
		h.watcher.Store(w)
	}
	return w, err
}

// NodePages answers requests for the pages of the node, on a server at an address that publishes it. w does its rounds;
// nil: nobody does.
func (h *Holding) NodePages(root string, w *watch.Watcher, log *slog.Logger) http.Handler {
	site := &nodepages.Site{Source: &nodepages.Stored{DB: h.db, Now: time.Now}, Logger: log, Now: time.Now}
	if w != nil {
		site = w.Site()
		site.Actions = w.Actions()
	}
	site.Root, site.Maps = root, true
	site.Path = []layout.Link{{Title: "Topic maps", URL: root + "/topicmaps.html"}}
	site.Programs = []layout.Link{{Title: "node.json", URL: root + "/node.json"}}
	site.Token = func(r *http.Request) string { return layout.Code(r.Context()) }
	topics := ui.NewTopics(h.command, site)
	routes := http.NewServeMux()
	site.Add(routes)
	topics.Add(routes)
	return routes
}

// command executes a command of tmshare-client on the store, in this process.
func (h *Holding) command(ctx context.Context, args ...string) ([]byte, error) {
	out, err := printed(ctx, &control.Request{Args: args, Env: map[string]string{}}, h)
	if w := h.watcher.Load(); w != nil { // what sources say may be rejected now
		w.Refresh()
	}
	return out, err
}

// Close takes no more commands and waits for those that are under way. When ctx
// ends, they are interrupted, and say why. The store stays open.
func (h *Holding) Close(ctx context.Context) {
	if h.server != nil {
		h.server.Close(ctx)
	}
}

func (h *Holding) close(ctx context.Context, failed bool) (err error) {
	h.Close(ctx)
	if h.owned {
		if failed { // a folder that was made for nothing looks like one that matters
			err = h.db.Discard(context.WithoutCancel(ctx))
		}
		err = errors.Join(err, h.db.Close())
	}
	return err
}

func (h *Holding) busy() int {
	if h.server == nil {
		return 0
	}
	return h.server.Busy()
}
