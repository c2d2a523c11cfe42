package sim

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/synctest"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// derivation is a collection that a node derives from several sources.
type derivation struct {
	name   string
	own    bool        // also from the node's own collection
	inputs []*followed // the other sources
}

func (d *derivation) from(n *node) (names []string) {
	if d.own {
		names = append(names, n.name)
	}
	for _, f := range d.inputs {
		names = append(names, f.name)
	}
	return names
}

// derived reports whether f is a derived collection.
func (f *followed) derived() bool { return f.origin.derived != nil && f.origin.derived.name == f.name }

// request sends a request to a node's own server, as its operator does.
func (n *node) request(method, name string, body any) (status int, answer string) {
	b, err := json.Marshal(body)
	n.w.must(err, "%s: a request", n.name)
	r := httptest.NewRequest(method, n.url()+"/topicmaps/"+name, strings.NewReader(string(b)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	n.server.ServeHTTP(w, r)
	synctest.Wait() // the server derives without delay
	return w.Code, w.Body.String()
}

// derive makes a node publish a collection derived from some of its sources, replacing the one before. It must be
// refused if a source is derived itself: then that one is omitted.
func (n *node) derive(own bool, inputs ...*followed) {
	d := &derivation{name: "d" + n.name[1:], own: own, inputs: inputs}
	if n.derived != nil {
		status, answer := n.request(http.MethodDelete, d.name, nil)
		if status >= 300 {
			n.w.fail("%s: its derived collection is not deleted: %d %s", n.name, status, answer)
		}
		n.derived = nil
	}
	status, answer := n.request(http.MethodPut, d.name, map[string]any{"derivedFrom": d.from(n)})
	isDerived := func(f *followed) bool { return f.derived() }
	if primary := slices.DeleteFunc(slices.Clone(inputs), isDerived); len(primary) < len(inputs) && !n.w.breach.needs.derives {
		if status < 400 {
			n.w.fail("%s: it may derive from what is derived: %d %s", n.name, status, answer)
		}
		n.w.counts.refused++
		n.derive(true, primary...)
		return
	}
	if status != http.StatusCreated {
		n.w.fail("%s: %s is not created: %d %s", n.name, d.name, status, answer)
	}
	n.derived = d
	n.noteOf(d.name)
	n.w.say("%s derives %s from %v", n.name, d.name, d.from(n))
	for _, o := range n.w.nodes {
		for _, f := range o.follows {
			if f.name == d.name && f.replica { // it is another one now
				o.sync(f)
				_, _ = o.client.Confirm(background, f.name) // later rounds show an error
			}
		}
	}
}

// slowly is a store that derives few topics in a commit.
type slowly struct {
	n    *node
	most int
}

func (s slowly) Derive(ctx context.Context, name string, n int, decide func(*store.Deriving, merge.State) (*fragment.Change, error)) (*store.Collection, bool, error) {
	c, more, err := s.n.db.Derive(ctx, name, min(n, s.most), decide)
	if err == nil {
		s.n.noteOf(name)
	}
	return c, more, err
}

// catchUp brings a derived collection of a node in step with its inputs, and reports whether something was published.
func (n *node) catchUp(most int) bool {
	if n.derived == nil {
		return false
	}
	head := func() (head uint64) {
		err := n.db.View(background, n.derived.name, func(v *store.View) error { head = v.Head; return nil })
		n.w.must(err, "%s: reading %s", n.name, n.derived.name)
		return head
	}
	before := head()
	_, err := derive.CatchUp(background, slowly{n, most}, n.derived.name)
	if n.disk.stopped() {
		n.w.counts.crashes++
		n.restart("has crashed while it derived")
		n.noteOf(n.derived.name)
		return true
	}
	n.w.must(err, "%s: deriving %s", n.name, n.derived.name)
	now := head()
	if now > before {
		n.w.counts.derived += int(now - before)
		n.w.say("%s: %d topics of %s are derived", n.name, now-before, n.derived.name)
	}
	return now > before
}

// catchesUp is catchUp, in some commits, in which the process may die.
func (n *node) catchesUp() {
	if n.derived == nil {
		return
	}
	if n.w.chance(12) {
		n.disk.dieAfter(n.w.rng.IntN(3), n.w.chance(2))
	}
	n.catchUp(1 + n.w.rng.IntN(8))
	n.disk.dieAfter(-1, false)
}

// beginDeriving makes some nodes derive collections, and others follow them.
func (w *world) beginDeriving(topology string) {
	for _, n := range w.nodes {
		if w.chance(2) || w.breach.needs.derives {
			n.deriveSome()
		}
	}
	for i, n := range w.nodes {
		for j, o := range w.nodes {
			if i != j && o.derived != nil && w.follows(topology, i, j) && w.chance(2) {
				n.follow(o, o.derived.name)
			}
		}
	}
	if len(w.nodes) > 1 && (w.chance(3) || w.breach.needs.derives) {
		w.feedEachOther(w.nodes[0], w.nodes[1])
	}
}

// deriveSome lets a node derive from some of its sources.
func (n *node) deriveSome() {
	var inputs []*followed
	for _, f := range n.follows {
		if n.w.chance(2) {
			inputs = append(inputs, f)
		}
	}
	n.derive(len(inputs) == 0 || n.w.chance(2), inputs...)
}

// feedEachOther makes two nodes try to derive from each other's derived collection.
func (w *world) feedEachOther(a, b *node) {
	for _, n := range []*node{a, b, a} {
		other := b
		if n == b {
			other = a
		}
		var inputs []*followed
		for _, f := range n.follows {
			if f.origin == other && f.derived() {
				inputs = append(inputs, f)
			}
		}
		n.derive(true, inputs...)
		if !slices.ContainsFunc(other.follows, func(f *followed) bool { return f.name == n.derived.name }) {
			other.follow(n, n.derived.name)
		}
	}
}

// primariesOf returns the primary inputs of a derived collection, without the claims that the node rejects.
func (n *node) primariesOf(d *derivation, seen ...*node) (all []assertions) {
	if slices.Contains(seen, n) {
		return nil
	}
	if d.own {
		all = append(all, n.published(n.name))
	}
	for _, f := range d.inputs {
		if f.derived() { // a rule is left out
			all = append(all, f.origin.primariesOf(f.origin.derived, append(seen, n)...)...)
		} else {
			all = append(all, n.assertions(f).less(n.rejected[f.name]))
		}
	}
	return all
}

// together requires that a derived collection is the merge of its inputs, without the claims that the node rejects.
func (n *node) together() {
	if n.derived == nil {
		return
	}
	want := union(n.primariesOf(n.derived))
	if want.disputed { // which statement the topic reifies then depends on the order
		n.w.counts.disputed++
		return
	}
	maps.DeleteFunc(want.others, func(s string, _ bool) bool { return strings.HasPrefix(s, narrow) }) // they are not published
	n.w.counts.together++
	n.w.same(want, union([]assertions{n.published(n.derived.name)}), "%s: its derived collection", n.name)
}

// replayed requires that a new reader of the feeds of all derived collections gets their states.
func (w *world) replayed() {
	reader := &node{w: w, index: len(w.nodes), name: "reader", ever: map[string]bool{}, rejected: rejected{}, rows: w.rows(w.t)}
	reader.dir = filepath.Join(w.dir, reader.name)
	reader.editor = testedit.New(tmdm.New(), reader.sp(), 1)
	w.must(os.MkdirAll(filepath.Join(reader.dir, datafolder.Snapshots), 0o700), "a folder for a reader")
	reader.start()
	defer reader.drop()
	defer reader.stop()
	for _, n := range w.nodes {
		if n.dead || n.derived == nil {
			continue
		}
		f := &followed{name: n.derived.name, origin: n, at: []*node{n}}
		w.must(reader.subscribe(f), "subscribing to %s", f.name)
		reader.follows = append(reader.follows, f)
		if r := reader.sync(f); r == nil {
			w.fail("%s cannot be read from its beginning", f.name)
		}
		reader.inStep(f)
	}
}

// published returns the content of a collection that a node publishes.
func (n *node) published(name string) (s assertions) {
	err := n.db.View(background, name, func(v *store.View) error {
		s = n.w.read(v.SP, v.Source())
		return nil
	})
	n.w.must(err, "%s: reading %s", n.name, name)
	return s
}

// held returns the content that a node holds of f, with rejected claims.
func (n *node) held(f *followed) (s assertions) {
	n.parts(func(p *store.Part) {
		if p.Name == f.name && !p.Own {
			s = n.w.read(p.SP, all(p.Source))
		}
	})
	return s
}
