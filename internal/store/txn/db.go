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

	// Stumbled, if not nil, is called when a view meets damage. It must be set before the first view.
	Stumbled func()

	// Guard, if not nil, decides whether a state may be read or changed, unless it allowed one before that has the same
	// rows which exist once in a store. Its error is that of the view or update. It must be set before the first of them.
	Guard   func(*Tx) error
	allowed atomic.Pointer[kv.Version]

	writable func() error
	turns    turns

	open   sync.RWMutex   // of closed, and of the beginning of views
	closed bool           // no new views and updates
	users  sync.WaitGroup // the running views and updates

	awaited awaited
	lineage lineage

	stopped context.Context // ends with Close, for background work
	stop    context.CancelFunc
}

// New returns a DB over an engine. writable is called before each change; its error is that of the change.
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

// Close waits for running views and updates, and refuses new ones. It reports whether the database was open. The engine
// stays open.
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
	at, before := db.Now(), db.lineage.seen() // before the state is read, because later commits may be missing
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

// guard returns the reason why a state must not be read or changed. A commit is based on the allowed version, so no
// other commit can come between.
func (db *DB) guard(t *Tx) error {
	if db.Guard == nil {
		return nil
	}
	version := t.Version()
	if allowed := db.allowed.Load(); allowed != nil {
		if spaces := db.Engine.Changed(*allowed, version); spaces != nil && !spaces[namesSpace] {
			db.allowed.Store(&version)
			return nil
		}
	}
	if err := db.Guard(t); err != nil {
		return err
	}
	db.allowed.Store(&version)
	return nil
}

func (db *DB) end(t *Tx) {
	_ = t.answered() // callers that need it have waited for it
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
// If another process that shares the engine commits meanwhile, f is called again with the new state, so f must be
// repeatable. After ctx has ended, nothing is committed, and waiting for other changes ends.
func (db *DB) Update(ctx context.Context, f func(*Tx) error) error {
	return db.UpdateOf(ctx, "", f)
}

// UpdateOf is Update for the rows of a name, concurrent with updates of other names. It must not change theirs.
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
			return t.end()
		})
		if !errors.Is(err, kv.ErrConflict) {
			db.Committed()
			return err
		}
	}
}

type conditionKey struct{}

// WithCondition returns a context whose updates are committed only if holds returns nil. holds runs in the same
// transaction: its reads are part of the commit's conditions, and it may change more rows. Otherwise its error is that
// of the update. Conditions of ctx remain in force.
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

// PreviewOf calls f with the current state, which it may change, exclusively among updates of the name in this process.
// Nothing is committed.
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
	// these rows name the processes that use the store
	t.writes, t.depends = map[uint32]bool{}, map[uint32]bool{namesSpace: true}
	t.pending, t.observer, t.reads.most = btree.NewMap[string, []byte](0), db.Observer, readsLimit
	if t.Distant() {
		t.reads.most = distantLimit
	}
	return f(t)
}

// namesSpace is the keyspace of the rows that exist once in a store.
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
