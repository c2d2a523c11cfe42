package followtest

import (
	"context"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/faults"
	"github.com/tmshare/tmshare/internal/testkit/kill"
)

// Kills kills processes that do rounds of each row of a sink, at random requests or a moment later, while the source
// changes, restarts and is restored, and while some records are unavailable. Rounds that are not killed then bring all
// in step, as in a place whose rounds were never killed.
func Kills(t *testing.T, sink Sink) {
	testenv.OnlyWithAll(t, "it kills processes")
	for _, row := range sink.Rows {
		t.Run(row.Name, func(t *testing.T) {
			wanted := testenv.Rounds(1, 20)
			k := newKilling(t, &sink, row)
			for k.killed < wanted {
				k.something()
				k.run(k.rng.IntN(4) == 0)
				if k.rng.IntN(4) == 0 {
					k.inStep()
				}
			}
			k.broken.Store(false)
			k.inStep()

			// Both followers lack the same records, and get them later.
			k.source.Much()
			k.broken.Store(true)
			for range 2 {
				k.run(false)
			}
			k.whole()
			_, err := k.healthy.patiently(context.Background(), How{Parallel: 4}, false)
			require.NoError(t, err)
			if !row.Model { // it may not have changed the unavailable ones
				require.NotEmpty(t, k.place.Waiting(k.name))
			}
			require.ElementsMatch(t, k.healthy.place.Waiting(k.name), k.place.Waiting(k.name))
			k.broken.Store(false)
			k.inStep()
			for _, f := range []*follower{k.follower, k.healthy} {
				f.place.InStep(map[string]Source{k.name: k.source})
			}
			t.Logf("killed %d times, with this left: %v; %d runs ended before", k.killed, k.left, k.ended)
			if wanted >= 30 {
				for _, what := range sink.Left {
					require.NotZero(t, k.left[what], "no kill has left %s", what)
				}
			}
		})
	}
}

// killing has a follower whose rounds are killed, and a healthy one.
type killing struct {
	*follower
	healthy *follower
	rng     *rand.Rand
	broken  atomic.Bool  // some records cannot be had
	asked   atomic.Int64 // requests since the last round began
	usual   int64        // requests of the last round that was not killed
	meet    atomic.Pointer[meeting]
	killed  int
	ended   int            // runs that were to be killed, but ended before
	left    map[string]int // of rounds that were killed
}

// meeting is the request at which a process is killed, before it gets the answer or a moment later.
type meeting struct {
	request int64
	moment  time.Duration
	process *kill.Process
}

func newKilling(t *testing.T, sink *Sink, row Row) *killing {
	k := &killing{rng: testenv.Rand(3), left: map[string]int{}}
	k.follower = &follower{t: t, name: "one", place: sink.Open(t), kind: row.Kind}
	for seed := testenv.Seed(); k.source == nil || k.source.Whole(); seed++ {
		k.source = row.Open(t, seed)
	}
	k.healthy = &follower{t: t, name: "one", place: sink.Open(t), source: k.source, kind: row.Kind}
	k.source.Much()
	for _, f := range []*follower{k.follower, k.healthy} {
		f.place.Follow(f.name, f.source, f.kind)
	}
	k.source.BreakWith(k.fault)
	k.run(false) // of the first round, too
	k.inStep()
	return k
}

// fault kills the process where that is due, and keeps back some records.
func (k *killing) fault(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	n := k.asked.Add(1)
	m := k.meet.Load()
	switch {
	case m == nil || n != m.request:
	case m.moment > 0:
		time.AfterFunc(m.moment, m.process.Signal)
	default:
		m.process.Signal()
	}
	id := k.source.Record(r)
	lacking := id != "" && crc32.ChecksumIEEE([]byte(id))%3 == 0 && !k.source.Spare(r, faults.Absent)
	if k.broken.Load() {
		singly(r)
	}
	if !k.broken.Load() || !lacking && !packages(r) {
		return false
	}
	w.WriteHeader(http.StatusNotFound)
	return true
}

// something happens at the source.
func (k *killing) something() {
	switch n := k.rng.IntN(8); {
	case n == 0:
		k.broken.Store(!k.broken.Load())
	case n < 4:
		k.source.Much()
	default:
		for range 1 + k.rng.IntN(6) {
			k.source.Happen(false)
		}
	}
}

// run starts a round in a process, and kills it at one of its requests: one of the first, which read the changes, or
// any. Half of the time it is killed a moment later, while it processes the answers.
func (k *killing) run(replace bool) {
	m := &meeting{request: 1 + k.rng.Int64N(4)}
	if k.rng.IntN(2) == 0 {
		m.request = 1 + k.rng.Int64N(max(k.usual, 1))
	}
	if k.rng.IntN(2) == 0 {
		m.moment = time.Duration(k.rng.Int64N(int64(20 * time.Millisecond)))
	}
	k.asked.Store(0)
	m.process = k.place.Process(k.name, replace)
	k.meet.Store(m)
	defer k.meet.Store(nil)
	if !m.process.Wait() {
		k.ended++
		return
	}
	k.killed++
	for _, what := range k.place.Left(k.name) {
		k.left[what]++
	}
}

// whole completes a round in a process, and reports whether its status says that all is in step.
func (k *killing) whole() bool {
	k.asked.Store(0)
	p := k.place.Process(k.name, false)
	require.False(k.t, p.Wait())
	k.usual = k.asked.Load()
	return p.Status() == 0
}

// inStep requires that both get in step, and that the status of the process is true.
func (k *killing) inStep() {
	k.source.Settle()
	says := k.whole()
	if k.broken.Load() {
		return
	}
	if says {
		SameRecords(k.t, k.place.Published(k.source, k.kind), k.place.Held(k.name), "after a round that was not killed")
	}
	k.settle()
	k.healthy.settle()
}
