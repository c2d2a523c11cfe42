package fetch

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// Body is the body of an answer. It returns an error at its limit, and if the server sends nothing, or too little, for
// too long. Its errors name the document.
type Body struct {
	from      io.ReadCloser // nil before the answer
	url       string
	left, max int64
	stall     time.Duration
	rate      int64         // bytes per second, as received, that are enough
	came      atomic.Int64  // bytes since the clock of stall was set
	within    time.Duration // from the request to the end of the body; 0: no limit
	failed    error

	caller context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	whole  *time.Timer // nil without a limit
}

// watch returns the context for the request. It ends with ctx, when b is closed or has failed, and when nothing was
// received for too long.
func (b *Body) watch(ctx context.Context) context.Context {
	b.caller = ctx
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.timer = time.AfterFunc(b.stall, func() {
		if b.came.Load() == 0 {
			b.cancel(fmt.Errorf("the server has sent nothing for %s", b.stall))
			return
		}
		b.cancel(fmt.Errorf("%w: the server has sent less than %d bytes per second for %s", errTooSlow, b.rate, b.stall))
	})
	if b.within > 0 {
		b.whole = time.AfterFunc(b.within, func() { b.cancel(fmt.Errorf("the server has not sent all within %s", b.within)) })
	}
	return b.ctx
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, b.fail(fmt.Errorf("%w of %d bytes", errTooLong, b.max))
	}
	if err != nil && err != io.EOF {
		err = b.fail(err)
	}
	return n, err
}

// arriving counts the received bytes of the body, before unpacking. It resets the clock when enough was received for
// the whole time.
type arriving struct {
	io.ReadCloser
	*Body
}

func (a arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.came.Add(int64(n)) >= max(1, int64(float64(a.rate)*a.stall.Seconds())) {
		a.restart()
	}
	return n, err
}

func (a arriving) Close() error { return a.ReadCloser.Close() }

func (b *Body) restart() {
	b.came.Store(0)
	b.timer.Reset(b.stall)
}

// Pause stops the clocks: the wait is ours, not the server's.
func (b *Body) Pause() {
	b.timer.Stop()
	if b.whole != nil {
		b.whole.Stop()
	}
}

// Resume restarts the clocks.
func (b *Body) Resume() {
	b.restart()
	if b.whole != nil {
		b.whole.Reset(b.within)
	}
}

// Size returns the number of bytes read, unpacked.
func (b *Body) Size() int64 { return b.max - b.left }

// fail ends the request and returns the reason.
func (b *Body) fail(err error) error {
	if b.caller.Err() == nil && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	b.end()
	b.failed = &Error{URL: b.url, Err: err}
	return b.failed
}

func (b *Body) end() {
	b.timer.Stop()
	if b.whole != nil {
		b.whole.Stop()
	}
	b.cancel(nil)
}

// Close ends the request.
func (b *Body) Close() error {
	err := b.from.Close()
	b.end()
	return err
}
