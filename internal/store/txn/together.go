package txn

import (
	"cmp"
	"sync"

	"github.com/tmshare/tmshare/internal/kv"
)

// SideBySide is how many tasks of [Tx.Together] run at a time.
const SideBySide = 100

// Together calls f for n tasks that read the state, each with the Tx to read with. Where each question takes its time,
// they run side by side: what all of them wait for is asked at once. So they ask about as many questions as one of them
// would alone. What they have read is remembered for all of them. Else they run one after the other.
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

// group is what some tasks read with. A question waits until each task that still runs has one.
type group struct {
	kv.ManyReader
	known reads

	mu      sync.Mutex
	running int
	next    *round
}

// round is what is asked at once, and the answer.
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

// askOnce asks what is to be asked once all tasks wait.
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
		answer() // what is still not known is much: it is asked for alone
	}
	return r.err
}
