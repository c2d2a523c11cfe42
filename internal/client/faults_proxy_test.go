package client_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// TestNoLieDoesHarm keeps a source in step with a server through a proxy that
// delays, truncates, corrupts, repeats, reorders and makes up answers, while the
// server's map is edited at random, pruned, restored and rebuilt. After each round:
//   - another source is as it was;
//   - each record is one that the server has published at some time;
//   - where the round says that all went well, with nothing in quarantine, the
//     source is what the server had published up to its mark;
//   - and now and then, through a proxy that does not lie, the source is in step
//     after one round, and the next has nothing to do.
func TestNoLieDoesHarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testenv.Seed())
	failed, clean, whole, quarantined := 0, 0, 0, 0
	rounds := testenv.Rounds(60, 250)
	for round := range rounds {
		if !t.Run(fmt.Sprint(round), func(t *testing.T) {
			w.on(t)
			defer w.tell()
			w.publishSomething()
			r, err := w.faultyRound()
			switch {
			case err != nil:
				failed++
			case r.Quarantined > 0:
				quarantined++
			default:
				clean++
			}
			if err == nil && r.CleanStart {
				whole++
			}
			w.check(r, err)
			if round%6 == 5 || round == rounds-1 {
				w.converges()
			}
		}) {
			break
		}
	}
	t.Logf("%d rounds failed, %d left something in quarantine, %d went well; %d were clean starts", failed, quarantined, clean, whole)
	t.Logf("lies: %v", w.liar.told)
	if rounds >= 200 && !t.Failed() {
		w.liar.hasToldAll(t)
		for _, n := range []int{failed, clean, whole, quarantined} {
			require.NotZero(t, n, "the lies are no challenge, or too much of one")
		}
	}
}

// world is a client with two sources, one of them behind the liar.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	o      *origin
	liar   *liar
	tm     *tmdm.TopicMap
	editor *testedit.Editor
	ledger *ledger
	saved  string   // a backup of the server
	edits  []string // since the last round
	s      *subscriber
	dies   bool // in the middle of the round

	other       map[string]string // what the other source says
	otherStatus store.Subscription
}

const startOfWorld = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` +
	`<topic id="class"><subjectIdentifier href="http://psi.example.org/class"/><name><value>class</value></name></topic>` +
	`<topic id="b"><subjectIdentifier href="http://psi.example.org/b"/><subjectIdentifier href="http://psi.example.org/bb"/><instanceOf><topicRef href="#class"/></instanceOf></topic>` +
	`<topic id="c"><subjectIdentifier href="http://psi.example.org/c"/><instanceOf><topicRef href="#class"/></instanceOf><name><value>c</value></name></topic>` +
	`<topic id="nameless"><name><value>without an identifier</value></name></topic></topicMap>`

func newWorld(t *testing.T, seed uint64) *world {
	o := publishing(t, startOfWorld, documentSize(4))
	second := newOrigin(t)
	second.create("libraries", doc(topic("b", "B"), topic("c", "C"), vocabulary, link("near", "b", "c")))
	sp := o.sp("egov")
	tm, err := xtm.Read(t.Context(), bytes.NewReader([]byte(startOfWorld)), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), o: o, liar: newLiar(seed), tm: tm,
		editor: testedit.New(tm, sp, seed), ledger: newLedger(t, o, "egov"), s: subscribed(t, o, calm),
	}
	_, err = w.s.Subscribe(context.Background(), second.feedURL("libraries"), client.SubscribeOptions{})
	require.NoError(t, err)
	w.s.syncLibraries()
	w.s.source("libraries", func(s store.Subscription, src fragment.Source) { w.otherStatus, w.other = s, contents(t, src) })
	require.NotEmpty(t, w.other)
	return w
}

// tight makes a client give up soon.
func tight(c *client.Config) {
	calm(c)
	c.Stall = 200 * time.Millisecond
}

// calm waits for a server that is only slow, as one may be on a machine that does much else.
func calm(c *client.Config) {
	c.Tries, c.Parallel, c.Batch = 2, 4, 5
	c.MaxFragment, c.MaxSnapshot, c.MaxDocs = 256<<10, 512<<10, 200
	c.Feed = feeds.Limits{MaxBytes: 256 << 10}
}

// on makes t the test that fails.
func (w *world) on(t *testing.T) { w.t, w.s.t, w.ledger.t = t, t, t }

// tell says what has happened, if the test has failed.
func (w *world) tell() {
	if w.t.Failed() {
		all, _ := w.s.db.Quarantine(w.t.Context(), "egov")
		w.t.Logf("quarantine: %+v", all)
		w.t.Logf("edits: %q\nrequests: %q\nlies: %q\nreported: %s", w.edits, w.o.seen(), w.liar.log, w.s.reported())
	}
	w.edits, w.liar.log, w.s.report = nil, nil, nil
	w.o.seen()
}

func (w *world) put() {
	var b bytes.Buffer
	_, err := xtm.Write(&b, w.tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(w.o.sp("egov"))})
	require.NoError(w.t, err)
	w.o.put(b.String())
	w.ledger.note()
}

// publishSomething is what happens at the server between two rounds.
func (w *world) publishSomething() {
	for range w.rng.IntN(4) {
		w.edits = append(w.edits, w.editor.Edit())
	}
	w.put()
	switch n := w.rng.IntN(60); {
	case n < 8:
		w.o.takeSnapshot()
	case n < 14:
		w.o.collectGarbage("egov", 1+w.rng.IntN(12))
	case n == 14:
		w.o.rebuild()
		w.o.create("egov", startOfWorld)
		w.ledger.note()
		w.put()
		w.saved = ""
	case n == 15 && w.saved == "":
		w.saved = w.o.backup()
	case n <= 17 && w.saved != "":
		w.o.restore(w.saved)
		w.liar.forget() // it gives its addresses to other things than before
		w.saved = ""
		w.ledger.note()
		w.put()
	}
}

// faultyRound does a round while the liar lies, more or less, and in some the
// client dies, too.
func (w *world) faultyRound() (*client.Round, error) {
	w.liar.every = []int{2, 4, 8, 8, 16, 16, 32, 64}[w.rng.IntN(8)]
	w.o.breakWith(w.liar.answer)
	defer w.o.breakWith(nil)
	w.dies = w.rng.IntN(10) == 0
	w.s.configure(tight, func(c *client.Config) {
		c.Parallel = 1 + w.rng.IntN(6)
		if w.dies {
			c.Store = &dyingStore{Store: w.s.db, left: w.rng.IntN(8)}
		}
	})
	if w.rng.IntN(20) == 0 {
		return w.s.Replace(context.Background(), "egov")
	}
	return w.s.Sync(context.Background(), "egov")
}

func (w *world) check(r *client.Round, failed error) {
	w.s.source("libraries", func(s store.Subscription, src fragment.Source) {
		require.Equal(w.t, w.otherStatus, s)
		require.Equal(w.t, w.other, contents(w.t, src))
	})
	w.s.source("egov", func(s store.Subscription, src fragment.Source) {
		w.ledger.hasPublished(src)
		if failed == nil && r.Quarantined == 0 {
			require.Equal(w.t, s.State.Mark.Updated, r.Mark)
			w.ledger.was(r.Mark, src)
		}
	})
	if failed != nil && !w.dies {
		require.Equal(w.t, failed.Error(), w.s.known("egov").LastError, "what failed stands in the status")
	}
}

// converges asserts that a round without lies brings the source in step.
func (w *world) converges() {
	w.s.restart(calm)
	r, err := w.s.Sync(context.Background(), "egov")
	require.NoError(w.t, err)
	if r.CleanStart && r.Quarantined > 0 { // from a round before, which did not end; the next tries it again
		r, err = w.s.Sync(context.Background(), "egov")
		require.NoError(w.t, err)
	}
	require.Zero(w.t, r.Quarantined)
	require.Equal(w.t, w.ledger.latest, r.Mark.UTC())
	w.check(r, nil)
	require.Equal(w.t, client.Round{Name: "egov", Mark: r.Mark}, *w.s.sync())
	all, err := status.All(w.t.Context(), w.s.db, time.Now())
	require.NoError(w.t, err)
	for _, st := range all {
		require.Equal(w.t, status.InStep, st.State, st.Name)
	}
	if w.rng.IntN(4) == 0 {
		require.True(w.t, w.s.verify().Equal)
	}
}
