// Package server publishes the topic maps of a store over HTTP: the four feeds
// of TMShare, snapshot data, fragment data, and the ways in for changes.
//
// [New] makes a [Server] from a [Config], and [Server.ServeHTTP] answers requests. routes.go has the table of URLs;
// feeds.go makes the documents, data.go serves what they link to, write.go takes changes.
package server

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Server answers HTTP requests. It is safe for concurrent use.
type Server struct {
	Config
	dataFormats []*formats.Format // in which topics and maps are available
	dataForms   []web.Form
	handler     http.Handler
	URLs        addresses.Base
	program     string // see StateTag

	Writers web.Tokens
	readers map[string]web.Tokens // by collection
	Known   web.Tokens            // all of them, those of Writers first
	Guesses *web.Guesses

	keeper       *upkeep.Keeper
	Answers      *web.Answers
	renderings   *web.Renderings // of snapshots, in forms that are not stored
	large        *web.Renderings // fragments and records that are not made in memory
	overviews    web.Made[*store.Listing]
	waiting      waitingRequests
	parts        []*Part
	uploads      chan struct{} // holds one element for each running upload
	smallUploads chan struct{} // likewise
	metrics      *metrics
	stopping     atomic.Bool
	Reader       *publish.Reader
	watcher      *publish.Watcher
	Publisher    *publish.Publisher
}

// recentLimit is the limit of documents in memory, in bytes.
const recentLimit = 16 << 20

// The limits of the cache of converted snapshots, and of large fragments and records: bytes, and the time after the
// last use.
const (
	renderingsLimit = 1 << 30
	largeLimit      = 256 << 20
	renderingsKept  = time.Hour
)

// maxRenders is the number of answers that are made of the records concurrently while they are sent, because a topic
// with many statements takes memory. In a database each holds one of the 32 states that can be read at a time; the
// others are for answers that are sent at once.
const maxRenders = 16

// New returns a server for c.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		Config: c, dataFormats: dataFormats(c.Formats), URLs: addresses.Base(c.BaseURL), program: web.Build(c.Now()) +
			" " + c.BaseURL + c.Name,
		Writers: web.NewTokens(c.Tokens, c.TokenNames), readers: map[string]web.Tokens{},
		waiting: waitingRequests{Store: c.Store, Most: c.MaxWaiting, Limit: time.Minute, Every: 20 * time.Millisecond,
			closed: make(chan struct{})},
		Answers: web.NewAnswers(recentLimit, maxRenders, c.SlowClientTimeout/3), uploads: make(chan struct{}, c.MaxUploads),
		smallUploads: make(chan struct{}, maxSmallUploads),
	}
	s.dataForms = formsOf(s.dataFormats)
	s.renderings = web.NewRenderings(c.Store.Scratch(), renderingsLimit, renderingsKept, c.SlowClientTimeout/3,
		"rendering of a snapshot")
	s.large = web.NewRenderings(c.Store.Scratch(), largeLimit, renderingsKept, c.SlowClientTimeout/3,
		"rendering of a large fragment or record")
	s.Known = slices.Clone(s.Writers) // before those without names
	for collection, plain := range c.ReadTokens {
		s.readers[collection] = web.NewTokens(plain, nil)
		s.Known = append(s.Known, s.readers[collection]...)
	}
	s.Guesses = web.NewGuesses(s.Known)
	s.keeper = upkeep.New(upkeep.Config{Policy: c.Policy, Store: c.Store, Logger: c.Logger, Now: c.Now})
	s.Reader = &publish.Reader{MaxSize: c.MaxBody, Lenient: c.Lenient, Formats: c.Formats, Limits: c.Limits,
		Logger: c.Logger}
	s.Publisher = &publish.Publisher{
		Store: c.Store, Logger: c.Logger, Now: c.Now, Timeout: c.PublishTimeout, SnapshotsKept: c.SnapshotsKept,
		Begin: s.keeper.Changes.Begin, After: s.keeper.Changed,
	}
	s.watcher = publish.NewWatcher(s.Publisher, s.Reader, c.MaxDelete, c.WatchEvery)
	for _, make := range c.Parts {
		p, err := make(s)
		if err != nil {
			return nil, err
		}
		s.parts = append(s.parts, p)
		for _, t := range p.Tasks {
			s.keeper.Do(t)
		}
	}
	s.metrics = newMetrics(s)
	s.handler = s.routes()
	return s, nil
}

// Close stops background work and waits for it. The store stays open. Running requests start no further work.
func (s *Server) Close() {
	s.waiting.Close()
	s.renderings.Close()
	s.large.Close()
	s.keeper.Close()
}

// Start looks after the collections in the background, until Close.
func (s *Server) Start() error {
	if err := s.warnOfMoves(context.Background()); err != nil {
		return err
	}
	// otherwise no change is accepted, so followers need no opening
	if err := s.Store.BeginOpening(context.Background()); err != nil && s.Store.MayWrite() == nil {
		return err
	}
	if err := s.keeper.Start(); err != nil {
		return err
	}
	s.keeper.Run(s.Store.WatchHistory)
	for _, p := range s.parts {
		for _, job := range p.Jobs {
			s.keeper.Run(s.alone(job.Name, job.Run))
		}
	}
	return nil
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// alone returns a job that one at a time of the processes does that share the store.
func (s *Server) alone(name string, job func(context.Context)) func(context.Context) {
	return func(ctx context.Context) { s.Store.Lease(ctx, name, job) }
}

// Unpublished returns the files that cannot be published of those that collections follow.
func (s *Server) Unpublished() []store.Dependent {
	_, all := s.watcher.AllBroken()
	return all
}

// Watch publishes the files whenever they change, until Close.
func (s *Server) Watch(files []publish.Watched) {
	for _, file := range files {
		s.keeper.Run(s.alone("file of "+file.Collection, s.watcher.Follow(file)))
	}
}
