package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/testenv"
)

// mostPasses is the number of rounds of each node after which nothing may be new.
const mostPasses = 4

// silence requires that rounds bring nothing new after some time, and that then no node publishes in any further round.
func (w *world) silence() {
	w.net.quiet = true
	for _, n := range w.nodes {
		if n.unpublished && !n.dead {
			n.publish()
		}
	}
	for pass := 1; w.pass(pass == 1); pass++ {
		if pass == mostPasses+2*len(w.nodes) || pass == mostPasses && !w.replicates && !w.derives {
			w.fail("%d rounds of everybody, and there is still something new", pass)
		}
		w.counts.passes = max(w.counts.passes, pass)
	}
	heads, passes := w.heads(), w.silentPasses()
	for range passes {
		w.now = w.now.Add(100 * time.Minute / time.Duration(passes))
		if w.pass(false) {
			w.fail("something is new, though nothing has changed")
		}
	}
	for name, head := range w.heads() {
		if head != heads[name] {
			w.fail("%s publishes though nothing has changed: entry %d, which was %d", name, head, heads[name])
		}
	}
}

// silentPasses returns the number of rounds of each node in silence: 100 in the long form, otherwise enough for 100
// rounds in total.
func (w *world) silentPasses() int {
	rounds := 0
	for _, n := range w.nodes {
		rounds += len(n.follows)
	}
	if testenv.Long() || rounds == 0 {
		return 100
	}
	return max(10, (99+rounds)/rounds)
}

// pass does a round of each node, and reports whether one brought something new. A first round may still fail because
// of earlier faults, such as a truncated snapshot.
func (w *world) pass(first bool) (news bool) {
	w.now = w.now.Add(time.Minute)
	for _, n := range w.nodes {
		if n.dead {
			continue
		}
		news = n.catchUp(1000) || news
		for _, f := range n.follows {
			r := n.sync(f)
			switch {
			case f.origin.dead || f.unreachable():
			case r == nil && (first || !f.direct()): // an address may lag until its own round
				news = true
			case r == nil:
				w.fail("%s: a round of %s fails, though nothing is wrong", n.name, f.name)
			case r.Entries > 0 || r.Applied > 0 || r.CleanStart:
				news = true
			}
		}
	}
	return news
}

// heads is the number of entries of each collection, by its name.
func (w *world) heads() map[string]uint64 {
	heads := map[string]uint64{}
	for _, n := range w.nodes {
		all, err := n.db.Collections(background)
		w.must(err, "%s: reading the collections", n.name)
		for _, c := range all {
			heads[n.name+": "+c.Name] = c.Head
		}
	}
	return heads
}

// compare requires that each followed collection is as at its origin, and that each merged view is the merge of the
// collections.
func (w *world) compare() {
	for _, n := range w.nodes {
		if n.dead {
			continue
		}
		n.own()
		n.counted()
		for _, f := range n.follows {
			if !f.origin.dead && !f.unreachable() {
				n.inStep(f)
			}
		}
		n.merged()
		n.together()
	}
	if w.derives {
		w.replayed()
	}
}

// counted requires that the number of topics of each collection is correct.
func (n *node) counted() {
	all, err := n.db.Collections(background)
	n.w.must(err, "%s: reading the collections", n.name)
	for _, c := range all {
		if has := len(n.published(c.Name).topics); has != c.Topics {
			n.w.fail("%s: %s has %d topics, not %d as it says", n.name, c.Name, has, c.Topics)
		}
	}
}

// inStep requires that the node's copy of f is as at the origin, and proven.
func (n *node) inStep(f *followed) {
	s := n.subscription(f)
	switch p := s.State.Proof; {
	case p == nil || !p.Equal:
		n.w.fail("%s has not proven %s: %+v", n.name, f.name, p)
	case s.LastError != "":
		n.w.fail("%s: %s has an error: %s", n.name, f.name, s.LastError)
	}
	if !n.rejectsAll(f.name, n.rejected) {
		n.w.fail("%s: it does not reject of %s what was rejected last", n.name, f.name)
	}
	n.w.same(union([]assertions{f.origin.published(f.name)}), union([]assertions{n.held(f)}), "%s: what it holds of %s", n.name, f.name)
	if f.replica {
		n.sameLog(f)
	}
}

// all returns a source with rejected claims.
func all(src fragment.Source) fragment.Source {
	if r, ok := src.(*rejections.Source); ok {
		return r.All()
	}
	return src
}

// sameLog requires that a replica has the log of the origin entry for entry.
func (n *node) sameLog(f *followed) {
	read := func(from *node) (log map[uint64]string, head uint64) {
		log = map[uint64]string{}
		err := from.db.View(background, f.name, func(v *store.View) error {
			head = v.Head
			for e, err := range v.Entries(1) {
				if err != nil {
					return err
				}
				log[e.Seq] = fmt.Sprint(v.ID(&e), e.Updated, e.TopicSI, e.Deleted, strings.Fields(e.Title), e.Author, e.Note, e.Digest)
			}
			return nil
		})
		n.w.must(err, "%s: reading the log of %s", from.name, f.name)
		return log, head
	}
	origin, head := read(f.origin)
	replica, last := read(n)
	if last != head {
		n.w.fail("%s: its replica of %s has %d entries, not %d", n.name, f.name, last, head)
	}
	for seq, e := range replica {
		if original, kept := origin[seq]; kept && original != e {
			n.w.fail("%s: entry %d of its replica of %s is %s, not %s", n.name, seq, f.name, e, original)
		}
	}
}

// unreachable reports whether all paths from the addresses to the origin are permanently broken.
func (f *followed) unreachable() bool {
	for _, o := range f.at {
		if o.dead {
			continue
		}
		if o == f.origin {
			return false
		}
		for _, next := range o.follows {
			if next.name == f.name && next.replica && !next.unreachable() {
				return false
			}
		}
	}
	return true
}

func (n *node) parts(f func(*store.Part)) {
	err := n.db.ReadParts(background, func(parts []store.Part) error {
		for i := range parts {
			f(&parts[i])
		}
		return nil
	})
	n.w.must(err, "%s: reading what it has", n.name)
}
