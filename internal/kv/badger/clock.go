package badger

import (
	"math"
	"sync"
)

// clock gives the times of Badger: each row is written at a time, and a reader sees the rows written until its time. It
// is safe for concurrent use.
type clock struct {
	mu      sync.Mutex
	next    uint64         // at which something is written next
	shown   uint64         // readers see the rows written until this time
	readers map[uint64]int // number of readers by their time
}

// aheadBy is the number of times reserved for other commits, while a large commit is written at later times.
const aheadBy = 1 << 32

// tick returns a time at which something is written. Readers see it after show.
func (c *clock) tick() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.next - 1
}

// ahead returns a future time: others write at earlier ones meanwhile.
func (c *clock) ahead() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next + aheadBy
}

// show makes the rows visible that were written until a time. Later rows get a later time.
func (c *clock) show(until uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = max(c.shown, until)
	c.next = max(c.next, c.shown+1)
}

// enter begins a reader, and returns its time: it sees the rows written until then.
func (c *clock) enter() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers[c.shown]++
	return c.shown
}

// leave ends a reader, and returns the time until which Badger may forget rows that have newer ones.
func (c *clock) leave(at uint64) (forget uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readers[at]--; c.readers[at] == 0 {
		delete(c.readers, at)
	}
	forget = c.shown
	for at := range c.readers {
		forget = min(forget, at)
	}
	return forget
}

// beginClock sets the clock when the database is opened: after all rows, or before the parts of an incomplete commit.
func (e *Engine) beginClock() (err error) {
	defer panicked(&err)
	all := &reader{txn: e.badger.NewTransactionAt(math.MaxUint64, false), ctx: e.stopped}
	defer all.txn.Discard()
	until := e.badger.MaxVersion()
	if e.torn, err = all.openParts(); e.torn != 0 {
		until = e.torn - 1
	}
	e.ahead = max(e.torn, e.badger.MaxVersion())
	e.clock = clock{next: until + 1, shown: until, readers: map[uint64]int{}}
	return err
}
