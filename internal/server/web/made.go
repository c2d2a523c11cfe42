package web

import "sync"

// Made caches the tags of documents made of one state, so that they are not made again for clients that have them. It
// is safe for concurrent use.
type Made[State comparable] struct {
	mu    sync.Mutex
	state State
	tags  map[string]string // by name of the document
	first []byte            // the document that was made first: one is kept, as they may be large
	name  string            // of it
}

// Get returns the tag of a document that encode makes of a state, and a function that returns the document. The number
// of names must be small.
func (m *Made[State]) Get(state State, name string,
	encode func() ([]byte, error)) (tag string, document func() ([]byte, error), err error) {
	m.mu.Lock()
	if m.tags == nil || m.state != state {
		m.state, m.tags, m.first = state, map[string]string{}, nil
	}
	tag, known := m.tags[name]
	b := m.first
	if m.name != name {
		b = nil
	}
	m.mu.Unlock()
	if b == nil && !known {
		if b, err = encode(); err != nil {
			return "", nil, err
		}
		tag = Digest(b)
		m.mu.Lock()
		if m.state == state {
			if m.tags[name] = tag; m.first == nil {
				m.first, m.name = b, name
			}
		}
		m.mu.Unlock()
	}
	if b == nil {
		return tag, encode, nil
	}
	return tag, func() ([]byte, error) { return b, nil }, nil
}
