package web

import (
	"container/list"
	"sync"
)

// recentBytes keeps documents that were asked for lately, by a name that stands
// for their content, up to a number of bytes in all. It is safe for concurrent
// use.
type recentBytes struct {
	limit int

	mu     sync.Mutex
	used   int
	byName map[string]*list.Element
	order  list.List // of namedBytes, the last used one first
}

type namedBytes struct {
	name  string
	bytes []byte
}

// perDocument is about what a document takes besides its bytes.
const perDocument = 300

func (n *namedBytes) size() int { return len(n.name) + len(n.bytes) + perDocument }

func newRecentBytes(limit int) *recentBytes {
	return &recentBytes{limit: limit, byName: map[string]*list.Element{}}
}

// get returns the document with a name, or nil.
func (c *recentBytes) get(name string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byName[name]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*namedBytes).bytes
}

// put keeps a document, which nobody changes from now on.
func (c *recentBytes) put(name string, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &namedBytes{name, b}
	if c.byName[name] != nil || n.size() > c.limit/8 { // one document must not push all others out
		return
	}
	c.byName[name] = c.order.PushFront(n)
	for c.used += n.size(); c.used > c.limit; {
		oldest := c.order.Remove(c.order.Back()).(*namedBytes)
		delete(c.byName, oldest.name)
		c.used -= oldest.size()
	}
}
