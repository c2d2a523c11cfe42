// Package memory is an engine that keeps its rows in the process until its last user closes it. Several stores of one
// process can share it.
package memory

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/tmshare/tmshare/internal/kv"
)

// Engine implements [kv.Engine].
type Engine struct {
	mu      sync.RWMutex
	present *state
	recent  kv.Recent
	closed  bool
}

// state is immutable: each write makes another one, which shares unchanged parts.
type state struct {
	rows    *btree.Map[string, []byte]
	version kv.Version        // without the era
	size    int64             // of keys and values
	spaces  map[uint32]uint64 // the number of the last commit that has changed rows of a keyspace; it is never changed
}

// at returns the version, with the era.
func (s *state) at() kv.Version {
	v := s.version
	era, _ := s.rows.Get(string(kv.EraKey))
	v.Era = kv.EraOf(era)
	return v
}

// New returns an engine without rows.
func New() *Engine {
	return &Engine{present: &state{rows: btree.NewMap[string, []byte](0), version: kv.First, spaces: map[uint32]uint64{}}}
}

// Copy returns another engine with the rows of the present state, also after Close. What is written to one does not
// show in the other.
func (e *Engine) Copy() *Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := *e.present
	s.rows = e.present.rows.IsoCopy()
	return &Engine{present: &s}
}

func (e *Engine) state() (*state, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return nil, kv.ErrClosed
	}
	return e.present, nil
}

// Snapshot implements [kv.Engine].
func (e *Engine) Snapshot(ctx context.Context) (kv.Reader, error) {
	s, err := e.state()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &reader{s, ctx}, nil
}

// Version implements [kv.Engine].
func (e *Engine) Version(ctx context.Context) (kv.Version, error) {
	s, err := e.state()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return kv.Version{}, err
	}
	return s.at(), nil
}

// Changed implements [kv.Engine].
func (e *Engine) Changed(from, to kv.Version) map[uint32]bool {
	return e.recent.ChangedInOrder(from, to)
}

// Size implements [kv.Engine].
func (e *Engine) Size() (int64, error) {
	s, err := e.state()
	if err != nil {
		return 0, err
	}
	return s.size, nil
}

// Close implements [kv.Engine].
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

type reader struct {
	*state
	ctx context.Context
}

func (r *reader) Version() kv.Version { return r.at() }
func (r *reader) Close()              {}

func (r *reader) Get(key []byte) ([]byte, error) {
	if err := context.Cause(r.ctx); err != nil {
		return nil, err
	}
	value, _ := r.rows.Get(string(key))
	return value, nil
}

func (r *reader) Range(prefix, from []byte, reverse bool) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		within := string(prefix)
		step := func(key string, value []byte) bool {
			if !strings.HasPrefix(key, within) {
				return false
			}
			if err := context.Cause(r.ctx); err != nil {
				yield(kv.Row{}, err)
				return false
			}
			return yield(kv.Row{Key: []byte(key), Value: value}, nil)
		}
		switch last := kv.After(prefix); {
		case !reverse:
			r.rows.Ascend(string(larger(prefix, from)), step)
		case from != nil && (last == nil || bytes.Compare(from, last) < 0):
			r.rows.Descend(string(from), step)
		case last == nil:
			r.rows.Reverse(step)
		default:
			r.rows.Descend(string(last), func(key string, value []byte) bool {
				return key == string(last) || step(key, value) // which follows them
			})
		}
	}
}

func larger(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}
