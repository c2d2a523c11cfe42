package pages

import (
	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/ext/pages/nodepages"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
)

// Extension returns the extension, and what returns its pages of the server that it was made a part of last: nil where
// it is in use by none.
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
			return []*cobra.Command{nodepages.Command(a)}
		},
	}, func() *Pages { return last }
}

// newPages returns the pages of a server. held is the store of the node that has pages, too; nil: it has none.
func newPages(s *server.Server, held *extension.Holding) *Pages {
	p := &Pages{Server: s}
	p.Sessions = newSessions(p)
	if held != nil {
		p.node = nodepages.OnServer(held, s.BaseURL, p.Sessions.Code, s.Logger)
	}
	return p
}

func (p *Pages) part() *server.Part {
	return &server.Part{
		Routes: p.routes,
		Forms: func(handle func(path string, h web.Handler, methods ...string)) {
			p.Sessions.routes(handle)
			p.nodeRoutes(handle)
		},
		About:        func(document string) string { return document + Ending },
		Beside:       func(_ server.Document, h web.Handler) web.Handler { return p.beside(h) },
		Authenticate: p.Sessions.Of, Challenge: p.Sessions.Leads, Problem: p.Problem,
	}
}
