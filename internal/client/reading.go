package client

import (
	"fmt"
	"io"
	"sync"

	"github.com/tmshare/tmshare/xtm"
)

// How documents are read: with progress, and as tolerantly as asked for.

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

// tolerated counts what the documents of a source break the rules of XTM by. It is safe for concurrent use.
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
		c.Report(fmt.Sprintf("%s: warning: in the source's documents, %s; first in %s, line %d",
			source, n.Tolerated(), n.First.URI, n.First.Line))
	}
}

// Progress says how far long work has come. It is given to [Config.Progress], which shows it or not. The work reports
// it after each read, record and commit.
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
