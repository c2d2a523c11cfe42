package client

import (
	"context"

	"github.com/tmshare/tmshare/internal/fetch"
)

// largeFragment is from how many bytes on a fragment is large. Most are of some
// KB; those of a hub may have a hundred MB, of which one at a time is enough.
const largeFragment = 1 << 20

// oneLarge reads a body. What is large waits until no other large one is read.
type oneLarge struct {
	body *fetch.Body
	ctx  context.Context
	room chan struct{}
	n    int64
	held bool
}

func (o *oneLarge) Read(p []byte) (int, error) {
	if o.n > largeFragment && !o.held {
		o.body.Pause()
		select {
		case o.room <- struct{}{}:
			o.held = true
		case <-o.ctx.Done():
			return 0, o.ctx.Err()
		}
		o.body.Resume()
	}
	n, err := o.body.Read(p)
	o.n += int64(n)
	return n, err
}

func (o *oneLarge) leave() {
	if o.held {
		<-o.room
		o.held = false
	}
}
