package kvtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/testenv"
)

// Histories checks that an engine agrees with a map after random changes, and that readers keep
// to the state at which they began.
func Histories(t *testing.T, open func(t *testing.T) kv.Engine) {
	n := 0
	e := open(t)
	defer e.Close()
	testenv.Check(t, 40, 400, func(r *rapid.T) {
		n++
		require.NoError(r, e.DeletePrefix(context.Background(), nil))
		h := &history{T: r, engine: e, rows: map[string]string{}}
		defer h.closeReaders()
		h.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) { h.commit(t) },
			"late":   func(t *rapid.T) { h.late(t) },
			"bulk":   func(t *rapid.T) { h.bulk(t) },
			"delete": func(t *rapid.T) { h.delete(t) },
			"read":   func(t *rapid.T) { h.read(t) },
			"":       func(t *rapid.T) { h.agrees(t, h.engine) },
		})
	})
	require.Positive(t, n)
}

type history struct {
	*rapid.T
	engine  kv.Engine
	rows    map[string]string
	readers []kv.Reader
	seen    []map[string]string // by the readers
}

var keys = rapid.StringMatching("[abc\\x00é]{1,4}")

// changes draws changes, and makes them to rows.
func changes(t *rapid.T, w kv.Writer, rows map[string]string, lengths ...int) error {
	for i := range rapid.IntRange(1, 12).Draw(t, "changes") {
		key := keys.Draw(t, "key")
		if rapid.Bool().Draw(t, "delete") {
			delete(rows, key)
			if err := w.Delete([]byte(key)); err != nil {
				return err
			}
			continue
		}
		value := fmt.Sprint(i) + strings.Repeat(".", rapid.SampledFrom(append(lengths, 0, 3)).Draw(t, "length"))
		rows[key] = value
		if err := w.Put([]byte(key), []byte(value)); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) commit(t *rapid.T) {
	next := maps.Clone(h.rows)
	require.NoError(t, Update(context.Background(), h.engine, func(_ kv.Reader, w kv.Writer) error {
		return changes(t, w, next, 30_000)
	}))
	h.rows = next
}

// late gives up a small commit, since another came first.
func (h *history) late(t *rapid.T) {
	w, err := h.engine.Begin(context.Background(), version(t, h.engine))
	require.NoError(t, err)
	defer w.Cancel()
	require.NoError(t, changes(t, w, map[string]string{}))
	h.commit(t)
	require.ErrorIs(t, w.Commit(), kv.ErrConflict)
}

func (h *history) bulk(t *rapid.T) {
	h.closeReaders() // they may see it
	w, err := h.engine.Bulk(context.Background())
	require.NoError(t, err)
	defer w.Cancel()
	require.NoError(t, changes(t, w, h.rows, 30_000))
	require.NoError(t, w.Commit())
}

func (h *history) delete(t *rapid.T) {
	h.closeReaders()
	prefix := keys.Draw(t, "prefix")
	require.NoError(t, h.engine.DeletePrefix(context.Background(), []byte(prefix)))
	maps.DeleteFunc(h.rows, func(key, _ string) bool { return strings.HasPrefix(key, prefix) })
}

// read begins to read. An engine may have few connections, so the first of many readers ends.
func (h *history) read(t *rapid.T) {
	if len(h.readers) == 5 {
		h.readers[0].Close()
		h.readers, h.seen = h.readers[1:], h.seen[1:]
	}
	h.readers = append(h.readers, snapshot(t, h.engine))
	h.seen = append(h.seen, maps.Clone(h.rows))
}

func (h *history) closeReaders() {
	for _, r := range h.readers {
		r.Close()
	}
	h.readers, h.seen = nil, nil
}

func (h *history) agrees(t *rapid.T, e kv.Engine) {
	now := snapshot(t, e)
	defer now.Close()
	h.reads(t, now, h.rows)
	for i, r := range h.readers {
		h.reads(t, r, h.seen[i])
	}
}

func (h *history) reads(t *rapid.T, r kv.Reader, want map[string]string) {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		all = append(all, key, want[key])
	}
	require.Equal(t, all, append([]string(nil), list(t, r.Range(nil, nil, false))...))
	key := keys.Draw(t, "get")
	value, err := r.Get([]byte(key))
	require.NoError(t, err)
	expected, there := want[key]
	require.Equal(t, there, value != nil)
	readMany(t, r, want, []string{key, key + "a"}, []string{key, key[:1]}[:min(len(key), 2)],
		rapid.IntRange(1, 4).Draw(t, "most"))
	require.Equal(t, expected, string(value))
}
