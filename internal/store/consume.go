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

// Dependent is a target that an extension keeps in step with a collection or a subscription, or notifies of changes.
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

// Orphaned returns the message that its source is gone.
func (d *Dependent) Orphaned() string {
	return fmt.Sprintf("%s gets no more changes of %s: \"%s\" ends it", d.Name, d.Of, d.Ends)
}

// Dependents returns the targets that depend on collections and subscriptions with the given names, or on any if none
// is given.
func (db *DB) Dependents(ctx context.Context, names ...string) (all []Dependent, err error) {
	for _, list := range db.dependents {
		some, failed := list(ctx, db)
		all, err = append(all, some...), errors.Join(err, failed)
	}
	return slices.DeleteFunc(all, func(d Dependent) bool { return len(names) > 0 && !slices.Contains(names, d.Of) }), err
}

// ErrNotLoaded is the error for a subscription without a state.
var ErrNotLoaded = errors.New("not loaded yet")

// Consumed is one state of the source of a consumer. It is valid until the function returns that it is given to.
type Consumed struct {
	Consumer
	Bound     uint32 // the number of the source that has the name now
	SP        string
	Languages titles.Languages // in which topics are called
	History   string           // changes if commits do not continue the former ones
	Head      past.Cursor      // after all commits
	Since     uint64           // the first commit whose state can be read

	state   func(commit uint64) (records.State, error)
	changed func(after, upTo uint64) iter.Seq2[[]byte, error]
	commits func(after uint64) iter.Seq2[past.Part, error]
	entry   func(seq uint64) (*Entry, error) // nil: there is no log
}

// Commits iterates over the numbers of the commits after one, each once.
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

// Entry returns the last entry of the log in a commit; nil for a subscription, which has none.
func (c *Consumed) Entry(commit uint64) (*Entry, error) {
	if c.entry == nil {
		return nil, nil
	}
	return c.entry(commit)
}

// State returns the records after a commit, from Since to the head. The error is [ErrGone] if they are not stored.
func (c *Consumed) State(commit uint64) (records.State, error) { return c.state(commit) }

// Changed iterates over the keys of the records' rows that commits after one, up to another, have changed.
func (c *Consumed) Changed(after, upTo uint64) iter.Seq2[[]byte, error] {
	return c.changed(after, upTo)
}

// Consume calls f with the present state of a consumer's source. The error is [ErrNotFound] for an unknown consumer or
// source, and [ErrNotLoaded] for a subscription without a state.
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

// Consumer returns the consumer with a name. The error is [ErrNotFound] if there is none.
func (db *DB) Consumer(ctx context.Context, name string) (c *Consumer, err error) {
	err = db.rows.View(ctx, func(t *txn.Tx) (err error) { c, err = consumers.Get(t, name); return err })
	return c, err
}

// AddConsumer adds a consumer. From now on the store keeps former records of its source. If the name is taken, the
// error is [ErrExists].
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

// putConsumer writes the row of a consumer. Without a number, it is bound to the present source of the name.
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

// ChangeConsumer changes the data of a consumer. If change sets its number to 0, it is bound to the present source of
// the name, whose changes are stored from then on.
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
