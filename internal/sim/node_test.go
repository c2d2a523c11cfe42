package sim

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// node is a store, a server and a client over it, and an editor of the collection that it publishes.
type node struct {
	w           *world
	index       int
	name        string
	down        bool // it has no connections
	dead        bool // for good
	offset      time.Duration
	follows     []*followed
	editor      *testedit.Editor
	unpublished bool // the last version was not taken
	backups     []backup
	ever        map[string]bool // the state digests of all that was published
	rejected    rejected
	derived     *derivation // may be nil

	rows   rows
	end    func() // ends the engine of the process
	dir    string
	disk   *disk
	db     *store.DB
	server *server.Server
	client *client.Client
}

// followed is a followed collection.
type followed struct {
	name    string
	origin  *node
	at      []*node // nodes with followed addresses: the authority first
	replica bool    // it is served on
	lacks   bool    // the replica has no snapshot from which its log continues
}

// direct reports whether the origin alone is followed.
func (f *followed) direct() bool { return len(f.at) == 1 && f.at[0] == f.origin }

// backup is a saved state of a node.
type backup struct {
	rows      rows
	snapshots string // folder with the files of snapshots
	document  []byte // that the editor had
	rejected  rejected
	derived   *derivation
}

const token = "the-token-of-the-simulation"

var silent = slog.New(slog.DiscardHandler)

func newNode(w *world, index int) *node {
	n := &node{w: w, index: index, name: fmt.Sprintf("n%d", index), ever: map[string]bool{}, rejected: rejected{}, rows: w.rows(w.t)}
	n.dir = filepath.Join(w.dir, n.name)
	w.must(os.MkdirAll(filepath.Join(n.dir, datafolder.Snapshots), 0o700), "a folder for %s", n.name)
	n.editor = testedit.New(testedit.SmallMap(n.sp(), w.rng.IntN(4), w.rng.IntN(4)), n.sp(), w.rng.Uint64())
	for range w.rng.IntN(10) {
		n.editor.Edit()
	}
	n.start()
	_, err := n.server.Import(background, store.Collection{Name: n.name, SP: n.sp()}, bytes.NewReader(n.document()), n.name)
	w.must(err, "%s: the first version", n.name)
	n.note()
	return n
}

func (n *node) url() string { return "http://" + n.name + ".example.org" }
func (n *node) sp() string  { return server.DefaultPrefix(n.url(), n.name) }

func (w *world) nodeOf(host string) *node {
	for _, n := range w.nodes {
		if strings.TrimPrefix(n.url(), "http://") == host {
			return n
		}
	}
	return nil
}

// start starts the process of a node.
func (n *node) start() {
	engine, end := n.rows.open()
	n.disk, n.end = newDisk(engine), end
	now := func() time.Time { return n.w.now.Add(n.offset) }
	var err error
	n.db, err = store.Open(background, store.Options{Dir: n.dir, Engine: n.disk, Logger: silent, Now: now, Indexes: ext.Indexes()})
	n.w.must(err, "%s: opening the store", n.name)
	n.w.must(n.db.BeginOpening(background), "%s: beginning an opening", n.name)
	n.server, err = server.New(server.Config{
		Parts: ext.Parts(),
		Store: n.db, BaseURL: n.url(), Tokens: []string{token}, Logger: silent, Now: now, DocumentSize: 3 + n.w.rng.IntN(12),
		Policy: upkeep.Policy{SnapshotEvery: 1_000_000, SnapshotAfter: 1_000_000 * time.Hour},
	})
	n.w.must(err, "%s: starting the server", n.name)
	n.client, err = client.New(client.Config{Protocols: ext.Protocols(),
		Store: n.w.breach.storeOf(n), HTTP: &http.Client{Transport: n.w.breach.transportOf(n)}, Parallel: 1, Batch: 1 + n.w.rng.IntN(8),
		Tries: 2, Backoff: time.Nanosecond, Logger: silent, Now: now,
	})
	n.w.must(err, "%s: making a client", n.name)
}

// stop ends the process of a node, if it runs.
func (n *node) stop() {
	if n.server != nil {
		n.server.Close()
		n.server = nil
	}
	if n.db != nil {
		_ = n.db.Close() // a process that has died cannot do so
		n.db = nil
		n.end()
	}
}

// drop removes the rows of a node that is stopped, and those of its backups.
func (n *node) drop() {
	n.rows.drop()
	for _, b := range n.backups {
		b.rows.drop()
	}
}

// restart starts a node again with its committed state.
func (n *node) restart(why string) {
	n.w.say("%s %s", n.name, why)
	n.stop()
	n.start()
}

// document is the map that the editor has.
func (n *node) document() []byte {
	var b bytes.Buffer
	_, err := xtm.Write(&b, n.editor.Map, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(n.sp())})
	n.w.must(err, "%s: writing the map", n.name)
	return b.Bytes()
}

// edits makes edits and publishes them.
func (n *node) edits(count int) {
	for range count {
		n.w.say("%s: %s", n.name, n.editor.Edit())
	}
	dies := n.w.chance(25)
	if dies {
		n.disk.dieAfter(0, n.w.chance(2))
	}
	n.publish()
	if n.disk.stopped() {
		n.w.counts.crashes++
		n.restart("has crashed while it published")
		n.note()
	}
	n.disk.dieAfter(-1, false)
}

// publish publishes the map of the editor. Sometimes the request arrives twice.
func (n *node) publish() {
	document := n.document()
	for range 1 + n.w.rng.IntN(8)/7 {
		if n.unpublished = !n.put(document); n.unpublished {
			return
		}
	}
}

// put publishes a document. It reports false where the process has died over it.
func (n *node) put(document []byte) bool {
	r := httptest.NewRequest(http.MethodPut, n.url()+"/topicmaps/"+n.name, bytes.NewReader(document))
	r.Header.Set("TMShare-Max-Delete", "all")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	n.server.ServeHTTP(w, r)
	if n.disk.stopped() {
		return false
	}
	if w.Code != http.StatusOK {
		n.w.fail("%s: publishing: %d: %s", n.name, w.Code, w.Body)
	}
	n.note()
	return true
}

// note records the published state.
func (n *node) note() { n.noteOf(n.name) }

func (n *node) noteOf(name string) {
	err := n.db.View(background, name, func(v *store.View) error {
		root, err := v.DigestNode(nil)
		if err == nil {
			n.ever[root.Digest().String()] = true
		}
		return err
	})
	n.w.must(err, "%s: reading what is published", n.name)
}

// backup saves the present state of the node.
func (n *node) backup() {
	b := backup{rows: n.rows.copy(), document: n.document(), rejected: n.rejected.clone(), derived: n.derived}
	b.snapshots = filepath.Join(n.w.dir, fmt.Sprintf("backup-%s-%d", n.name, len(n.backups)))
	n.w.must(os.CopyFS(b.snapshots, os.DirFS(filepath.Join(n.dir, datafolder.Snapshots))), "%s: a backup", n.name)
	n.backups = append(n.backups, b)
	n.w.say("%s: backup %d", n.name, len(n.backups)-1)
}

// restore restores an old backup. The editor continues with the backup's map, or with its last one.
func (n *node) restore(i int) {
	b := n.backups[i]
	n.w.counts.restores++
	n.stop()
	snapshots := filepath.Join(n.dir, datafolder.Snapshots)
	n.w.must(os.RemoveAll(snapshots), "%s: restoring", n.name)
	n.w.must(os.CopyFS(snapshots, os.DirFS(b.snapshots)), "%s: restoring", n.name)
	n.rows.drop()
	n.rows, n.rejected, n.derived = b.rows.copy(), b.rejected.clone(), b.derived
	n.w.say("%s is put back to backup %d", n.name, i)
	n.start()
	if n.w.chance(2) {
		tm, err := xtm.Read(background, bytes.NewReader(b.document), xtm.Options{Base: tmdm.Locator(n.sp())})
		n.w.must(err, "%s: reading the map of the backup", n.name)
		n.editor = testedit.New(tm, n.sp(), n.w.rng.Uint64())
	}
	n.unpublished = true // perhaps
}

func (n *node) snapshot(name string) {
	_, err := n.db.TakeSnapshot(background, name, 2)
	n.w.must(err, "%s: taking a snapshot of %s", n.name, name)
	n.w.say("%s: a snapshot of %s", n.name, name)
}

// prune gives up the history before the newest snapshot.
func (n *node) prune(name string) {
	n.snapshot(name)
	_, err := n.db.Prune(background, name, store.Retention{Entries: 1 + uint64(n.w.rng.IntN(3))})
	n.w.must(err, "%s: pruning %s", n.name, name)
	n.w.say("%s: gives up the history of %s", n.name, name)
}

// follow has the node follow a collection of another one.
func (n *node) follow(origin *node, name string) {
	f := &followed{name: name, origin: origin, at: []*node{origin}}
	if n.w.replicates {
		n.w.placed(n, f)
	}
	n.w.must(n.subscribe(f), "%s: subscribing to %s", n.name, f.name)
	n.follows = append(n.follows, f)
	if f.replica { // then others can follow it
		n.sync(f)
	}
}

func (n *node) subscribe(f *followed) error {
	at := make([]string, len(f.at))
	for i, o := range f.at {
		at[i] = o.url() + "/topicmaps/" + f.name
	}
	_, err := n.client.Subscribe(background, at[0], client.SubscribeOptions{Name: f.name, Replicate: f.replica, Replicas: at[1:]})
	return err
}

// subscription returns the subscription in the store, or nil if an old backup does not have it.
func (n *node) subscription(f *followed) *store.Subscription {
	s, err := n.db.Subscription(background, f.name)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	n.w.must(err, "%s: reading the subscription of %s", n.name, f.name)
	return s
}

// sync does a round, in any weather.
func (n *node) sync(f *followed) *client.Round {
	w, s := n.w, n.subscription(f)
	if s == nil {
		if err := n.subscribe(f); err != nil {
			w.say("%s cannot subscribe to %s: %v", n.name, f.name, err)
			return nil
		}
		s = n.subscription(f)
	}
	faults, was := w.counts.faults, mark(s)
	r, err := n.client.Sync(background, f.name)
	for tries := 0; w.net.quiet && tries < 4 && errors.As(err, new(*follow.DoubtError)); tries++ { // it is confirmed, or ends
		w.say("%s: a round of %s: %v", n.name, f.name, err)
		w.now = w.now.Add(10 * time.Minute)
		r, err = n.client.Sync(background, f.name)
	}
	if w.net.failed != "" {
		panic(w.net.failed)
	}
	if n.disk.stopped() {
		return nil
	}
	w.counts.rounds++
	if err != nil {
		w.counts.failed++
		w.say("%s: a round of %s fails: %v", n.name, f.name, err)
		return nil
	}
	w.counts.applied += r.Applied
	if r.Reason != "" {
		w.counts.replaced++
	}
	if r.Quarantined > 0 {
		w.counts.quarantined++
	}
	if r.Entries > 0 || r.CleanStart {
		w.say("%s: a round of %s: %+v", n.name, f.name, *r)
	}
	if !w.net.quiet || r.Entries > 0 || r.Applied > 0 || r.CleanStart { // otherwise the end compares the state
		n.check(f, r, faults == w.counts.faults)
		n.goesOn(f, was)
	}
	n.keep(f)
	w.breach.rounded(n, f)
	return r
}

// keep takes the snapshot that a replica is not followed without, as the keeper of a server does: here a round later.
func (n *node) keep(f *followed) {
	if !f.replica {
		return
	}
	l, err := n.db.Latest(background, f.name)
	lacks := err == nil && server.CanBeFollowed(l) != nil
	if lacks && f.lacks {
		n.snapshot(f.name)
	}
	f.lacks = lacks
}

// mark returns the mark of a subscription.
func mark(s *store.Subscription) store.Mark {
	if s != nil && s.State != nil {
		return s.State.Mark
	}
	return store.Mark{}
}

// goesOn requires that no round goes back from an entry that the origin still has.
func (n *node) goesOn(f *followed, was store.Mark) {
	if now := mark(n.subscription(f)); len(was.Handled) == 0 || !now.Updated.Before(was.Updated) || f.origin.dead {
		return
	}
	id, err := uuid.Parse(was.Handled[0])
	n.w.must(err, "%s: an id of %s", n.name, f.name)
	err = f.origin.db.View(background, f.name, func(v *store.View) error {
		_, err := v.EntryOf(id)
		return err
	})
	if err == nil {
		n.w.fail("%s has gone back in what it holds of %s, from %s, which that still has", n.name, f.name, was.Updated)
	}
}

// check compares the result of a round with the states that the origin has published. Origins send no false content, so
// if all requests of the round succeeded, no topic may need a repair.
func (n *node) check(f *followed, r *client.Round, calm bool) {
	if r.Repaired > 0 && calm && r.Quarantined == 0 {
		n.w.fail("%s: %d topics of %s were wrong, and repaired: %+v", n.name, r.Repaired, f.name, *r)
	}
	if r.Quarantined > 0 {
		return
	}
	root, err := n.db.DigestNode(background, f.name, nil)
	n.w.must(err, "%s: the digest of %s", n.name, f.name)
	if digest := root.Digest().String(); !f.origin.ever[digest] {
		n.w.fail("%s holds a state that %s has never published: %s, %+v", n.name, f.name, digest, *r)
	}
}
