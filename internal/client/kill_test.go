package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// TestKilledClientsAreInStepInTheEnd kills real processes of tmshare-client at random
// instants, while the server's map is edited, pruned, restored and rebuilt, and while
// some fragments cannot be had. In the end the state is that of the server, and of a
// client that was never killed.
func TestKilledClientsAreInStepInTheEnd(t *testing.T) {
	wanted := testenv.Rounds(4, 40)
	k := newKilling(t)
	for k.killed < wanted {
		k.something()
		if k.rng.IntN(4) == 0 {
			k.run("replace", "egov")
		} else {
			k.run("sync")
		}
		if k.rng.IntN(5) == 0 {
			k.inStep()
		}
	}
	k.broken.Store(false)
	k.inStep()
	require.True(t, k.verdict().Equal)

	// What cannot be had is the same for both, and comes back to both.
	k.publishMuch()
	k.broken.Store(true)
	for range 3 {
		k.run("sync")
	}
	k.command("sync")
	k.healthy.sync()
	require.Equal(t, quarantineOf(t, k.healthy.db), k.quarantine())
	k.broken.Store(false)
	k.inStep()
	require.True(t, k.verdict().Equal)
	require.True(t, k.healthy.verify().Equal)

	t.Logf("killed %d times: %v; %d runs ended before", k.killed, k.during, k.ended)
	require.LessOrEqual(t, k.ended, 3*k.killed, "most runs end before they are killed")
	if wanted >= 40 {
		for _, work := range []string{"clean start", "reading the feed", "update"} {
			require.NotZero(t, k.during[work], work)
		}
	}
	require.NotZero(t, k.quarantines, "nothing was in quarantine")
}

// killing is a server, a client that is killed, and one that is not.
type killing struct {
	t       *testing.T
	rng     *rand.Rand
	o       *origin
	tm      *tmdm.TopicMap
	editor  *testedit.Editor
	healthy *subscriber
	dir     string // the data folder of the client that is killed

	saved       string       // a backup of the server
	versions    int          // of many topics
	broken      atomic.Bool  // some fragments cannot be had
	asked       atomic.Int64 // requests since the last run began
	usual       int64        // requests of the last round that was not killed
	meet        atomic.Pointer[meeting]
	killed      int
	ended       int            // runs that were to be killed, but ended before
	during      map[string]int // kills, by what was done
	quarantines int            // topics in quarantine in the end
}

func newKilling(t *testing.T) *killing {
	k := &killing{t: t, rng: testenv.Rand(3), dir: t.TempDir(), during: map[string]int{}}
	k.o = newOrigin(t, documentSize(10))
	sp := k.o.sp("egov")
	var err error
	k.tm, err = xtm.Read(t.Context(), bytes.NewReader(maps.Libraries), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	for i := range 400 {
		k.tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si(fmt.Sprint("many/", i))))
	}
	k.editor = testedit.New(k.tm, sp, testenv.Seed())
	k.o.create("egov", k.document())
	k.publish(1)
	k.healthy = subscribed(t, k.o)
	k.command("subscribe", k.o.URL+"/topicmaps/egov")
	k.o.breakWith(k.fault)
	k.inStep()
	return k
}

// meeting is the request at which a process is killed, before it gets the answer or
// a moment later.
type meeting struct {
	request int64
	moment  time.Duration
	process *kill.Process
}

// fault kills the client where that is due, and keeps back the fragments of some
// topics.
func (k *killing) fault(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
	k.meets()
	return isFragment(r) && k.keepsBack(w, r, real)
}

func (k *killing) meets() {
	n := k.asked.Add(1)
	m := k.meet.Load()
	switch {
	case m == nil || n != m.request:
	case m.moment > 0:
		time.AfterFunc(m.moment, m.process.Signal)
	default:
		m.process.Signal()
	}
}

// keepsBack answers that a fragment or record does not exist, for some of them and
// while the server is broken.
func (k *killing) keepsBack(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
	if !k.broken.Load() {
		return false
	}
	_, body := record(real, r)
	if len(body)%3 != 0 {
		return false
	}
	w.WriteHeader(http.StatusNotFound)
	return true
}

// command runs tmshare-client to its end, and returns what it says.
func (k *killing) command(args ...string) string {
	k.t.Helper()
	k.asked.Store(0)
	p := kill.Start(k.t, "client", append(args, "--data", k.dir)...).Expect(3) // something is in quarantine
	require.False(k.t, p.Wait())
	return strings.Join(p.Rest(), "\n")
}

func (k *killing) publish(edits int) {
	for range edits {
		k.editor.Edit()
	}
	k.o.put(k.document())
}

// publishMuch changes so many topics that a round that brings them has several
// commits.
func (k *killing) publishMuch() {
	k.versions++
	for i := range 400 {
		t := k.tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si(fmt.Sprint("many/", i))))
		t.AddName(fmt.Sprintf("version %d", k.versions), nil)
	}
	k.publish(0)
}

func (k *killing) document() string {
	var b bytes.Buffer
	_, err := xtm.Write(&b, k.tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(k.o.sp("egov"))})
	require.NoError(k.t, err)
	return b.String()
}

// something happens at the server.
func (k *killing) something() {
	k.publish(k.rng.IntN(30))
	switch n := k.rng.IntN(20); {
	case n < 3:
		k.o.takeSnapshot()
	case n < 5: // all that there is, up to a snapshot that the feed goes on from
		k.o.takeSnapshot()
		k.publish(12)
		_, err := k.o.db.Prune(context.Background(), "egov", store.Retention{Entries: 3})
		require.NoError(k.t, err)
		k.o.takeSnapshot()
	case n < 7:
		k.o.rebuild()
		k.o.create("egov", k.document())
		k.saved = ""
		k.publish(0)
	case n == 7:
		k.saved = k.o.backup()
	case n <= 9 && k.saved != "":
		k.o.restore(k.saved)
		k.saved = ""
		k.publish(k.rng.IntN(3))
	case n <= 12:
		k.broken.Store(!k.broken.Load())
	case n <= 17:
		k.publishMuch()
	}
}

// run lets the client do a round, and kills it at one of its requests: one of the
// first, which read feeds or a snapshot, or any. Half of the time it is killed a
// moment later, in the middle of what it makes of the answers.
func (k *killing) run(what ...string) {
	k.o.seen()
	m := &meeting{request: 1 + k.rng.Int64N(4)}
	if k.rng.IntN(2) == 0 {
		m.request = 1 + k.rng.Int64N(max(k.usual, 1))
	}
	if k.rng.IntN(2) == 0 {
		m.moment = time.Duration(k.rng.Int64N(int64(20 * time.Millisecond)))
	}
	k.asked.Store(0)
	m.process = kill.Start(k.t, "client", append(what, "--data", k.dir)...).Expect(3)
	k.meet.Store(m)
	defer k.meet.Store(nil)
	if !m.process.Wait() {
		k.ended++
		return
	}
	k.killed++
	k.during[doing(k.o.seen())]++
}

// doing says what a client did when its last request was answered.
func doing(requests []string) string {
	if len(requests) == 0 {
		return "beginning"
	}
	last := requests[len(requests)-1]
	switch {
	case strings.Contains(last, "/snapshots"):
		return "clean start"
	case strings.Contains(last, "/archive/"), strings.HasSuffix(strings.TrimSuffix(last, " (if changed)"), "/fragments"):
		return "reading the feed"
	}
	return "update"
}

// inStep lets both clients do a round, and compares them.
func (k *killing) inStep() {
	k.t.Helper()
	k.command("sync")
	k.usual = k.asked.Load()
	if !k.broken.Load() { // a round that takes on what an earlier one has staged leaves its quarantine to the next
		k.command("sync")
	}
	k.healthy.sync()
	k.healthy.sync()

	if k.broken.Load() { // what a clean start of one has passed over, the other may have met
		return
	}
	k.opened(func(here *subscriber) {
		require.Empty(k.t, quarantineOf(k.t, here.db))
		require.Empty(k.t, quarantineOf(k.t, k.healthy.db))
		sp := k.o.sp("egov")
		own, _, err := here.Merged(here.t.Context(), false, "egov")
		require.NoError(k.t, err)
		other, _, err := k.healthy.Merged(here.t.Context(), false, "egov")
		require.NoError(k.t, err)
		here.source("egov", func(_ store.Subscription, src fragment.Source) {
			require.NoError(k.t, k.o.db.View(here.t.Context(), "egov", func(v *store.View) error {
				sameRecords(k.t, contents(k.t, v.Source()), contents(k.t, src), "the server's")
				return nil
			}))
		})
		require.Equal(k.t, canonical(k.t, other, sp), canonical(k.t, own, sp))
	})
}

// opened calls f with the store of the client that is killed.
func (k *killing) opened(f func(*subscriber)) {
	db, err := store.Open(k.t.Context(), store.Options{Dir: k.dir, Logger: silent})
	require.NoError(k.t, err)
	defer func() { require.NoError(k.t, db.Close()) }()
	here := &subscriber{t: k.t, db: db}
	here.configure()
	f(here)
}

// quarantineOf lists the topics that are in quarantine, with their entries.
func quarantineOf(t *testing.T, db *store.DB) (all []string) {
	list, err := db.Quarantine(t.Context(), "egov")
	require.NoError(t, err)
	for _, q := range list {
		all = append(all, q.TopicSI+" "+q.Entry)
	}
	return all
}

func (k *killing) quarantine() (all []string) {
	k.opened(func(s *subscriber) { all = quarantineOf(k.t, s.db) })
	k.quarantines += len(all)
	return all
}

// verdict is what "verify" says of the client that was killed.
func (k *killing) verdict() *client.Verdict {
	var all []client.Verdict
	require.NoError(k.t, json.Unmarshal([]byte(k.command("verify", "--json")), &all))
	require.Len(k.t, all, 1)
	return &all[0]
}
