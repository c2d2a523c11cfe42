package web

import (
	"container/list"
	"sync"
)

// recentBytes caches recently requested documents by a name that identifies their content, up to a number of bytes. It
// is safe for concurrent use.
type recentBytes struct {
	limit int

	mu     sync.Mutex
	used   int
	byName map[string]*list.Element
	order  list.List                         // of namedBytes, the last used one first
	making map[string]func() ([]byte, error) // by name: made once for all waiting requests
}

type namedBytes struct {
	name  string
	bytes []byte
}

// perDocument is the approximate memory of a document besides its bytes.
const perDocument = 300

func (n *namedBytes) size() int { return len(n.name) + len(n.bytes) + perDocument }

func newRecentBytes(limit int) *recentBytes {
	return &recentBytes{limit: limit, byName: map[string]*list.Element{}, making: map[string]func() ([]byte, error){}}
}

// get returns the document with a name, which must not be changed. A missing one is made once for all concurrent
// requests; if that fails, for example because a client has gone, each of the others makes it alone.
func (c *recentBytes) get(name string, encode func() ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	if e := c.byName[name]; e != nil {
		defer c.mu.Unlock()
		c.order.MoveToFront(e)
		return e.Value.(*namedBytes).bytes, nil
	}
	made, underway := c.making[name]
	if !underway {
		made = sync.OnceValues(func() (b []byte, err error) {
			defer func() { c.put(name, b, err) }()
			return encode()
		})
		c.making[name] = made
	}
	c.mu.Unlock()
	b, err := made()
	if err != nil && underway {
		return encode()
	}
	return b, err
}

// put keeps a document, if it was made.
func (c *recentBytes) put(name string, b []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.making, name)
	n := &namedBytes{name, b}
	if b == nil || err != nil || n.size() > c.limit/8 { // one document must not push all others out
		return
	}
	c.byName[name] = c.order.PushFront(n)
	for c.used += n.size(); c.used > c.limit; {
		oldest := c.order.Remove(c.order.Back()).(*namedBytes)
		delete(c.byName, oldest.name)
		c.used -= oldest.size()
	}
}
