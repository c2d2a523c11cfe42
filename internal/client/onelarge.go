package client

import (
	"context"
	"io"

	"github.com/tmshare/tmshare/internal/fetch"
)

// largeBody is the length in bytes from which on a fragment is large. Most have some KB; those of a hub may have a
// hundred MB, so only one is fetched at a time.
const largeBody = 1 << 20

// oneLarge reads a body. What is large waits until no other large one is read.
type oneLarge struct {
	Body io.Reader
	Ctx  context.Context
	Slot chan struct{} // has room for one
	N    int64         // bytes that were read

	held bool
}

// Read implements [io.Reader].
func (o *oneLarge) Read(p []byte) (int, error) {
	if o.N > largeBody && !o.held {
		if err := o.wait(); err != nil {
			return 0, err
		}
	}
	n, err := o.Body.Read(p)
	o.N += int64(n)
	return n, err
}

// wait waits until no other large one is read. A server is not to blame for that.
func (o *oneLarge) wait() error {
	if from, ok := o.Body.(*fetch.Body); ok {
		from.Pause()
		defer from.Resume()
	}
	select {
	case o.Slot <- struct{}{}:
		o.held = true
		return nil
	case <-o.Ctx.Done():
		return o.Ctx.Err()
	}
}

// Leave lets another large one be read.
func (o *oneLarge) Leave() {
	if o.held {
		<-o.Slot
		o.held = false
	}
}
