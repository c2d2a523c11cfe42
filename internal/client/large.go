package client

import (
	"context"
	"io"

	"github.com/tmshare/tmshare/internal/fetch"
)

// largeFragment is from how many bytes on a fragment is large. Most are of some
// KB; those of a hub may have a hundred MB, of which one at a time is enough.
const largeFragment = 1 << 20

// oneLarge reads a body. What is large waits until no other large one is read.
type oneLarge struct {
	body io.Reader
	ctx  context.Context
	room chan struct{}
	n    int64
	held bool
}

func (o *oneLarge) Read(p []byte) (int, error) {
	if o.n > largeFragment && !o.held {
		if err := o.wait(); err != nil {
			return 0, err
		}
	}
	n, err := o.body.Read(p)
	o.n += int64(n)
	return n, err
}

// wait waits until no other large one is read. A server is not to blame for that.
func (o *oneLarge) wait() error {
	if from, ok := o.body.(*fetch.Body); ok {
		from.Pause()
		defer from.Resume()
	}
	select {
	case o.room <- struct{}{}:
		o.held = true
		return nil
	case <-o.ctx.Done():
		return o.ctx.Err()
	}
}

func (o *oneLarge) leave() {
	if o.held {
		<-o.room
		o.held = false
	}
}
