package followtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// follower is one of a place's, and all that its source has ever published.
type follower struct {
	t      testing.TB
	name   string
	place  Place
	source Source
	kind   Kind
	model  bool
	liar   *faults.Liar

	mu     sync.Mutex
	states map[time.Time]map[string]string // the published states, by the time of the last change
	latest time.Time
	ever   map[string]bool // all published records; nil: not recorded

	log      []string
	restarts int
	between  bool           // something may be held that stood for a record that was deleted since it was listed
	rounds   map[string]int // by how they ended
}

func newFollower(t testing.TB, place Place, name string, row Row, sink *Sink, seed uint64) *follower {
	f := &follower{
		t: t, name: name, place: place, source: row.Open(t, seed), kind: row.Kind, model: row.Model,
		states: map[time.Time]map[string]string{}, ever: map[string]bool{}, rounds: map[string]int{},
	}
	f.liar = faults.NewLiar(seed, f.source.Feed)
	f.liar.Spare = func(r *http.Request, sign faults.Sign) bool {
		switch {
		case f.source.Spare(r, sign):
			return true
		case f.source.Record(r) == "":
			return false
		case row.Model && sign == faults.Absent: // then another form of it is taken, and is right
			return true
		}
		return sink.Spare != nil && sink.Spare(f.kind, sign)
	}
	f.note()
	f.source.Watch(f.note)
	place.Follow(name, f.source, f.kind)
	return f
}

// note records the published state.
func (f *follower) note() {
	if f.ever == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.place.Published(f.source, f.kind)
	for name, record := range now {
		f.ever[name+record] = true
	}
	p, ok := f.source.(*Publisher)
	if ok && f.kind == Fragments {
		f.latest = p.Updated()
		f.states[f.latest] = now
	}
	if ok {
		now = map[string]string{}
		p.Source(p.Name, func(_ *store.View, src fragment.Source) {
			for topic, err := range src.Topics() {
				require.NoError(f.t, err)
				identifiers(topic, now)
			}
		})
		for name := range now {
			f.ever[name] = true
		}
		if f.restarts != p.restarts { // its addresses may be those of other things than before
			f.restarts = p.restarts
			f.liar.Forget()
		}
	}
}

// Histories runs the rows of a sink through random histories. Each has two sources in one place: changes of one must
// not affect the other. Sources change, also during a round, restart and are restored; rounds are cancelled, die, get
// false answers, and lack fragments that come late. After each round:
//   - the records of the other source are unchanged;
//   - each held record is one that the source has published at some time;
//   - after a successful round, the records of a fragments feed are those published up to the mark.
//
// Periodically there is no fault: one round brings all in step, and the next has nothing to do.
// has nothing to do.
//
//	go test ./internal/client ./internal/ext/folder -run Histories -rounds 200 -seed 7
func Histories(t *testing.T, sink Sink) {
	for _, row := range sink.Rows {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			ended, lies := map[string]int{}, map[string]int{}
			rounds := testenv.Rounds(2, 12)
			if row.Model { // it has many styles
				rounds = testenv.Rounds(12, 100)
			}
			for n := range rounds {
				seed := testenv.Seed() + uint64(n)
				if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { history(t, &sink, row, seed, ended, lies) }) {
					return
				}
			}
			t.Logf("rounds: %v; lies: %v", ended, lies)
			challenges := []string{"failed", "went well", "cancelled"}
			if rounds >= 100 && !row.Model {
				challenges = append(challenges, "waiting", "anew") // they are rare
				// An unused lie tests nothing. Which ones are used depends on the order of concurrent requests.
				require.LessOrEqual(t, len(faults.Untold(lies)), 3, "%v", faults.Untold(lies))
			}
			if row.Kind == Fragments {
				challenges = append(challenges, "waiting")
			}
			for _, how := range challenges {
				require.True(t, row.Model || rounds < 10 || ended[how] > 0,
					"%s: the histories are no challenge, or too much of one", how)
			}
		})
	}
}

func history(t *testing.T, sink *Sink, row Row, seed uint64, ended, lies map[string]int) {
	rng := rand.New(rand.NewPCG(seed, uint64(len(row.Name))))
	place := sink.Open(t)
	one := newFollower(t, place, "one", row, sink, 2*seed)
	two := newFollower(t, place, "two", sink.Rows[rng.IntN(len(sink.Rows))], sink, 2*seed+1)
	if p, ok := one.source.(*Publisher); ok && rng.IntN(2) == 0 {
		p.BeginSigning()
	}
	defer func() {
		for _, f := range []*follower{one, two} {
			if t.Failed() {
				t.Logf("%s: %q", f.name, f.tail())
			}
			for how, n := range f.rounds {
				ended[how] += n
			}
			f.liar.Count(lies)
		}
	}()
	steps := 30 + rng.IntN(20)
	if row.Model {
		steps /= 3
	}
	for range steps {
		f := one
		if rng.IntN(4) == 0 {
			f = two
		}
		before := place.Others(f.name)
		switch n := rng.IntN(20); {
		case n < 9:
			f.log = append(f.log, f.source.Happen(false))
		case n == 9:
			f.log = append(f.log, "left")
			place.Leave(f.name)
			place.Follow(f.name, f.source, f.kind)
		case n < 12:
			f.settle()
		default:
			f.round(rng)
		}
		SameRecords(t, before, place.Others(f.name), "other than %s: %q", f.name, f.tail())
	}
	one.settle()
	two.settle()
	place.InStep(map[string]Source{"one": one.source, "two": two.source})
}

// round does a round in which all may go wrong.
func (f *follower) round(rng *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	how := How{Parallel: 1 + rng.IntN(6), Replace: rng.IntN(12) == 0, Verify: rng.IntN(12) == 0, Restart: rng.IntN(6) == 0}
	if p, ok := f.source.(*Publisher); ok && p.withheld { // other formats may have more
		how.Verify = false
	}
	lies, cancelled, changes := rng.IntN(2) == 0, 0, 0
	if rng.IntN(6) == 0 {
		how.Dies = 1 + rng.IntN(8)
	}
	if rng.IntN(6) == 0 {
		cancelled = 1 + rng.IntN(15)
	}
	if rng.IntN(3) == 0 {
		changes = 1 + rng.IntN(6)
	}
	lacking, salt := f.kind == Fragments && rng.IntN(3) == 0, byte(rng.IntN(256))
	if f.source.Whole() {
		lies, cancelled, changes = false, 0, 0
	}
	how.Hasty = lies
	f.between = f.between || changes > 0 && f.kind != Fragments
	f.liar.Lie([]int{2, 4, 8, 8, 16, 16, 32, 64}[rng.IntN(8)])
	var mu sync.Mutex
	answers, ended := 0, false
	f.source.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		mu.Lock()
		if answers++; answers == changes && !ended { // only while the reader waits for an answer
			f.source.Happen(true)
		}
		if answers == cancelled {
			cancel()
		}
		mu.Unlock()
		if lacking {
			singly(r)
			if name := f.source.Record(r); name != "" && sha256.Sum256(append([]byte(name), salt))[0]%3 == 0 {
				w.WriteHeader(http.StatusBadRequest)
				return true
			}
		}
		return lies && f.liar.Answer(w, r, real)
	})
	f.log = append(f.log, fmt.Sprintf("%+v, lies %t, lacking %t, cancelled at %d, changes at %d", how, lies, lacking,
		cancelled, changes))
	o, err := f.patiently(ctx, how, lies)
	f.source.BreakWith(nil)
	mu.Lock()
	ended = true
	mu.Unlock()
	log := f.liar.Log()
	// then it lists deleted records
	f.between = f.between || f.kind != Fragments && strings.Contains(strings.Join(log, ";"), "as it was before")
	f.log = append(f.log, fmt.Sprintf("%+v, %v, lies: %q", o, err, log))
	switch {
	case errors.Is(err, context.Canceled):
		f.rounds["cancelled"]++
	case o.Died:
		f.rounds["died"]++
	case err != nil:
		require.True(f.t, lies || f.model && changes > 0, "a round to which nobody lied has failed: %v; %q", err, f.tail())
		f.rounds["failed"]++
	case o.Waiting > 0:
		f.rounds["waiting"]++
	default:
		f.rounds["went well"]++
	}
	if err == nil && o.Anew {
		f.rounds["anew"]++
	}
	f.check(o, err)
}

// on makes t the test that fails.
func (f *follower) on(t testing.TB) {
	f.t = t
	f.place.On(t)
	if p, ok := f.source.(*Publisher); ok {
		p.T = t
	}
}

// tail returns the last events of the log.
func (f *follower) tail() []string { return f.log[max(0, len(f.log)-12):] }

// check checks the requirements after any round.
func (f *follower) check(o Outcome, failed error) {
	if f.ever == nil {
		return
	}
	held := f.place.Held(f.name)
	if f.place.Exact(f.kind) && !f.between {
		for name, record := range held {
			require.True(f.t, f.ever[name+record], "a record that the source has never published: %q\n%q\n%q", name,
				record, f.tail())
		}
	}
	if f.kind == Fragments && failed == nil && o.Waiting == 0 {
		state, ok := f.states[o.Mark.UTC()]
		require.True(f.t, ok, "nothing was published at %s: %q", o.Mark, f.tail())
		SameRecords(f.t, state, held, "as of %s; the newest is %s: %q", o.Mark, f.latest, f.tail())
	}
}

// settle requires that a round without faults brings the follower in step.
func (f *follower) settle() {
	f.source.Settle()
	f.note()
	f.log = append(f.log, "settles")
	o := f.calm()
	if o.Anew && o.Waiting > 0 { // the staged data differed from later data
		o = f.calm()
	}
	require.Zero(f.t, o.Waiting, "%q: %q", f.place.Waiting(f.name), f.tail())
	SameRecords(f.t, f.place.Published(f.source, f.kind), f.place.Held(f.name), "%s: %q", f.name, f.tail())
	f.between = false
	f.check(o, nil)
	o = f.calm()
	require.True(f.t, o.Idle, "%s: %q", o.Did, f.tail())
}

// patiently does rounds until their losses are confirmed: by three equal readings, or then by a person. With false
// answers it does one.
func (f *follower) patiently(ctx context.Context, how How, lies bool) (o Outcome, err error) {
	anew := false
	for tries := 0; ; tries++ {
		how.Confirm = tries >= 3
		o, err = f.place.Round(ctx, f.name, how)
		if anew = anew || o.Anew; lies || tries == maxDoubts || !errors.As(err, new(*follow.DoubtError)) {
			o.Anew, o.Idle = anew, o.Idle && tries == 0
			return o, err
		}
	}
}

// maxDoubts is the maximum number of rounds for one doubt and those that follow from it.
const maxDoubts = 8

// ConfirmAfter is the time after which sinks confirm losses: only the number of readings counts.
const ConfirmAfter = time.Nanosecond

// calm does a round without faults.
func (f *follower) calm() Outcome {
	o, err := f.patiently(context.Background(), How{Parallel: 4}, false)
	require.NoError(f.t, err, "%q", f.tail())
	require.Zero(f.t, o.Repaired, "%q", f.tail())
	return o
}
