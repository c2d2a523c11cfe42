package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/extension"
)

// follow does the rounds of the subscriptions of a data folder, until ctx ends and the last one has: wait waits for
// that. SIGHUP begins a round of each.
func (f *serveFlags) follow(ctx context.Context, held *extension.Holding,
	log *slog.Logger) (begin, wait func(), err error) {
	var running sync.WaitGroup
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // always: the signal must not end the program
	wait = func() {
		running.Wait()
		signal.Stop(hup)
	}
	if f.interval == 0 {
		extension.Held(f.app.Extensions, held)
		return func() {}, wait, nil
	}
	w, err := clientcmd.Follow(held,
		client.Config{Formats: f.config.Formats, Protocols: extension.Protocols(f.app.Extensions),
			ConfirmAfter: f.confirmAfter, MaxDelete: f.config.MaxDelete, Hosts: f.hosts, Lenient: f.config.Lenient, Logger: log},
		watch.Options{Interval: f.interval, Jitter: clientcmd.Jitter})
	if err != nil {
		return nil, nil, err
	}
	parts := extension.Held(f.app.Extensions, held)
	f.run.addStatus = func(routes *http.ServeMux) { w.AddStatus(routes, parts...) }
	f.config.Collectors = append(f.config.Collectors, w.Collector())
	begin = func() {
		running.Go(func() {
			held.DB.Lease(ctx, "subscriptions", func(ctx context.Context) {
				if err := w.Run(ctx); err != nil && ctx.Err() == nil {
					log.Error("the subscriptions are not followed", "error", err)
				}
			})
		})
		running.Go(func() {
			for {
				select {
				case <-hup:
					log.Info("SIGHUP: a round of each subscription begins")
					w.StartRound()
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return begin, wait, nil
}
