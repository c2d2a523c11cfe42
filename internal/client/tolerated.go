package client

import (
	"fmt"
	"sync"

	"github.com/tmshare/tmshare/xtm"
)

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
