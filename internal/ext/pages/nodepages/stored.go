package nodepages

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/store"
)

// Stored is a [Source] that reads a store. It has [Actions] if there is a watcher.
type Stored struct {
	DB      *store.DB
	Now     func() time.Time
	Watcher *watch.Watcher // nil: no rounds run in this process
}

// Part returns a part of the watcher that shows its state on pages.
func Part(h *extension.Holding) *watch.Part {
	w := h.Watcher.Load()
	if w == nil {
		return nil
	}
	site := &Site{
		Source: &Stored{h.DB, w.Client.Now, w},
		Programs: []layout.Link{{Title: "status.json", URL: "/status.json"}, {Title: "node.json", URL: "/node.json"},
			{Title: "metrics", URL: "/metrics"}},
		Logger: w.Client.Logger, Now: w.Client.Now,
	}
	return &watch.Part{Routes: site.Add, Status: site.ServeNode}
}

// OnServer serves the pages of a node on the server that publishes it. token returns the proof that a form is of a page
// made for the same client.
func OnServer(h *extension.Holding, root, called string, token func(*http.Request) string,
	log *slog.Logger) http.Handler {
	db := &Stored{h.DB, time.Now, h.Watcher.Load()}
	site := &Site{
		Source: db, Root: root, Called: called, Maps: true,
		Programs: []layout.Link{{Title: "node.json", URL: root + "/node.json"}}, Token: token, Logger: log, Now: time.Now,
	}
	if db.Watcher != nil {
		site.Actions = db
	}
	routes := http.NewServeMux()
	site.Add(routes)
	NewTopics(func(ctx context.Context, args ...string) ([]byte, error) {
		out, err := printed(ctx, &control.Request{Args: args, Env: map[string]string{}}, h, h.Execute)
		h.Refresh() // apply rejections of statements at once
		return out, err
	}, site).Add(routes)
	return routes
}

// Node implements [Source].
func (s *Stored) Node(ctx context.Context) (*status.Node, error) {
	return status.OfNode(ctx, s.DB, s.Now(), nil)
}

// Subscription implements [Source].
func (s *Stored) Subscription(ctx context.Context, name string) (*status.Status, error) {
	list, err := status.Named(ctx, s.DB, s.Now(), name)
	if len(list) == 0 || err != nil {
		return nil, err
	}
	return &list[0], status.AddHistory(ctx, s.DB, list)
}

// Log implements [Source].
func (s *Stored) Log(ctx context.Context, name string, most int) (all []store.Activity, err error) {
	err = s.DB.Activity(ctx, func(a store.Activity) bool {
		if a.Source == name {
			all = append(all, a)
		}
		return len(all) < most
	})
	return all, err
}

// Seen implements [Source].
func (s *Stored) Seen(name string) *status.Seen {
	if s.Watcher == nil {
		return nil
	}
	return s.Watcher.Watched(name)
}

// Retry implements [Actions].
func (s *Stored) Retry(ctx context.Context, name string, topics ...string) error {
	_, err := s.Watcher.Client.Retry(ctx, name, topics...)
	return shown(err)
}

// Forget implements [Actions].
func (s *Stored) Forget(ctx context.Context, name string, topics ...string) error {
	_, err := s.Watcher.Client.Forget(ctx, name, topics...)
	return shown(err)
}

// shown is an error that a page shows.
func shown(err error) error {
	if err == nil {
		return nil
	}
	return &Problem{Status: http.StatusConflict, Text: texts.Text(err.Error())}
}
