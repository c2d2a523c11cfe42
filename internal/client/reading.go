package client

import (
	"fmt"
	"io"
	"sync"

	"github.com/tmshare/tmshare/xtm"
)

// How documents are read: with progress reports, and with the requested tolerance.

// progressReader reports the number of bytes read from time to time.
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

// tolerated counts the violations of XTM rules in the documents of a source. It is safe for concurrent use.
type tolerated struct {
	mu    sync.Mutex
	tally xtm.Tally
}

func (t *tolerated) add(e *xtm.SyntaxError) {
	if e.Rule == xtm.ItemIdentifiers { // ids are valid within one document only, and servers repeat them
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.Add(e)
}

// reportTolerated reports the tolerated violations at the end of a round.
func (c *Client) reportTolerated(source string) {
	c.tolerated.mu.Lock()
	defer c.tolerated.mu.Unlock()
	for _, n := range c.tolerated.tally.Counts() {
		c.Report(fmt.Sprintf("%s: warning: in the source's documents, %s; first in %s, line %d",
			source, n.Tolerated(), n.First.URI, n.First.Line))
	}
}

// Progress is the progress of long work, passed to [Config.Progress] after each read, record and commit.
//
// The phases of a round are reported one after the other; a new Phase, or the end of the round, ends the previous one.
// Several goroutines, also of several sources, may report concurrently. Text that must be shown in any case goes to
// [Config.Report] instead.
type Progress struct {
	Source string // the subscription
	Phase  string // the present work, as in "reading the snapshot"; starts in lower case
	Done   int64
	Total  int64 // 0: not known
	Unit   Unit
}

// Unit is the unit of Progress.
type Unit string

// Units.
const (
	Bytes     Unit = "bytes"
	Records   Unit = "records"
	Fragments Unit = "fragments"
	Documents Unit = "documents"
	Rows      Unit = "rows" // of the database
)
