package client

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/xtm"
)

// How documents are read: one large one at a time, with progress, and as tolerantly as asked for.

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

// progressReader tells now and then how much was read.
type progressReader struct {
	r      io.Reader
	n      int64
	report func(bytes int64)
}

// progressStep is the number of bytes between two reports.
const progressStep = 16 << 20

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	before := p.n / progressStep
	p.n += int64(n)
	if p.n/progressStep > before {
		p.report(p.n)
	}
	return n, err
}

// tolerated counts what the documents of a source break the rules of XTM by. It is
// safe for concurrent use.
type tolerated struct {
	mu    sync.Mutex
	tally xtm.Tally
}

func (t *tolerated) add(e *xtm.SyntaxError) {
	if e.Rule == xtm.ItemIdentifiers { // ids mean nothing beyond one document, and servers repeat them
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.Add(e)
}

// reportTolerated says at the end of a round what was tolerated in it.
func (c *Client) reportTolerated(source string) {
	c.tolerated.mu.Lock()
	defer c.tolerated.mu.Unlock()
	for _, n := range c.tolerated.tally.Counts() {
		c.Report(fmt.Sprintf("%s: warning: in the source's XTM, %s; first in %s, line %d", source, n.Tolerated(), n.First.URI, n.First.Line))
	}
}

// Progress says how far long work has come. It is given to [Config.Progress],
// which shows it or not: whoever does the work tells it whenever that is easy
// (after each read, record, commit), without thinking of how often.
//
// The work of a round is told one phase after the other; a new Phase, or the end
// of the round, ends the one before. Several goroutines may tell at a time, and
// those of several sources do. What must be said whatever the listener does is a
// line for [Config.Report] instead.
type Progress struct {
	Source string // the subscription
	Phase  string // what is done, as in "reading the snapshot"; starts in lower case
	Done   int64
	Total  int64 // 0: not known
	Unit   Unit
}

// Unit is what Progress counts.
type Unit string

// Units.
const (
	Bytes     Unit = "bytes"
	Records   Unit = "records"
	Fragments Unit = "fragments"
	Documents Unit = "documents"
	Rows      Unit = "rows" // of the database
)
