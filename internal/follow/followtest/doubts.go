package followtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/docs"
)

// last is the number of rounds with a fault, and the time between two of them.
type last struct {
	name    string
	rounds  int
	between time.Duration
	other   bool // each second round is right
}

var lasts = []last{
	{"once", 1, between, false}, {"for three rounds", 3, between, false}, {"twice, far apart", 2, 6 * between, false},
	{"every other round", 8, between, true},
	{"for ever", 30, between, false},
}

// between is the time between two rounds.
const between = 4 * time.Minute

// confirmAfter is the time between readings that confirm a loss.
const confirmAfter = 10 * time.Minute

// doubting is a follower with a clock, of a server whose documents may be mangled.
type doubting struct {
	*follower
	p     *Publisher
	ahead time.Duration // by so much the clocks of the follower and of the server are ahead

	mu     sync.Mutex
	wrong  *mangled
	stamps func(entry string) string // changes the entries of all documents; may be nil
	saved  map[string]answered       // by path and form, as all was before the last publication
	now    map[string]answered
}

// Doubts mangles the documents of each row of a sink, and asserts what a reading may remove:
//   - nothing is lost before the loss is confirmed, and until then each round that would lose something fails;
//   - with the next correct reading all is restored, in one round, without a command;
//   - a true change is followed once it is confirmed: a restore, a deletion of most topics, another history.
func Doubts(t *testing.T, sink Sink) {
	testenv.SkipUnderRace(t)
	for at, row := range sink.Rows {
		if row.Model {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			d := newDoubting(t, &sink, row)
			for i := range mangling {
				if at > 0 && i%3 != at%3 && !testenv.All() {
					continue
				}
				for j, last := range lasts {
					if (i+j+at)%len(lasts) != 0 && !testenv.Long() {
						continue
					}
					t.Run(mangling[i].name+"/"+last.name, func(t *testing.T) { d.begin(t); d.mangle(&mangling[i], last) })
				}
			}
			for name, is := range truths {
				t.Run(name, func(t *testing.T) { d.begin(t); is(d) })
			}
			if row.Kind != Fragments {
				for name, is := range times {
					t.Run(name, func(t *testing.T) { d.begin(t); is(d) })
				}
			}
		})
	}
}

func newDoubting(t *testing.T, sink *Sink, row Row) *doubting {
	f, p := following(t, sink, row)
	d := &doubting{follower: f, p: p, now: map[string]answered{}}
	p.BreakWith(d.answer)
	return d
}

// begin restarts the source, with a follower in step that has seen two versions.
func (d *doubting) begin(t *testing.T) {
	d.on(t)
	d.wrong, d.stamps, d.log = nil, nil, nil
	d.place.Leave(d.name)
	d.p.Delete(d.p.Name)
	d.p.begin()
	d.p.publish("at first")
	d.place.Follow(d.name, d.p, d.kind)
	d.right()
	d.mu.Lock()
	d.saved = maps.Clone(d.now)
	d.mu.Unlock()
	d.p.PutAs(d.p.Name,
		docs.Map(append(docs.Topics(4, "then"), append(docs.Topics(9, "at first")[4:], docs.Topic("new", "New"))...)...))
	d.ahead += between
	d.right()
}

// round does a round at the time that it is, and lets some time pass.
func (d *doubting) round(how How) (Outcome, error) {
	how.Parallel, how.Ahead, how.After = 4, d.ahead, confirmAfter
	o, err := d.place.Round(context.Background(), d.name, how)
	d.log = append(d.log, fmt.Sprintf("at %s: %+v, %v", d.ahead, o, err))
	d.ahead += between
	return o, err
}

// right requires that one round of a correct source brings all in step, and that the next has nothing to do.
func (d *doubting) right() {
	d.t.Helper()
	_, err := d.round(How{})
	require.NoError(d.t, err, "%q", d.tail())
	d.equal()
	o, err := d.round(How{})
	require.NoError(d.t, err, "%q", d.tail())
	require.True(d.t, o.Idle, "%q", d.tail())
}

func (d *doubting) equal() {
	d.t.Helper()
	SameRecords(d.t, d.place.Published(d.source, d.kind), d.place.Held(d.name), "%q", d.tail())
}

// lost returns the records that are held neither as before, nor as published.
func (d *doubting) lost(before map[string]string) (lost []string) {
	held, published := d.place.Held(d.name), d.place.Published(d.source, d.kind)
	for id, record := range before {
		if now, ok := held[id]; !ok || now != record && now != published[id] {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	return lost
}

// mangle has the documents of the source wrong for some rounds, in the middle of which something changes.
func (d *doubting) mangle(wrong *mangled, wrongFor last) {
	before := d.place.Held(d.name)
	d.set(wrong)
	var since time.Duration // of the doubt
	for n := range wrongFor.rounds {
		if wrongFor.other && n > 0 { // one of two servers lags, or one of two caches is stale
			d.set(nil)
			_, err := d.round(How{})
			require.NoError(d.t, err, "%q", d.tail())
			d.equal()
			d.set(wrong)
		}
		if n == 1 {
			d.p.PutAs(d.p.Name,
				docs.Map(append(docs.Topics(4, "meanwhile"),
					append(docs.Topics(9, "at first")[4:], docs.Topic("new", "New"))...)...))
		}
		at := d.ahead
		_, err := d.round(How{})
		d.ahead += wrongFor.between - between
		if err != nil && since == 0 {
			since = at
		}
		if err != nil {
			require.ErrorAs(d.t, err, new(*follow.DoubtError), "%q", d.tail())
		}
		if lost := d.lost(before); len(lost) > 0 {
			require.True(d.t, since > 0 && at-since >= confirmAfter && n >= d.readings() && !wrong.aged && !wrongFor.other,
				"%v is lost by a reading that nothing confirms: %q", lost, d.tail())
		}
	}
	d.set(nil)
	d.right()
}

// readings returns the number of readings after the first one that confirm a loss: one for a server that echoes
// requests.
func (d *doubting) readings() int {
	if d.kind == Fragments {
		return 1
	}
	return 2
}

func (d *doubting) set(wrong *mangled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrong = wrong
}

// follows requires that a loss is doubted at first, and followed once it is confirmed.
func (d *doubting) follows(confirm bool) {
	d.t.Helper()
	before := d.place.Held(d.name)
	begun := d.ahead
	_, err := d.round(How{})
	require.ErrorAs(d.t, err, new(*follow.DoubtError), "%q", d.tail())
	require.Empty(d.t, d.lost(before), "in doubt: %q", d.tail())
	for errors.As(err, new(*follow.DoubtError)) {
		require.Less(d.t, d.ahead-begun, 25*time.Hour, "%q", d.tail())
		_, err = d.round(How{Confirm: confirm})
		require.False(d.t, confirm && err != nil, "%v: %q", err, d.tail())
	}
	require.NoError(d.t, err)
	require.True(d.t, confirm || d.ahead-begun > confirmAfter, "%q", d.tail())
	d.equal()
	d.right()
}

// truths are losses that are true.
var truths = map[string]func(*doubting){
	"a true restore":                     func(d *doubting) { d.restored(false) },
	"a true restore, confirmed":          func(d *doubting) { d.restored(true) },
	"a true deletion of most":            func(d *doubting) { d.deleted(false) },
	"a true deletion of most, confirmed": func(d *doubting) { d.deleted(true) },
	"another history": func(d *doubting) {
		d.p.Delete(d.p.Name)
		d.p.begin()
		d.p.PutAs(d.p.Name, docs.Map(docs.Topics(3, "of another history")...))
		d.follows(false)
	},
}

func (d *doubting) restored(confirm bool) {
	saved := d.p.Backup()
	d.p.PutAs(d.p.Name, docs.Map(append(docs.Topics(12, "lost"), docs.Topic("new", "New"))...))
	d.right()
	d.p.Restore(saved)
	d.follows(confirm)
}

// deleted deletes most topics, which a complete feed shows only by their absence.
func (d *doubting) deleted(confirm bool) {
	d.p.PutAs(d.p.Name, docs.Map(docs.Topics(1, "left")...))
	if d.kind == Complete {
		d.follows(confirm)
	} else {
		d.right()
	}
}

var (
	stamp   = regexp.MustCompile(`(<updated>|<lastmod>|datetime=")[^<"]*`)
	madeFor = func(name string) *regexp.Regexp { return regexp.MustCompile(`http://psi\.example\.org/` + name + `\b`) }
)

// stamped returns a function that changes the time of the entries of a topic.
func stamped(topic, at string) func(string) string {
	is := madeFor(topic)
	return func(entry string) string {
		if !is.MatchString(entry) {
			return entry
		}
		return stamp.ReplaceAllString(entry, "${1}"+at)
	}
}

// also publishes one more topic.
func (d *doubting) also(topics ...string) {
	var more []string
	for _, id := range topics {
		more = append(more, docs.Topic(id, "Topic "+id))
	}
	d.put(more...)
	d.right()
}

// put publishes the first topics, the new one, and more.
func (d *doubting) put(more ...string) {
	all := append(docs.Topics(9, "at first"), docs.Topic("new", "New"))
	d.p.PutAs(d.p.Name, docs.Map(append(all, more...)...))
}

// putRight publishes a topic with a future time, and then the topics in then, with correct times.
func (d *doubting) putRight(then ...string) {
	d.stamp(stamped("future", "9999-12-31T00:00:00Z"))
	d.also("future")
	d.stamp(nil)
	d.put(then...)
	if d.kind != Archived { // a list does not show whether the time is old or corrected
		d.follows(false)
	} else {
		d.right()
	}
}

func (d *doubting) stamp(change func(string) string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stamps = change
}

// times are times of entries that are not the order in which they were published.
var times = map[string]func(*doubting){
	"back-dated": func(d *doubting) {
		d.stamp(stamped("late", "2026-01-01T00:00:00Z"))
		d.also("late")
		d.also("late", "later")
	},
	"future": func(d *doubting) {
		d.stamp(stamped("future", "9999-12-31T00:00:00Z"))
		d.also("future")
		d.also("future", "after")
		d.also("future", "after", "last")
	},
	"future, and put right": func(d *doubting) { d.putRight(docs.Topic("future", "Put right")) },
	"future, and deleted":   func(d *doubting) { d.putRight() },
	"same second": func(d *doubting) {
		at := time.Now().UTC().Add(time.Hour).Truncate(time.Second).Format(time.RFC3339)
		some := []string{"one", "two", "three"}
		d.stamp(func(entry string) string {
			for _, topic := range some {
				entry = stamped(topic, at)(entry)
			}
			return entry
		})
		for i := range some {
			d.also(some[:i+1]...)
		}
	},
}
