package pages

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/ext/pages/nodepages"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns the extension, and a function that returns the pages of the last server to use it; nil if none
// does.
func Extension() (extension.Extension, func() *Pages) {
	var held *extension.Holding
	var last *Pages
	return extension.Extension{
		Name: "pages",
		Hold: func(h *extension.Holding) *watch.Part {
			held = h
			return nodepages.Part(h)
		},
		Serve: func(s *server.Server) (*server.Part, error) {
			last = newPages(s, held)
			return last.part(), nil
		},
		Commands: func(a *extension.App) []*cobra.Command {
			if a.Serves || a.Held != nil {
				return nil
			}
			return cli.In(cli.Everyday, nodepages.Command(a))
		},
	}, func() *Pages { return last }
}

// newPages returns the pages of a server. held is the store of the node that has pages, too; nil: it has none.
func newPages(s *server.Server, held *extension.Holding) *Pages {
	p := &Pages{Server: s}
	p.Sessions = newSessions(p)
	if held != nil {
		p.node = nodepages.OnServer(held, s.BaseURL, p.titleOfSearched(nil), p.Sessions.Code, s.Logger)
	}
	return p
}

func (p *Pages) part() *server.Part {
	return &server.Part{
		Routes: p.routes,
		Tasks:  []upkeep.Task{{KeepUp: p.keepUp, Sweep: func(context.Context) error { return nil }}},
		Forms: func(handle func(path string, h web.Handler, methods ...string)) {
			p.Sessions.routes(handle)
			p.nodeRoutes(handle)
		},
		About:        func(document string) string { return document + Ending },
		InWords:      p.summaries.entries,
		Beside:       func(_ server.Document, h web.Handler) web.Handler { return p.beside(h) },
		Authenticate: p.Sessions.Of, Challenge: p.Sessions.Leads, Problem: p.Problem,
	}
}

// routes adds the addresses of pages.
func (p *Pages) routes(get func(path string, h web.Handler)) {
	get("/", p.Home)
	get("/about", p.Home)
	get("/pages/{name}", p.File)
	get("/favicon.ico", noIcon)
	get("/topicmaps"+Ending, p.Alone(p.Overview))

	handle := func(path string, h func(http.ResponseWriter, *http.Request, *store.View) error) {
		get("/topicmaps/{map}"+path, p.Viewed(h))
	}
	get("/topicmaps/{map}"+Ending, p.Alone(p.Viewed(p.Map)))
	handle("/about", p.About)
	handle("/types"+Ending, p.Types)
	handle("/hierarchies/{key:[a-z2-7]{26}}"+Ending, p.Hierarchy)
	get("/topicmaps/{map}/fragments"+Ending, p.Alone(p.Viewed(p.Changes)))
	handle("/fragments/{id:[0-9a-f-]{36}}"+Ending, p.Change)
	handle("/fragments/archive/{history:[0-9a-f-]{36}}-{n:"+addresses.SeqPattern+"}"+Ending, p.Document)
	handle("/history"+Ending, p.History)
	handle("/snapshots/{id:[0-9a-f-]{36}}"+Ending, p.Snapshot)
	get("/topicmaps/{map}/snapshots"+Ending, p.Alone(p.Viewed(p.Snapshots)))
	get("/topicmaps/{map}"+searchPath, p.beside(p.Viewed(p.Search)))
	handle(searchPath+Ending, p.SearchPage)
	handle(descriptionPath, p.Description)
	handle(suggestPath, p.Suggest)
	get(searchPath, p.beside(p.SearchAll))
	get(searchPath+Ending, p.SearchAllPage)
	get(descriptionPath, p.DescriptionOfAll)
	get(suggestPath, p.SuggestOfAll)
	handle("/topics"+Ending, p.Find)
	handle("/topics/{key:[a-z2-7]{26}}"+Ending, p.Topic)
	handle("/index"+Ending, p.Listing)
	handle("/api"+Ending, p.API)
	handle("/compare"+Ending, p.Compare)
	handle("/topics/{key:[a-z2-7]{26}}/compare"+Ending, p.CompareTopic)
}
