// Package nodepages shows the state of a node as HTML without scripts: its collections, each source that it follows,
// and the topics of the merged view with the sources of each statement. A watcher serves these pages on the node's
// server, and the ui command serves them to a browser of the machine.
package nodepages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
)

// Source provides the data of the pages.
type Source interface {
	// Node returns the picture of the node, with the history of some subscriptions at least.
	Node(context.Context) (*status.Node, error)
	// Subscription returns a subscription with its history; nil if there is none of that name.
	Subscription(ctx context.Context, name string) (*status.Status, error)
	// Log returns the latest activities of a subscription, the newest first.
	Log(ctx context.Context, name string, most int) ([]store.Activity, error)
	// Seen returns the observations of a subscription since its rounds began; nil if this process runs no rounds.
	Seen(name string) *status.Seen
}

// Actions change the quarantine. Topics are named by subject identifiers; none means all.
type Actions interface {
	Retry(ctx context.Context, name string, topics ...string) error
	Forget(ctx context.Context, name string, topics ...string) error
}

// Site answers with the pages of a node. Source and Root are required, if only by their zero value.
type Site struct {
	Source

	// begins the addresses of all pages, such as https://example.org or "" for the addresses of this host
	Root     string
	Called   string        // the name of the server; "": the first link of the path is used
	Maps     bool          // the maps that are published have pages, too
	Find     string        // address of the page that finds topics; "": no such page
	Programs []layout.Link // the same for programs

	// Actions are the actions that pages offer; nil: none. Token returns the hidden field that proves that a form came
	// from one of these pages.
	Actions Actions
	Token   func(*http.Request) string

	Logger *slog.Logger
	Now    func() time.Time
}

// Addresses of the pages, relative to Root.
const (
	NodePath    = "/node.html"
	sourcesPath = "/node/"
	stylePath   = "/pages/"
	ending      = ".html"
)

// SubscriptionPath returns the address of the page of a subscription, relative to Root.
func SubscriptionPath(name string) string { return sourcesPath + url.PathEscape(name) + ending }

func parsed(name string) *layout.Template {
	return layout.Parse("node/parts.html", "node/"+name+".html")
}

var (
	nodeTemplate         = parsed("node")
	subscriptionTemplate = parsed("subscription")
	problemTemplate      = parsed("problem")
)

// Problem is an error that is shown with a status.
type Problem struct {
	Status int
	Text   texts.Text // a text of pages, or an English text from elsewhere
	Values []any      // in it
}

func (p *Problem) Error() string { return texts.English.Say(p.Text, p.Values...) }

// path leads to the page of the node, and on from there.
func (s *Site) path(r *http.Request, more ...layout.Link) (all []layout.Link) {
	if s.Maps {
		all = append(all, layout.Link{Title: layout.LanguageOf(r).Say(texts.Maps), URL: s.Root + "/topicmaps.html"})
	}
	return append(all, more...)
}

// toNode leads to the page of the node.
func (s *Site) toNode(r *http.Request) layout.Link {
	return layout.Link{Title: layout.LanguageOf(r).Say(texts.Node), URL: s.Root + NodePath}
}

// Add adds the pages to routes.
func (s *Site) Add(routes *http.ServeMux) {
	routes.HandleFunc("GET "+NodePath, s.Shown(s.node))
	routes.HandleFunc("GET "+sourcesPath+"{page}", s.Shown(s.subscription))
	routes.HandleFunc("GET "+stylePath+"{name}", Style)
	routes.HandleFunc("GET /node.json", s.Shown(s.json))
	if s.Actions != nil {
		routes.HandleFunc("POST "+sourcesPath+"{page}", s.Shown(s.act))
	}
}

// Style answers with the style sheet.
func Style(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("name") != layout.StyleName {
		http.Error(w, "there is no such style sheet; reload the page", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", layout.StyleCaching)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(layout.Style)
}

// StylePath returns the address of the style sheet, relative to Root.
func StylePath() string { return stylePath + layout.StyleName }

// json answers with the picture of the node for programs.
func (s *Site) json(w http.ResponseWriter, r *http.Request) error {
	n, err := s.Source.Node(r.Context())
	if err != nil {
		return err
	}
	for i := range n.Follows {
		n.Follows[i].History = nil // it may be large, and programs do not use it
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(n) // the client has gone: nothing to report
	return nil
}

// ServeNode answers with the page of the node.
func (s *Site) ServeNode(w http.ResponseWriter, r *http.Request) { s.Shown(s.node)(w, r) }

// Shown makes a handler that shows the errors of h as pages.
func (s *Site) Shown(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		s.ShowProblem(w, r, err)
	}
}

// ShowProblem answers with a page that describes an error.
func (s *Site) ShowProblem(w http.ResponseWriter, r *http.Request, err error) {
	var p *Problem
	if !errors.As(err, &p) {
		if r.Context().Err() == nil {
			s.Logger.Error("a page cannot be made", "path", r.URL.Path, "error", err)
		}
		p = &Problem{Status: http.StatusServiceUnavailable, Text: texts.FolderUnread}
	}
	in := layout.LanguageOf(r)
	sentence := struct{ Text, Lang string }{Text: layout.Sentence(layout.Cut(in.Say(p.Text, p.Values...)), "")}
	if !in.Has(p.Text) {
		sentence.Lang = texts.English.Tag
	}
	if err := s.Write(w, r, p.Status, problemTemplate, in.Say(texts.Text(http.StatusText(p.Status))), s.path(r),
		sentence); err != nil {
		s.Logger.Error("a page cannot be made", "path", r.URL.Path, "error", err)
		http.Error(w, p.Error(), p.Status)
	}
}

// Write answers with a page that caches must not keep.
func (s *Site) Write(w http.ResponseWriter, r *http.Request, status int, t *layout.Template, title string,
	path []layout.Link, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, layout.LanguageOf(r), &layout.Page{Title: layout.Cut(title), Path: path,
		Style: s.Root + StylePath(), Node: s.Called, Of: data, Switch: layout.Switch(r)}); err != nil {
		return err
	}
	layout.SetHeaders(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(layout.Keep(r, b.Bytes(), s.Root)) // the client has gone: nothing to report
	return nil
}
