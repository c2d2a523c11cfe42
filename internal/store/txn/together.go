package txn

import (
	"cmp"
	"sync"

	"github.com/tmshare/tmshare/internal/kv"
)

// SideBySide is the number of tasks of [Tx.Together] that run concurrently.
const SideBySide = 100

// Together calls f for n tasks that read the state, each with its own Tx. If each read is a network round trip, they
// run concurrently, and one query serves all waiting tasks, so the number of queries is about that of one task. They
// share a cache. Otherwise they run sequentially.
func (t *Tx) Together(n int, f func(i int, t *Tx) error) error {
	many, distant := t.base.(kv.ManyReader)
	if !distant || t.Changing() || n == 1 {
		for i := range n {
			if err := f(i, t); err != nil {
				return err
			}
		}
		return nil
	}
	g := &group{ManyReader: many, known: reads{most: readsLimit}}
	for from := 0; from < n; from += SideBySide {
		if err := g.run(min(SideBySide, n-from), func(i int) error {
			return f(from+i, &Tx{ctx: t.ctx, base: kv.Single{ManyReader: g, Alone: many}, at: t.at})
		}); err != nil {
			return err
		}
	}
	return nil
}

// group is the reader of some tasks. It sends a query when all running tasks wait.
type group struct {
	kv.ManyReader
	known reads

	mu      sync.Mutex
	running int
	next    *round
}

// round holds the requests of one query, and the answer.
type round struct {
	waiting        int
	keys, prefixes [][]byte
	most           int
	answered       chan struct{}
	err            error
}

// run calls f for n tasks, and returns the error of the first that fails. It panics where one of them does.
func (g *group) run(n int, f func(i int) error) error {
	errs, panics := make([]error, n), make(chan any, n)
	g.running, g.next = n, &round{answered: make(chan struct{})}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer g.ended()
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
			}()
			errs[i] = f(i)
		})
	}
	all.Wait()
	close(panics)
	for p := range panics {
		panic(p)
	}
	return cmp.Or(errs...)
}

func (g *group) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.askOnce()
}

// askOnce sends the query when all tasks wait.
func (g *group) askOnce() {
	r := g.next
	if r.waiting == 0 || r.waiting < g.running {
		return
	}
	none := func([]byte) bool { return false }
	r.err = g.ManyReader.ReadMany(unknown(r.keys, none), unknown(r.prefixes, none), r.most, g.known.keepValue,
		func(prefix []byte, rows []kv.Row, more bool) { g.known.keepRows(prefix, beginning{rows, more}) })
	g.next = &round{answered: make(chan struct{})}
	close(r.answered)
}

// ReadMany implements [kv.ManyReader].
func (g *group) ReadMany(keys, prefixes [][]byte, most int, value func(key, value []byte),
	rows func(prefix []byte, rows []kv.Row, more bool)) error {
	answer := func() (lackKeys, lackPrefixes [][]byte) {
		for _, key := range keys {
			if v, known := g.known.value(key); known {
				value(key, v)
			} else {
				lackKeys = append(lackKeys, key)
			}
		}
		for _, prefix := range prefixes {
			if first, known := g.known.rowsWith(prefix); known {
				n := min(most, len(first.rows))
				rows(prefix, first.rows[:n:n], first.more || n < len(first.rows))
			} else {
				lackPrefixes = append(lackPrefixes, prefix)
			}
		}
		return lackKeys, lackPrefixes
	}
	if keys, prefixes = answer(); len(keys)+len(prefixes) == 0 {
		return nil
	}
	g.mu.Lock()
	r := g.next
	r.waiting++
	r.keys, r.prefixes = append(r.keys, keys...), append(r.prefixes, prefixes...)
	r.most = max(r.most, most)
	g.askOnce()
	g.mu.Unlock()
	<-r.answered
	if r.err == nil {
		answer() // large results are read separately
	}
	return r.err
}
