package folder

import (
	"context"
	"errors"
	"net/url"
	"sync"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/iri"
)

// hosts sees to it that no host gets more requests at a time than it should, and knows
// which have failed.
type hosts struct {
	most int

	mu  sync.Mutex
	all map[string]*host
}

// maxConsecutiveFailures is the number of consecutive failures of a host after which another one is preferred.
const maxConsecutiveFailures = 5

type host struct {
	slots  chan struct{}
	failed int // in a row
}

func newHosts(most int) *hosts { return &hosts{most: most, all: map[string]*host{}} }

func (h *hosts) host(ref string) *host {
	name := ""
	if u, err := url.Parse(ref); err == nil {
		name = iri.HostOf(u)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.all[name]
	if one == nil {
		one = &host{slots: make(chan struct{}, h.most)}
		h.all[name] = one
	}
	return one
}

// begin waits until the host of a URL may get a request. The caller passes the result of the request to done.
func (h *hosts) begin(ctx context.Context, ref string) (done func(error), err error) {
	one := h.host(ref)
	select {
	case one.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func(err error) {
		<-one.slots
		var failed *fetch.Error
		h.mu.Lock()
		defer h.mu.Unlock()
		if errors.As(err, &failed) && failed.Transient() {
			one.failed++
		} else {
			one.failed = 0
		}
	}, nil
}

// isDown reports whether a host has failed so often that another one, if any, is preferred.
func (h *hosts) isDown(ref string) bool {
	one := h.host(ref)
	h.mu.Lock()
	defer h.mu.Unlock()
	return one.failed >= maxConsecutiveFailures
}
