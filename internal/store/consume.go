package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/consumers"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/titles"
)

// Consumer reads the changes of a collection or a subscription, outside of the store: see package consumers.
type Consumer = consumers.Consumer

// Dependent is what an extension keeps in step with a collection or a subscription, or what it tells of their changes.
type Dependent struct {
	Name   string   `json:"name"`             // as "target skos"
	Of     string   `json:"of,omitempty"`     // its source; "": the node
	State  string   `json:"state"`            // in a few words: "in step", if it is
	Wrong  string   `json:"wrong,omitempty"`  // what somebody must look after
	Mends  string   `json:"mends,omitempty"`  // the command that mends that, without its program
	Advice string   `json:"advice,omitempty"` // what does where no command does
	Ends   string   `json:"ends,omitempty"`   // the command that ends it
	Facts  []string `json:"facts,omitempty"`  // what else is known
}

// Orphaned says that its source is gone.
func (d *Dependent) Orphaned() string {
	return fmt.Sprintf("%s gets no more changes of %s: \"%s\" ends it", d.Name, d.Of, d.Ends)
}

// Dependents returns what extensions keep in step with collections and subscriptions: with those of some names, or with
// all where none is given.
func (db *DB) Dependents(ctx context.Context, names ...string) (all []Dependent, err error) {
	for _, list := range db.dependents {
		some, failed := list(ctx, db)
		all, err = append(all, some...), errors.Join(err, failed)
	}
	return slices.DeleteFunc(all, func(d Dependent) bool { return len(names) > 0 && !slices.Contains(names, d.Of) }), err
}

// ErrNotLoaded says that a subscription has no state yet.
var ErrNotLoaded = errors.New("not loaded yet")

// Consumed is one state of the source of a consumer. It is valid until the function returns that it is given to.
type Consumed struct {
	Consumer
	Bound     uint32 // the number of the source that has the name now
	SP        string
	Languages titles.Languages // in which topics are called
	History   string           // another one where commits do not go on from those before
	Head      past.Cursor      // behind all commits
	Since     uint64           // the first commit whose state can be read

	state   func(commit uint64) (records.State, error)
	changed func(after, upTo uint64) iter.Seq2[[]byte, error]
	commits func(after uint64) iter.Seq2[past.Part, error]
	entry   func(seq uint64) (*Entry, error) // nil: there is no log
}

// Commits iterates over the numbers of the commits behind one, each once.
func (c *Consumed) Commits(after uint64) iter.Seq2[uint64, error] {
	last := after
	return seq.Map(c.commits(after), func(p past.Part) (uint64, error) {
		if p.Commit == last {
			return 0, seq.ErrSkip
		}
		last = p.Commit
		return last, nil
	})
}

// Entry returns the last entry of the log that a commit has, nil for a subscription, which has none.
func (c *Consumed) Entry(commit uint64) (*Entry, error) {
	if c.entry == nil {
		return nil, nil
	}
	return c.entry(commit)
}

// State returns the records after a commit, from Since to the head. The error is [ErrGone] where nobody remembers them.
func (c *Consumed) State(commit uint64) (records.State, error) { return c.state(commit) }

// Changed iterates over the keys of the rows of records that commits have changed: those behind after, up to upTo.
func (c *Consumed) Changed(after, upTo uint64) iter.Seq2[[]byte, error] {
	return c.changed(after, upTo)
}

// Consume calls f with the present state of the source of a consumer. It is [ErrNotFound] where there is no such
// consumer or no such source, and [ErrNotLoaded] for a subscription without a state.
func (db *DB) Consume(ctx context.Context, name string, f func(*Consumed) error) error {
	return db.rows.View(ctx, func(t *txn.Tx) error {
		c, err := consumers.Get(t, name)
		if err != nil {
			return err
		}
		s, err := db.consumed(t, c)
		if err != nil {
			return err
		}
		return f(s)
	})
}

func (db *DB) consumed(t *txn.Tx, c *Consumer) (*Consumed, error) {
	own, err := db.decoded(t, c.Source)
	if err == nil {
		v := &View{Collection: *own, db: db, tx: t}
		id := v.SourceKey()
		return &Consumed{Consumer: *c, Bound: own.Number, SP: v.SP, History: fmt.Sprintf("%s/%d", v.Epoch, id.Generation),
			Head:  past.Cursor{Generation: id.Generation, Position: past.Position{Commit: v.Head}},
			Since: max(v.Horizon, v.Remembered), Languages: v.Languages(), entry: v.Entry, commits: commitsOf(t, id),
			state: func(commit uint64) (records.State, error) { return v.after(commit, commit) }, changed: v.Changed}, nil
	}
	if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	s, err := sources.Get(t, c.Source)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("%w: no collection and no subscription is called %q", ErrNotFound, c.Source)
	case err != nil:
		return nil, err
	case s.State == nil || s.Replica:
		return nil, fmt.Errorf("%q is %w: the first round of its subscription is not done", c.Source, ErrNotLoaded)
	}
	id, head := s.Source(s.State), s.State.Commits
	return &Consumed{Consumer: *c, Bound: s.Number, SP: s.SP, Since: s.State.Forgotten, Languages: s.Languages(),
		commits: commitsOf(t, id),
		History: fmt.Sprintf("%s/%d/%d/%d", db.node, s.Number, id.Generation, s.Anew),
		Head:    past.Cursor{Generation: id.Generation, Position: past.Position{Commit: head}},
		state: func(commit uint64) (records.State, error) {
			if commit >= head {
				return records.In(t, id), nil
			}
			if commit < s.State.Forgotten {
				return records.State{}, fmt.Errorf("%w: the state of %s after commit %d", ErrGone, s.Name, commit)
			}
			return records.In(txn.Over(t.Context(), past.AsOf(t.Reader(), id, commit)), id), nil
		},
		changed: func(after, upTo uint64) iter.Seq2[[]byte, error] { return past.Changed(t.Reader(), id, after+1, upTo) },
	}, nil
}

func commitsOf(t *txn.Tx, id keys.Source) func(uint64) iter.Seq2[past.Part, error] {
	return func(after uint64) iter.Seq2[past.Part, error] {
		return past.Parts(t.Reader(), id, past.Position{Commit: after, Part: math.MaxUint32})
	}
}

// Consumers returns all consumers by name.
func (db *DB) Consumers(ctx context.Context) (all []Consumer, err error) {
	err = db.rows.View(ctx, func(t *txn.Tx) (err error) { all, err = consumers.All(t); return err })
	return all, err
}

// Consumer returns the consumer with a name. It is [ErrNotFound] if there is none.
func (db *DB) Consumer(ctx context.Context, name string) (c *Consumer, err error) {
	err = db.rows.View(ctx, func(t *txn.Tx) (err error) { c, err = consumers.Get(t, name); return err })
	return c, err
}

// AddConsumer adds a consumer. From now on it is remembered what the records of its source were. A name that is taken
// is [ErrExists].
func (db *DB) AddConsumer(ctx context.Context, c Consumer) error {
	return db.rows.Update(ctx, func(t *txn.Tx) error {
		if _, err := consumers.Get(t, c.Name); !errors.Is(err, ErrNotFound) {
			if err == nil {
				err = fmt.Errorf("%w: %q", ErrExists, c.Name)
			}
			return err
		}
		return db.putConsumer(t, &c)
	})
}

// putConsumer writes the row of a consumer. One without the number of a source is bound to what its source has now.
func (db *DB) putConsumer(t *txn.Tx, c *Consumer) error {
	if c.Number != 0 {
		return consumers.Put(t, c)
	}
	s, err := db.consumed(t, c)
	switch {
	case err == nil:
		c.Number, c.Cursor = s.Bound, s.Head
	case errors.Is(err, ErrNotLoaded):
		followed, err := sources.Get(t, c.Source)
		if err != nil {
			return err
		}
		c.Number, c.Cursor = followed.Number, past.Cursor{}
	default:
		return err
	}
	return consumers.Put(t, c)
}

// ChangeConsumer changes what is kept of a consumer. Where change sets its number to 0, it is bound to what its source
// has now: what that changes from then on is remembered.
func (db *DB) ChangeConsumer(ctx context.Context, name string, change func(*Consumer)) error {
	return db.rows.Update(ctx, func(t *txn.Tx) error {
		c, err := consumers.Get(t, name)
		if err != nil {
			return err
		}
		change(c)
		return db.putConsumer(t, c)
	})
}

// RemoveConsumer removes a consumer.
func (db *DB) RemoveConsumer(ctx context.Context, name string) error {
	return db.rows.Update(ctx, func(t *txn.Tx) error {
		if _, err := consumers.Get(t, name); err != nil {
			return err
		}
		return consumers.Delete(t, name)
	})
}
