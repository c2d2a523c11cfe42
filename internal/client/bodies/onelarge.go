// Package bodies bounds the memory that many fragments take which are read at the same time.
package bodies

import (
	"context"
	"io"

	"github.com/tmshare/tmshare/internal/fetch"
)

// large is from how many bytes on a fragment is large. Most are of some
// KB; those of a hub may have a hundred MB, of which one at a time is enough.
const large = 1 << 20

// OneLarge reads a body. What is large waits until no other large one is read.
type OneLarge struct {
	Body io.Reader
	Ctx  context.Context
	Room chan struct{} // has room for one
	N    int64         // bytes that were read

	held bool
}

// Read implements [io.Reader].
func (o *OneLarge) Read(p []byte) (int, error) {
	if o.N > large && !o.held {
		if err := o.wait(); err != nil {
			return 0, err
		}
	}
	n, err := o.Body.Read(p)
	o.N += int64(n)
	return n, err
}

// wait waits until no other large one is read. A server is not to blame for that.
func (o *OneLarge) wait() error {
	if from, ok := o.Body.(*fetch.Body); ok {
		from.Pause()
		defer from.Resume()
	}
	select {
	case o.Room <- struct{}{}:
		o.held = true
		return nil
	case <-o.Ctx.Done():
		return o.Ctx.Err()
	}
}

// Leave lets another large one be read.
func (o *OneLarge) Leave() {
	if o.held {
		<-o.Room
		o.held = false
	}
}
