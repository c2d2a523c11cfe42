package server

import (
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/web"
)

// routes is the table of URLs.
func (s *Server) routes() *web.Router {
	r := web.NewRouter(&web.Front{
		Explain: s.explain, ShowProblem: s.showProblem, Metrics: s.metrics.http,
		OwnHeaders: []string{currentVersion, recordVersion}, Quiet: []string{"/healthz", "/readyz", "/metrics"},
		Echo:   web.Echo{Parameter: feeds.AskedParameter, Header: feeds.AskedHeader},
		Logger: s.Logger, SlowClientTimeout: s.SlowClientTimeout, SlowRequest: s.SlowRequest,
		TrustedProxies: s.TrustedProxies,
	}, s.URLs.Overview())
	if slices.ContainsFunc(s.parts, func(p *Part) bool { return p.Elsewhere != nil }) {
		r.Elsewhere = s.elsewhere
	}
	get := func(path string, h web.Handler) { r.Handle(path, s.readable(h), "GET", "HEAD") }
	followed := func(path string, h web.Handler) { get(path, s.waiting.Handler(h)) }
	write := func(method, path string, h web.Handler) { r.Handle(path, s.Authorized(h), method) }

	// A server without support for dry runs has no such addresses, and so changes nothing.
	dryRunToo := func(method, path string, h web.Handler) {
		write(method, path, h)
		write(method, path+"/dry-run", dryRun(h))
	}

	for _, p := range s.parts {
		if p.Routes != nil {
			p.Routes(get)
		}
		if p.Forms != nil {
			p.Forms(r.Handle)
		}
	}
	followed("/topicmaps", s.beside(Overview, s.topicMapsFeed))
	get("/topicmaps/{map}.atom", s.entryOf(s.collectionEntry))
	get("/topicmaps/{map}", s.beside(MapFeed, s.topicMapFeed))
	dryRunToo("PUT", "/topicmaps/{map:[^./]+}", s.put)
	write("PUT", "/topicmaps/{map:"+notAnEntry+"}", s.put) // with the error for an invalid name
	write("DELETE", "/topicmaps/{map:[^./]+}", s.deleteCollection)
	get("/topicmaps/{map}/settings", s.Guesses.Guard(s.getSettings))
	write("POST", "/topicmaps/{map}/rename", s.rename)
	write("DELETE", "/topicmaps/{map}/former", s.forgetFormer)

	followed("/topicmaps/{map}/snapshots", s.beside(SnapshotsFeed, s.snapshotsFeed))
	get("/topicmaps/{map}/snapshots.atom", s.entryOf(s.snapshotsEntry))
	get("/topicmaps/{map}/snapshots/current"+web.WithEndings(s.dataForms), s.currentSnapshot)
	get("/topicmaps/{map}/snapshots/{id:[0-9a-f-]{36}}.atom", s.snapshotEntry)
	get("/topicmaps/{map}/snapshots/{id:[0-9a-f-]{36}}"+web.WithEndings(s.dataForms), s.snapshotData)

	write("POST", "/topicmaps/{map}/snapshots", s.postSnapshot)
	dryRunToo("POST", "/topicmaps/{map}/gc", s.postGC)

	get("/topicmaps/{map}/checkpoint", s.Viewed(serveCheckpoint))
	get("/topicmaps/{map}/checkpoint/consistency", s.Viewed(serveProof))
	get("/topicmaps/{map}/openings", s.Viewed(serveOpenings))
	get("/topicmaps/{map}/digest/topic", s.findTopic)
	get("/topicmaps/{map}/digest", s.digestNode)
	get("/topicmaps/{map}/digest/{path:[0-9a-f]+}", s.digestNode)

	fragments := s.fragmentsFeed()
	followed("/topicmaps/{map}/fragments", s.beside(FragmentsFeed, s.RecentDocument(fragments)))
	followed("/topicmaps/{map}/fragments"+web.WithAnEnding(fragmentsFeedForms),
		s.beside(FragmentsFeed, s.RecentDocument(fragments)))
	get("/topicmaps/{map}/fragments.atom", s.entryOf(s.fragmentsEntry))
	archived := "/topicmaps/{map}/fragments/archive/{history:[0-9a-f-]{36}}-{n:" + addresses.SeqPattern + "}"
	get(archived, s.beside(FragmentsArchive, s.ArchiveDocument(fragments)))
	get(archived+web.WithAnEnding(fragmentsFeedForms), s.ArchiveDocument(fragments))
	get("/topicmaps/{map}/fragments/{id:[0-9a-f-]{36}}.atom", s.fragmentEntry)
	get("/topicmaps/{map}/fragments/{id:[0-9a-f-]{36}}"+web.WithEndings(s.dataForms), s.beside(Fragment, s.fragmentData))

	get("/topicmaps/{map}/topics", s.beside(TopicsFound, s.findTopic))
	dryRunToo("POST", "/topicmaps/{map}/topics", s.FewUploads(s.postTopics))
	dryRunToo("DELETE", "/topicmaps/{map}/topics", s.deleteTopic(false, byIdentifier))
	get("/topicmaps/{map}/topics/{key:[a-z2-7]{26}}"+web.WithEndings(s.dataForms), s.beside(Topic, s.topicData))
	dryRunToo("DELETE", "/topicmaps/{map}/topics/{key:[a-z2-7]{26}}", s.deleteTopic(true, byKey))

	get("/topicmaps/{map}/"+minted, s.Viewed(s.mintedTopic))

	get("/topicmaps/{map}/history", s.beside(History, s.history))
	dryRunToo("POST", "/topicmaps/{map}/revert", s.inTurn(s.revert))
	get("/topicmaps/{map}/differences", s.differences)

	get("/healthz", s.healthy)
	get("/readyz", s.ready)
	if !s.MetricsElsewhere {
		get("/metrics", s.Guesses.Guard(s.publicMetrics))
	}
	return r
}

// notAnEntry matches paths that do not end in ".atom". With a matcher function, mux would not report other possible
// methods.
const notAnEntry = "[^/]*[^/m]|[^/]*[^/o]m|[^/]*[^/t]om|[^/]*[^/a]tom|[^/]*[^/.]atom"
