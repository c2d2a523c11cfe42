package txn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"github.com/tmshare/tmshare/internal/kv"
)

// DB reads and changes the rows of an engine. It is safe for concurrent use. Changes run one
// at a time, but for those of things with other names.
type DB struct {
	Engine   kv.Engine
	Observer Observer         // of updates; nil but in benchmarks
	Indexes  []Index          // in the order of their names; they are set before the first use
	Shared   bool             // others may commit to the engine; it is set before the first use
	Now      func() time.Time // [time.Now] but in tests; it is set before the first use

	// Stumbled, if not nil, is called when a view has come upon damage. It is set before the first of them.
	Stumbled func()

	// Guard, if not nil, is asked whether a state may be read or changed, unless its version is the one that it allowed
	// last. Its error is that of the view or update. It is set before the first of them.
	Guard   func(*Tx) error
	allowed atomic.Pointer[kv.Version]

	writable func() error
	turns    turns

	open   sync.RWMutex   // of closed, and of the beginning of views
	closed bool           // nothing begins any more
	users  sync.WaitGroup // the views and updates that are under way

	awaited awaited
	lineage lineage

	stopped context.Context // ends with Close: what is done in the background ends
	stop    context.CancelFunc
}

// New returns a DB over an engine. writable is asked before each change; its error is that of
// the change.
func New(engine kv.Engine, writable func() error) *DB {
	db := &DB{
		Engine: engine, writable: writable, Now: time.Now,
		awaited: awaited{waiters: map[*waiter]bool{}, again: make(chan struct{}, 1)},
		lineage: lineage{turned: make(chan struct{}, 1)},
	}
	db.stopped, db.stop = context.WithCancel(context.Background())
	return db
}

// Go calls f in the background. Its context ends when the database is closed, which waits for it.
func (db *DB) Go(f func(context.Context)) { db.users.Go(func() { f(db.stopped) }) }

// Close returns when the views and updates that are under way have ended. No others begin. It
// reports whether the database was open. The engine stays open.
func (db *DB) Close() bool {
	db.open.Lock()
	again := db.closed
	db.closed = true
	db.open.Unlock()
	db.stop()
	db.users.Wait()
	return !again
}

// begin opens the current state for reading. The caller ends it.
func (db *DB) begin(ctx context.Context) (*Tx, error) {
	db.open.RLock()
	defer db.open.RUnlock()
	if db.closed {
		return nil, kv.ErrClosed
	}
	at, before := db.Now(), db.lineage.seen() // before the state is read: what is committed meanwhile may be missing
	base, err := db.Engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	db.lineage.saw(before, base.Version())
	t := Over(ctx, base)
	t.Indexes = db.Indexes
	if t.at = at; db.isDated() {
		t.at = base.(kv.DatedReader).At()
	}
	if err := db.guard(t); err != nil {
		base.Close()
		return nil, err
	}
	db.users.Add(1)
	return t, nil
}

// guard returns why a state may not be read or changed. A commit is based on the version that was allowed, so no other
// can come between.
func (db *DB) guard(t *Tx) error {
	if db.Guard == nil {
		return nil
	}
	version := t.Version()
	if allowed := db.allowed.Load(); allowed != nil && version.Same(*allowed) {
		return nil
	}
	err := db.Guard(t)
	if err == nil {
		db.allowed.Store(&version)
	}
	return err
}

func (db *DB) end(t *Tx) {
	_ = t.answered() // callers that need it have asked for it
	t.base.Close()
	db.users.Done()
}

// View calls f with the current state; later writes do not show in it. Reading fails once
// ctx has ended.
func (db *DB) View(ctx context.Context, f func(*Tx) error) error {
	t, err := db.begin(ctx)
	if err != nil {
		return err
	}
	defer db.end(t)
	if err = f(t); errors.Is(err, kv.ErrDamaged) && db.Stumbled != nil {
		db.Stumbled()
	}
	return err
}

// Update calls f with the current state and commits what it changes, all or
// nothing. An error of f, or of the commit, changes nothing.
//
// Where another process that shares the engine has committed meanwhile, f is called
// again with what is there then: it must not count on being called once. Nothing is
// committed once ctx has ended, and nobody waits longer for other changes to end.
func (db *DB) Update(ctx context.Context, f func(*Tx) error) error {
	return db.UpdateOf(ctx, "", f)
}

// UpdateOf is Update of what has a name. Updates of other names may run beside it: it must change nothing of theirs.
func (db *DB) UpdateOf(ctx context.Context, name string, f func(*Tx) error) error {
	var r refusals
	for {
		err := db.previewOf(ctx, name, &r, func(t *Tx) (err error) {
			if t.commit, err = r.begin(ctx, db.Engine, t.base.Version()); err != nil {
				return err
			}
			defer t.commit.Cancel()
			defer func() { r.ended(t, err) }()
			if err := f(t); err != nil {
				return err
			}
			if holds, ok := ctx.Value(conditionKey{}).(func(*Tx) error); ok {
				t.settled = false
				if err := holds(t); err != nil {
					return err
				}
			}
			allowed := db.allowed.Load()
			// what this process commits forbids it nothing
			if err = t.end(); t.led.Number != 0 && allowed != nil && t.Version().Same(*allowed) {
				db.allowed.CompareAndSwap(allowed, &t.led)
			}
			return err
		})
		if !errors.Is(err, kv.ErrConflict) {
			db.Committed()
			return err
		}
	}
}

type conditionKey struct{}

// WithCondition returns a context whose updates are committed only where holds returns nil, which it is asked in the
// same transaction: what it reads is as it is when they are committed, and it may change more. Else its error is that
// of the update. The conditions that ctx has go on to hold.
func WithCondition(ctx context.Context, holds func(*Tx) error) context.Context {
	if others, ok := ctx.Value(conditionKey{}).(func(*Tx) error); ok {
		this := holds
		holds = func(t *Tx) error {
			if err := others(t); err != nil {
				return err
			}
			return this(t)
		}
	}
	return context.WithValue(ctx, conditionKey{}, holds)
}

// PreviewOf calls f with the current state, which it may change, while nobody else in this process changes what has the
// name. Nothing is committed.
func (db *DB) PreviewOf(ctx context.Context, name string, f func(*Tx) error) error {
	return db.previewOf(ctx, name, &refusals{}, f)
}

func (db *DB) previewOf(ctx context.Context, name string, r *refusals, f func(*Tx) error) error {
	if err := db.writable(); err != nil {
		return err
	}
	done, err := db.turns.take(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	defer r.takeTurn(ctx, db.Engine)()
	t, err := db.begin(ctx)
	if err != nil {
		return err
	}
	defer db.end(t)
	// these rows say which processes use the store
	t.writes, t.depends = map[uint32]bool{}, map[uint32]bool{namesSpace: true}
	t.pending, t.observer, t.reads.most = btree.NewMap[string, []byte](0), db.Observer, readsLimit
	if t.Distant() {
		t.reads.most = distantLimit
	}
	return f(t)
}

// namesSpace is the keyspace with what there is once in a store.
const namesSpace = 0

// Touch raises the version of the state without another change.
func (db *DB) Touch(ctx context.Context) error {
	for {
		since, err := db.Engine.Version(ctx)
		if err != nil {
			return err
		}
		w, err := db.Engine.Begin(ctx, since)
		if err == nil {
			err = w.Commit()
		}
		if !errors.Is(err, kv.ErrConflict) {
			db.Committed()
			return err
		}
	}
}
