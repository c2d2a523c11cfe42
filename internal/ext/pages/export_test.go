package pages

import (
	"net/http"

	"github.com/tmshare/tmshare/internal/server"
)

// WithNode makes pages a part of a server, with something in the place of the pages of the node.
func WithNode(node func(code func(*http.Request) string) http.Handler) func(*server.Server) (*server.Part, error) {
	return func(s *server.Server) (*server.Part, error) {
		p := newPages(s, nil)
		p.node = node(p.Sessions.Code)
		return p.part(), nil
	}
}
