package hub

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/store"
)

// Store is what is needed of a store.
type Store interface {
	Await(ctx context.Context, since store.Version, every time.Duration) (store.Version, error)
	Collections(ctx context.Context) ([]store.Collection, error)
}

// watch calls look at first, and whenever the store has changed, until ctx ends: at most once in the time that is given. Where look returns
// a time, it is called again after that time, and not before.
func watch(ctx context.Context, db Store, every time.Duration, logger *slog.Logger, look func() (again time.Duration, err error)) {
	for last := (store.Version{}); ; {
		version, err := db.Await(ctx, last, every) // before the state: what is later is seen the next time
		wait := every
		if err == nil {
			var again time.Duration
			if again, err = look(); err == nil && again == 0 {
				last = version
			} else {
				last = store.Version{}
			}
			wait = max(wait, again)
		}
		if err != nil && ctx.Err() == nil {
			logger.Error("hubs are not told of changes: the store cannot be read; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// poster posts to one hub.
type poster struct {
	hub     string
	fetcher *fetch.Fetcher
	within  time.Duration // for one try
}

// post posts a body, with headers that may be nil. A hub that fails is tried again, five times in all.
func (p poster) post(ctx context.Context, mediaType string, body []byte, headers func(http.Header)) error {
	at, err := url.Parse(p.hub)
	if err != nil {
		return err
	}
	_, _, err = fetch.Do(ctx, p.fetcher, fetch.Request{
		Method: http.MethodPost, URL: p.hub, Accept: "*/*", Within: p.within, Packed: true,
		Post: body, PostType: mediaType, Prepare: headers,
		Also:     []int{http.StatusCreated, http.StatusAccepted, http.StatusNonAuthoritativeInfo, http.StatusNoContent, http.StatusResetContent},
		AllowURL: func(to *url.URL) error { return only(at, to) },
	}, func(*fetch.Answer) (struct{}, error) { return struct{}{}, nil }) // what it says is not read
	return err
}

// only allows no other URL: a redirect may lead into the network of the server, and may lose what is posted.
func only(hub, to *url.URL) error {
	if to.String() == hub.String() {
		return nil
	}
	return fmt.Errorf("the hub redirects to %s; if that is right, give that address as the hub's", to)
}

// newFetcher returns what a hub is posted to with.
func newFetcher(backoff time.Duration, logger *slog.Logger) *fetch.Fetcher {
	return fetch.Fetcher{Program: "tmshare-server", Tries: 5, Backoff: backoff, Logger: logger}.WithDefaults()
}
