package kvtest

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/tmshare/tmshare/internal/kv"
)

// Asked is an engine that counts the requests that a distant database would get. Its readers implement [kv.ManyReader],
// for any engine.
type Asked struct {
	kv.Engine
	Questions atomic.Int64
	Of        func(context.Context) bool // reports whether a context's requests are counted; nil: all are
}

func (e *Asked) count(ctx context.Context) {
	if e.Of == nil || e.Of(ctx) {
		e.Questions.Add(1)
	}
}

// Version implements [kv.Engine].
func (e *Asked) Version(ctx context.Context) (kv.Version, error) {
	e.count(ctx)
	return e.Engine.Version(ctx)
}

// Snapshot implements [kv.Engine].
func (e *Asked) Snapshot(ctx context.Context) (kv.Reader, error) {
	e.count(ctx)
	r, err := e.Engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &askedReader{r, e, ctx}, nil
}

// Begin implements [kv.Engine].
func (e *Asked) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	w, err := e.Engine.Begin(ctx, since)
	return &askedWriter{w, e, ctx}, err
}

type askedWriter struct {
	kv.Writer
	counts *Asked
	ctx    context.Context
}

func (w *askedWriter) Commit() error {
	w.counts.count(w.ctx)
	return w.Writer.Commit()
}

type askedReader struct {
	kv.Reader
	counts *Asked
	ctx    context.Context
}

func (r *askedReader) Get(key []byte) ([]byte, error) {
	r.counts.count(r.ctx)
	return r.Reader.Get(key)
}

func (r *askedReader) Range(prefix, from []byte, reverse bool) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		r.counts.count(r.ctx)
		r.Reader.Range(prefix, from, reverse)(yield)
	}
}

// ReadMany implements [kv.ManyReader].
func (r *askedReader) ReadMany(keys, prefixes [][]byte, most int, value func(key, value []byte),
	rows func(prefix []byte, rows []kv.Row, more bool)) error {
	r.counts.count(r.ctx)
	if many, ok := r.Reader.(kv.ManyReader); ok {
		return many.ReadMany(keys, prefixes, most, value, rows)
	}
	return oneByOne(r.Reader, keys, prefixes, most, value, rows)
}

// oneByOne is the reference for [kv.ManyReader]: it reads key by key, and prefix by prefix.
func oneByOne(r kv.Reader, keys, prefixes [][]byte, most int, value func(key, value []byte),
	rows func(prefix []byte, rows []kv.Row, more bool)) error {
	for _, key := range keys {
		v, err := r.Get(key)
		if err != nil {
			return err
		}
		value(key, v)
	}
	for _, prefix := range prefixes {
		var first []kv.Row
		more := false
		for row, err := range r.Range(prefix, nil, false) {
			if err != nil {
				return err
			}
			if more = len(first) == most; more {
				break
			}
			first = append(first, kv.Row{Key: append([]byte{}, row.Key...), Value: append([]byte{}, row.Value...)})
		}
		rows(prefix, first, more)
	}
	return nil
}
