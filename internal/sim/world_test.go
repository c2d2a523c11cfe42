package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// world is one run. Its seed determines all events: the nodes, the published maps, the faults. It never waits, and
// opens no socket.
type world struct {
	t      testing.TB
	rows   func(testing.TB) rows // of a new node
	seed   uint64
	rng    *rand.Rand
	now    time.Time // by the clocks that are right
	nodes  []*node
	net    *network
	breach breach
	dir    string
	log    []string
	counts counts

	replicates bool // some followed collections are served again
	derives    bool // some nodes publish derived collections
}

// counts are the numbers of events in the runs of a test, to show that these were demanding.
type counts struct {
	rounds, failed, applied, replaced, quarantined int
	crashes, restores, faults, during, dead        int
	compared, disputed                             int // merged views
	rejections, hidden                             int // hidden: in merged views, in the end
	derived, together, refused                     int // entries, compared collections, refused derivations
	passes                                         int // until silence, at most
}

func (c *counts) add(o *counts) {
	c.rounds += o.rounds
	c.failed += o.failed
	c.applied += o.applied
	c.replaced += o.replaced
	c.quarantined += o.quarantined
	c.crashes += o.crashes
	c.restores += o.restores
	c.faults += o.faults
	c.during += o.during
	c.disputed += o.disputed
	c.dead += o.dead
	c.compared += o.compared
	c.rejections += o.rejections
	c.hidden += o.hidden
	c.derived += o.derived
	c.together += o.together
	c.refused += o.refused
	c.passes = max(c.passes, o.passes)
}

// failure is the panic value of a failed run.
type failure string

func (w *world) say(format string, args ...any) {
	line := w.now.Format("15:04:05 ") + fmt.Sprintf(format, args...)
	w.log = append(w.log, random.ReplaceAllString(line, "*"))
}

func (w *world) fail(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (w *world) must(err error, format string, args ...any) {
	if err != nil {
		w.fail("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

func pick[T any](w *world, all []T) T { return all[w.rng.IntN(len(all))] }

// run runs a world to its end. The error is the violated requirement.
func run(t testing.TB, rows func(testing.TB) rows, seed uint64, b breach) (w *world, err error) {
	w = &world{
		t: t, rows: rows,
		seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), breach: b,
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	w.net = &network{w: w, stale: map[string][]answer{}}
	w.dir, err = os.MkdirTemp("", "sim")
	if err != nil {
		return w, err
	}
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = errors.New(string(failed))
		default:
			panic(failed)
		}
		for _, n := range w.nodes {
			n.stop()
			n.drop()
		}
		err = errors.Join(err, os.RemoveAll(w.dir))
	}()
	w.begin()
	for range 15 + w.rng.IntN(30) {
		w.step()
	}
	w.heal()
	w.silence()
	w.compare()
	return w, nil
}

// tail returns the last events of the log.
func (w *world) tail() string {
	return strings.Join(w.log[max(0, len(w.log)-60):], "\n")
}

// begin creates the nodes, and subscribes each according to the topology.
func (w *world) begin() {
	n := 2 + min(w.rng.IntN(7), w.rng.IntN(7))
	if w.breach.needs.replicas {
		n = 3 + w.rng.IntN(3)
	}
	for i := range n {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	w.replicates = w.chance(2) || w.breach.needs.replicas
	w.derives = w.chance(2) || w.breach.needs.derives
	topology := pick(w, []string{"ring", "star", "chain", "mesh"})
	w.say("a %s of %d nodes", topology, n)
	for i, node := range w.nodes {
		for j := range w.nodes {
			if i != j && w.follows(topology, i, j) {
				node.follow(w.nodes[j], w.nodes[j].name)
			}
		}
	}
	if topology == "chain" {
		w.nodes[0].follow(w.nodes[1], w.nodes[1].name) // so each run has a pair of peers
	}
	if w.derives {
		w.beginDeriving(topology)
	}
}

// placed selects the addresses from which a node reads f, and whether it serves a replica of it.
func (w *world) placed(n *node, f *followed) {
	often := w.breach.needs.replicas
	f.replica = often || w.chance(2)
	for _, o := range w.nodes {
		for _, other := range o.follows {
			if other.replica && other.name == f.name && o != n && (often || w.chance(2)) {
				f.at = append(f.at, o)
			}
		}
	}
	if len(f.at) > 1 && (w.chance(4) || often && w.chance(3)) {
		f.at = f.at[1:] // the authority is a replica
	}
	w.say("%s follows %s at %d addresses, replica: %t", n.name, f.name, len(f.at), f.replica)
}

// follows reports whether node i follows node j.
func (w *world) follows(topology string, i, j int) bool {
	n := len(w.nodes)
	switch topology {
	case "ring":
		return j == (i+1)%n
	case "star":
		return i == 0 || j == 0
	case "chain":
		return j == i-1
	}
	return n < 5 || w.chance(n-2)
}

// step lets something happen.
func (w *world) step() {
	w.now = w.now.Add(time.Duration(1+w.rng.IntN(90_000)) * time.Millisecond)
	n := pick(w, w.nodes)
	if n.dead {
		return
	}
	if !n.down && w.chance(2) {
		n.catchesUp()
	}
	p := w.rng.IntN(100)
	if w.breach.needs.restores && w.chance(3) {
		p = 90
	}
	switch {
	case n.down:
		if p < 50 {
			n.down = false
			w.say("%s is back", n.name)
		}
	case p < 27:
		n.edits(1 + w.rng.IntN(3))
	case p < 32:
		n.rejectsSome()
	case p < 70:
		w.round(n)
	case p < 74:
		w.net.cutOff(n)
	case p < 77:
		n.down = true
		w.say("%s is not reachable", n.name)
	case p < 85:
		n.backup()
	case p < 90:
		if len(n.backups) > 0 {
			n.restore(w.rng.IntN(len(n.backups)))
		}
	case p < 91:
		w.putBack(n)
	case p < 93:
		n.offset += time.Duration(w.rng.IntN(7200)-3600) * time.Second
		w.say("the clock of %s is wrong by %s", n.name, n.offset)
	case p < 95:
		n.snapshot(n.some())
	case p < 96:
		n.prune(n.some())
	case p < 98:
		n.restart("is started again")
	case p < 99:
		w.net.heal()
		w.say("all partitions end")
	case len(w.nodes) > 3 && w.counts.dead == 0:
		n.dead, n.down = true, true
		w.counts.dead++
		w.say("%s is gone for good", n.name)
	}
}

// some is a collection of a node that it makes itself.
func (n *node) some() string {
	if n.derived != nil && n.w.chance(2) {
		return n.derived.name
	}
	return n.name
}

// round makes a node do a round of one of its subscriptions, or of all, in some weather.
func (w *world) round(n *node) {
	if len(n.follows) == 0 {
		return
	}
	some := n.follows
	if w.chance(2) {
		some = []*followed{pick(w, n.follows)}
	}
	for _, f := range some {
		w.net.weather = weathers[w.rng.IntN(len(weathers))]
		w.net.step++
		if w.chance(10) || w.breach.needs.crashes && w.chance(2) {
			n.disk.dieAfter(w.rng.IntN(5), w.chance(2))
		}
		n.sync(f)
		w.net.weather = weather{}
		if n.disk.stopped() {
			n.restart("has crashed in a round of " + f.name)
			w.counts.crashes++
		}
		n.disk.dieAfter(-1, false)
	}
}

// putBack restores one of the addresses that a node follows to its state before the node's last round.
func (w *world) putBack(n *node) {
	if len(n.follows) == 0 {
		return
	}
	f := pick(w, n.follows)
	o := pick(w, f.at)
	if o.down || f.origin.down {
		return
	}
	w.net.step++
	w.say("%s has news of %s that %s soon lacks", n.name, f.name, o.name)
	o.backup()
	f.origin.edits(1)
	for _, other := range o.follows {
		if other.name == f.name {
			o.sync(other)
		}
	}
	var away []*node
	for _, other := range f.at {
		if other != o && !other.down && w.chance(2) {
			other.down, away = true, append(away, other)
		}
	}
	n.sync(f)
	for _, other := range away {
		other.down = false
	}
	o.restore(len(o.backups) - 1)
	if w.chance(2) {
		f.origin.edits(1)
	}
	n.sync(f)
}

// heal ends all faults, and makes each node publish for the last time.
func (w *world) heal() {
	w.net.heal()
	w.net.step++
	w.now = w.now.Add(48 * time.Hour) // a replica that is an authority is confirmed by its later states
	w.say("all faults end")
	for _, n := range w.nodes {
		if n.dead {
			continue
		}
		n.down = false
		if w.chance(2) {
			n.edits(1)
		}
		if w.chance(2) {
			n.rejectsSome()
		}
	}
}

var background = context.Background()
