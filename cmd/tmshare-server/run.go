package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/systemd"
)

// runFlags are the flags about the server process, not about its content.
type runFlags struct {
	extension.Serving
	delay, grace time.Duration // of stopping
	log          *slog.Logger

	certificates    *certificates        // nil: plain HTTP
	metricsListener net.Listener         // nil: metrics have no separate listener
	addStatus       func(*http.ServeMux) // adds to its handlers; nil: nothing is followed
}

// prepare returns an error for invalid flags before any other work.
func (f *runFlags) prepare() (err error) {
	if (f.Cert == "") != (f.Key == "") {
		return cli.UsageError(errors.New("--tls-cert and --tls-key belong together: give both"))
	}
	if f.Cert != "" {
		if f.certificates, err = loadCertificates(f.Cert, f.Key, f.log); err != nil {
			return err
		}
	}
	if f.Metrics != "" {
		f.metricsListener, err = listen("--metrics-listen", f.Metrics)
	}
	return err
}

func (f *runFlags) close() {
	if f.metricsListener != nil {
		f.metricsListener.Close()
	}
}

func (f *runFlags) scheme() string {
	if f.certificates != nil {
		return "https"
	}
	return "http"
}

// listener returns the socket that systemd has opened, or one at --listen.
func (f *serveFlags) listener() (net.Listener, error) {
	given, err := systemd.Listener()
	if err != nil || given != nil {
		return given, err
	}
	return listen("--listen", f.run.Listen)
}

// listen returns a socket at the address that a flag has.
func listen(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch malformed := (*net.AddrError)(nil); {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf(
			"%s: %w; stop the program that listens there, or give another address, and --data for a second server", flag, err)
	case errors.As(err, &malformed):
		return nil, cli.UsageError(fmt.Errorf("%s: %w; write HOST:PORT, as in 127.0.0.1:8080", flag, err))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return listener, nil
}

// serve serves until ctx ends, then finishes running requests.
func (f *runFlags) serve(ctx context.Context, s *server.Server, listener net.Listener) error {
	failed := make(chan error, 2)
	public := f.httpServer(s)
	listener = web.Listener{Listener: listener}
	if f.certificates != nil {
		public.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: f.certificates.get}
		go func() { failed <- public.ServeTLS(listener, "", "") }()
	} else {
		go func() { failed <- public.Serve(listener) }()
	}
	s.Logger.Info("serving", "url", s.BaseURL+"/topicmaps")
	if f.metricsListener != nil {
		routes := http.NewServeMux()
		routes.Handle("GET /metrics", s.MetricsHandler())
		if f.addStatus != nil {
			f.addStatus(routes)
		}
		metrics := f.httpServer(routes)
		metrics.WriteTimeout = time.Minute
		defer metrics.Close() // last, so that they cover the shutdown
		go func() { failed <- metrics.Serve(f.metricsListener) }()
		s.Logger.Info("serving metrics", "url", "http://"+f.metricsListener.Addr().String()+"/metrics")
	}
	systemd.Ready()
	go systemd.KeepAlive(ctx, func(ctx context.Context) error {
		_, err := s.Store.Collections(ctx)
		return err
	})
	select {
	case err := <-failed:
		return errors.Join(err, public.Close())
	case <-ctx.Done():
	}
	systemd.Stopping()
	s.Logger.Info("stopping", "delay", f.delay, "grace", f.grace)
	s.Stopping()
	time.Sleep(f.delay)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.grace)
	defer cancel()
	if err := public.Shutdown(grace); err != nil {
		s.Logger.Warn("requests cut off: they took longer than the grace", "grace", f.grace)
		return public.Close()
	}
	return nil
}

// httpServer returns a server with time limits: 10 seconds for headers, two minutes for the next request on a
// connection, fifteen seconds for answers to its pings on HTTP/2. The handler limits bodies and answers
// (--slow-client-timeout).
func (f *runFlags) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100, SendPingTimeout: time.Minute,
			PingTimeout: 15 * time.Second},
		ConnContext: web.ConnContext,
		ErrorLog:    slog.NewLogLogger(f.log.Handler(), slog.LevelWarn),
	}
}
