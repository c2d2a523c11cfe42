package extension

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/locks"
	"github.com/tmshare/tmshare/internal/store"
)

// Holding is a store that this process holds. The commands of tmshare-client on
// it work in other processes too: they are executed here.
type Holding struct {
	DB      *store.DB
	Locks   locks.Locks                   // of all commands that are executed here
	Watcher atomic.Pointer[watch.Watcher] // nil: no rounds run
	Execute Execute
	Serving map[string][]string // the settings of the server, as [Given] returns them; nil: it is none

	owned  bool // End closes the store as well
	server *control.Server
}

// serve accepts the commands of other processes. program is the name in its answers.
func (h *Holding) serve(program string) (err error) {
	h.server, err = control.Serve(h.DB.Dir(), program, func(ctx context.Context, r *control.Request) int {
		code := h.Execute(ctx, r, h)
		h.Refresh()
		return code
	})
	return err
}

// Refresh makes the watcher read the subscriptions again.
func (h *Holding) Refresh() {
	if w := h.Watcher.Load(); w != nil {
		w.Refresh()
	}
}

// Close refuses new commands and waits for running ones. When ctx ends, it interrupts them with an error. The store
// stays open.
func (h *Holding) Close(ctx context.Context) {
	if h.server != nil {
		h.server.Close(ctx)
	}
}

// End is Close, and closes a store that was opened for one command.
func (h *Holding) End(ctx context.Context, failed bool) (err error) {
	h.Close(ctx)
	if h.owned {
		if failed { // an empty folder would seem to be important
			err = h.DB.Discard(context.WithoutCancel(ctx))
		}
		err = errors.Join(err, h.DB.Close())
	}
	return err
}

func (h *Holding) busy() int {
	if h.server == nil {
		return 0
	}
	return h.server.Busy()
}
