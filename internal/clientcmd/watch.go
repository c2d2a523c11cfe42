package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/systemd"
)

// Jitter is the default fraction by which the times between rounds vary.
const Jitter = 0.1

// watching are the flags of watch.
type watching struct {
	interval time.Duration
	jitter   float64
	listen   string
}

func (a *app) watch() *cobra.Command {
	var f watching
	cmd := &cobra.Command{
		Use:   "watch [NAME...]",
		Short: "Keep subscriptions up to date until told to stop",
		Long: `Do rounds of the named subscriptions, or of all, again and again: as "sync" does, but
each source by itself, so that one that is slow or dead does not delay the others.
After a round that failed the wait doubles, up to an hour, and is as long as the
server asks for (Retry-After).

Meanwhile all other commands work as ever; a subscription that they add or remove
is handled at once. A command that changes a subscription waits for a round of it
that is under way.

SIGHUP  looks at the subscriptions anew and begins a round of each at once
SIGTERM, SIGINT  finish the commit that is under way and end, with exit code 0

--listen serves /status (a page, or JSON for those who ask for it), /status.json,
/healthz, /readyz and /metrics. Under systemd (Type=notify) it tells when it is
ready, how it is, and that it is alive. The log goes to standard error, with
--json as JSON.`,
		Example: `  tmshare-client watch --interval 1m
  tmshare-client watch --listen 127.0.0.1:8081 egov`,
		PreRunE: func(*cobra.Command, []string) error {
			if f.interval <= 0 || f.jitter < 0 || f.jitter > 1 {
				return cli.UsageError(errors.New("--interval must be positive, and --jitter from 0 to 1"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Command = cmd
			a.spareMemory(cmd, args)
			return a.keepWatch(cmd.Context(), &f, args)
		},
	}
	fl := cmd.Flags()
	fl.DurationVar(&f.interval, "interval", 5*time.Minute, "`time` between two rounds of a source")
	fl.Float64Var(&f.jitter, "jitter", Jitter, "vary it by this `fraction`, so that not all clients ask at once")
	a.AddFlags(fl, "topics")
	fl.StringVar(&f.listen, "listen", "", "`address` to serve the status at (default: none)")
	return cmd
}

// keepWatch opens the store and watches until a signal stops it.
func (a *app) keepWatch(ctx context.Context, f *watching, names []string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	log := a.watchLog()

	var listener net.Listener
	if f.listen != "" {
		if listener, err = net.Listen("tcp", f.listen); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		defer listener.Close()
	}
	if err := a.OpenAlone(ctx, store.Options{Access: store.Write, Logger: log}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Held.End(ctx, false)) }()
	a.DB = a.Held.DB
	w, err := Follow(a.Held, client.Config{Formats: a.Formats(), Protocols: extension.Protocols(a.Extensions),
		ConfirmAfter: a.ConfirmAfter, MaxDelete: a.MaxDelete, Hosts: a.Hosts, MaxEntries: a.MaxEntries,
		Lenient: a.ReadsLeniently(), Logger: log}, a.watchOptions(f, names, log))
	if err != nil {
		return err
	}
	var others sync.WaitGroup
	defer others.Wait()
	ctx, end := context.WithCancel(ctx) // also if the watcher ends by itself
	defer end()
	parts := extension.Held(a.Extensions, a.Held)
	if listener != nil {
		others.Go(func() { serveStatus(ctx, w.Handler(parts...), listener, log) })
	}
	for _, p := range parts {
		if p.Run != nil {
			others.Go(func() { p.Run(ctx, log) })
		}
	}
	others.Go(func() {
		for {
			select {
			case <-hup:
				log.Info("SIGHUP: a round of each source begins")
				systemd.Reloading()
				w.StartRound()
				systemd.Ready()
			case <-ctx.Done():
				systemd.Stopping()
				a.Held.Close(ctx) // those of others end, too, while the watcher does
				return
			}
		}
	})
	a.DB.Lease(ctx, "subscriptions", func(ctx context.Context) { err = w.Run(ctx) })
	if err == nil {
		log.Info("stopped")
	}
	return err
}

func (a *app) watchLog() *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	switch {
	case a.Verbose:
		o.Level = slog.LevelDebug
	case a.Quiet:
		o.Level = slog.LevelWarn
	}
	if a.JSON {
		return slog.New(slog.NewJSONHandler(a.Command.ErrOrStderr(), o))
	}
	return slog.New(slog.NewTextHandler(a.Command.ErrOrStderr(), o))
}

func (a *app) watchOptions(f *watching, names []string, log *slog.Logger) watch.Options {
	failing := map[string]bool{}
	var mu sync.Mutex
	return watch.Options{
		Names: names, Interval: f.interval, Jitter: f.jitter,
		Scheduled: func() {
			log.Info("watching", "data", a.Data, "interval", f.interval)
			systemd.Ready()
		},
		Alive: systemd.Alive, Beat: systemd.Beat(),
		Done: func(name string, r *client.Round, err error) {
			mu.Lock()
			defer mu.Unlock()
			if failing[name] = err != nil; err == nil {
				delete(failing, name)
			}
			if len(failing) == 0 {
				systemd.Status("all sources are in step")
			} else {
				systemd.Status(fmt.Sprintf("the last round failed for %d of the sources", len(failing)))
			}
		},
	}
}

func logRound(log *slog.Logger, name string, r *client.Round, err error) {
	fields := func(more ...any) []any {
		all := append([]any{"source", name}, more...)
		if r.Mark.IsZero() { // of an empty source, or one with only future times
			return all
		}
		return append(all, "mark", feeds.FormatTime(r.Mark))
	}
	switch {
	case errors.As(err, new(*follow.DoubtError)):
		log.Warn("in doubt: what a reading would take away stays until it is confirmed", "source", name, "error", err)
	case err != nil:
		log.Warn("round failed", "source", name, "error", err)
	case r.Quarantined > 0:
		log.Warn("round done, but topics are in quarantine",
			fields("entries", r.Entries, "fragments", r.Applied, "quarantined", r.Quarantined)...)
	case r.Unproven != "":
		log.Warn("round done, but what is held is not proven equal to the source",
			fields("entries", r.Entries, "fragments", r.Applied, "reason", r.Unproven)...)
	case r.Repaired > 0:
		log.Warn("topics differed from the source and were repaired", fields("topics", r.Repaired, "proven", r.Proven)...)
	case r.CleanStart:
		log.Info("loaded from a snapshot", fields("reason", r.Reason, "fragments", r.Applied)...)
	case r.Entries > 0:
		log.Info("changes applied", fields("entries", r.Entries, "fragments", r.Applied)...)
	default:
		log.Debug("nothing new", fields()...)
	}
}

// serveStatus serves h until ctx ends.
func serveStatus(ctx context.Context, h http.Handler, listener net.Listener, log *slog.Logger) {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	log.Info("serving the status", "url", "http://"+listener.Addr().String()+"/status")
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Error("the status is not served any more", "error", err)
	}
}
