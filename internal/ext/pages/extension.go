package pages

import (
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
)

// Extension returns the extension, and what returns its pages of the server that it was made a part of last: nil where
// it is in use by none.
func Extension() (extension.Extension, func() *Pages) {
	var last *Pages
	serve := func(s *server.Server) (*server.Part, error) {
		p := &Pages{Server: s, node: s.Node}
		p.Sessions = newSessions(p)
		last = p
		return &server.Part{
			Routes: p.routes,
			Forms: func(handle func(path string, h web.Handler, methods ...string)) {
				p.Sessions.routes(handle)
				p.nodeRoutes(handle)
			},
			About:        func(document string) string { return document + Ending },
			Beside:       func(_ server.Document, h web.Handler) web.Handler { return p.beside(h) },
			Authenticate: p.Sessions.Of, Challenge: p.Sessions.Leads, Problem: p.Problem,
		}, nil
	}
	return extension.Extension{Name: "pages", Serve: serve}, func() *Pages { return last }
}
