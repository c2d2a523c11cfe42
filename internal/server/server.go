package server

import (
	"net/http"
	"path/filepath"
	"sync/atomic"

	"github.com/tmshare/tmshare/internal/resources"
)

// Server answers HTTP requests. It is safe for concurrent use.
type Server struct {
	Config
	handler http.Handler
	program string // see stateTag

	writers tokens
	readers map[string]tokens // by collection

	background background
	changes    changes
	recent     *recentBytes // Atom documents, by ETag
	packers    packers
	uploads    chan struct{} // holds one for each that is under way
	renders    chan struct{} // likewise
	metrics    *metrics
	stopping   atomic.Bool
	watched    watched

	resources resources.Folder
	sourcing  sourcing
}

// recentLimit is how many bytes of documents are kept in memory.
const recentLimit = 16 << 20

// New returns a server for c.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		Config: c, program: program(&c),
		writers: sums(c.Tokens), readers: map[string]tokens{},
		recent: newRecentBytes(recentLimit), uploads: make(chan struct{}, c.MaxUploads), renders: make(chan struct{}, maxRenders),
	}
	for collection, plain := range c.ReadTokens {
		s.readers[collection] = sums(plain)
	}
	s.changes.init(c.Now)
	s.packers.init()
	s.metrics = newMetrics(s)
	s.background.init()
	s.resources = resources.Folder{Path: filepath.Join(c.Store.Dir(), "resourcesync"), Sizes: c.ResourceSizes}
	s.handler = s.routes()
	return s, nil
}

// Close stops what runs in the background and waits for it. The store stays
// open. What requests still under way would begin is left undone.
func (s *Server) Close() { s.background.close() }
