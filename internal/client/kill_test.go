package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testedit"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

var (
	kills    = flag.Int("kills", 16, "how often the kill test kills its process")
	killSeed = flag.Uint64("kill-seed", 1, "what the kill test begins from")
)

// TestKilledClientsAreInStepInTheEnd kills real processes of tmshare-client at random
// instants, while the server's map is edited, pruned, restored and rebuilt, and while
// some fragments cannot be had. In the end the state is that of the server, and of a
// client that was never killed.
func TestKilledClientsAreInStepInTheEnd(t *testing.T) {
	wanted := *kills
	if testing.Short() {
		wanted = min(wanted, 3)
	}
	k := newKilling(t)
	for k.killed < wanted {
		k.something()
		if k.rng.IntN(4) == 0 {
			k.run(k.killAfter(), "replace", "egov")
		} else {
			k.run(k.killAfter(), "sync")
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
		k.run(k.killAfter(), "sync")
	}
	k.command("sync")
	k.healthy.sync()
	require.Equal(t, quarantineOf(t, k.healthy.db), k.quarantine())
	k.broken.Store(false)
	k.inStep()
	require.True(t, k.verdict().Equal)
	require.True(t, k.healthy.verify().Equal)

	t.Logf("killed %d times: %v; %d runs ended before", k.killed, k.during, k.ended)
	require.LessOrEqual(t, k.ended, 2*k.killed, "most runs end before they are killed")
	require.GreaterOrEqual(t, k.killed-k.during["beginning"], wanted/4, "few were killed at work")
	if wanted >= 100 {
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
	program string
	dir     string // the data folder of the client that is killed

	saved       string        // a backup of the server
	versions    int           // of many topics
	broken      atomic.Bool   // some fragments cannot be had
	took        time.Duration // by the last run that was not killed
	killed      int
	ended       int            // runs that were to be killed, but ended before
	during      map[string]int // kills, by what was done
	quarantines int            // topics in quarantine in the end
}

func newKilling(t *testing.T) *killing {
	k := &killing{t: t, rng: rand.New(rand.NewPCG(*killSeed, 3)), dir: t.TempDir(), during: map[string]int{}}
	k.program = filepath.Join(t.TempDir(), "tmshare-client")
	build := []string{"build", "-o", k.program}
	if raceDetector {
		build = append(build, "-race")
	}
	out, err := exec.Command("go", append(build, "github.com/tmshare/tmshare/cmd/tmshare-client")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	k.o = newOrigin(t, documentSize(10))
	sp := k.o.sp("egov")
	k.tm, err = xtm.Read(bytes.NewReader(maps.Libraries), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	for i := range 400 {
		k.tm.CreateTopicBySubjectIdentifier(tmdm.Locator(si(fmt.Sprint("many/", i))))
	}
	k.editor = testedit.New(k.tm, sp, *killSeed)
	k.o.create("egov", k.document())
	k.publish(1)
	k.healthy = subscribed(t, k.o)
	k.command("subscribe", k.o.URL+"/topicmaps/egov")
	k.o.breakWith(k.fault)
	k.inStep()
	return k
}

// fault makes some requests take their time, so that kills meet all kinds of work,
// and keeps back the fragments of some topics.
func (k *killing) fault(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
	if isFragment(r) || isSnapshot(r) {
		time.Sleep(15 * time.Millisecond)
	}
	if !k.broken.Load() || !isFragment(r) {
		return false
	}
	if _, body := record(real, r); len(body)%3 == 0 {
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	return false
}

// command runs tmshare-client to its end, and returns what it says.
func (k *killing) command(args ...string) []byte {
	k.t.Helper()
	var said, complaint bytes.Buffer
	cmd := exec.Command(k.program, append(args, "--data", k.dir)...)
	cmd.Stdout, cmd.Stderr = &said, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 { // something is in quarantine
		err = nil
	}
	require.NoError(k.t, err, "%v: %s", args, complaint.String())
	return said.Bytes()
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

// killAfter returns for how long the next run may go on: somewhat less than it takes,
// since its start, while nothing is done, takes its time too.
func (k *killing) killAfter() time.Duration {
	return time.Duration(k.rng.Int64N(int64(k.took)))
}

// run lets the client do a round, and kills it.
func (k *killing) run(after time.Duration, what ...string) {
	k.o.seen()
	cmd := exec.Command(k.program, append(what, "--data", k.dir)...)
	require.NoError(k.t, cmd.Start())
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	kill.Stop()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		require.Contains(k.t, []int{0, 3}, status.ExitStatus())
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
	begin := time.Now()
	k.command("sync")
	k.took = time.Since(begin)
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
		own, _, err := here.Merged(false, "egov")
		require.NoError(k.t, err)
		other, _, err := k.healthy.Merged(false, "egov")
		require.NoError(k.t, err)
		here.source("egov", func(_ store.Subscription, src fragment.Source) {
			require.NoError(k.t, k.o.db.View("egov", func(v *store.View) error {
				sameRecords(k.t, contents(k.t, v.Source()), contents(k.t, src), "the server's")
				return nil
			}))
		})
		require.Equal(k.t, canonical(k.t, other, sp), canonical(k.t, own, sp))
	})
}

// opened calls f with the store of the client that is killed.
func (k *killing) opened(f func(*subscriber)) {
	db, err := store.Open(store.Options{Dir: k.dir, Logger: silent})
	require.NoError(k.t, err)
	defer func() { require.NoError(k.t, db.Close()) }()
	here := &subscriber{t: k.t, db: db}
	here.configure()
	f(here)
}

// quarantineOf lists the topics that are in quarantine, with their entries.
func quarantineOf(t *testing.T, db *store.DB) (all []string) {
	list, err := db.Quarantine("egov")
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
	require.NoError(k.t, json.Unmarshal(k.command("verify", "--json"), &all))
	require.Len(k.t, all, 1)
	return &all[0]
}
