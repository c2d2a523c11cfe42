package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
)

// Subscription is a source that follows a collection of another server.
type Subscription struct {
	Name          string
	FragmentsFeed string // URL
	SnapshotsFeed string // URL, "" if the server has none
	SP            string // source locator prefix, pinned when subscribing
	FeedID        string // of the fragments feed; a new one is a new history

	// State is what readers see; nil until the first clean start is done.
	State *Progress `json:",omitempty"`
	// Staging is a clean start or replacement under way: it becomes State when
	// it has caught up.
	Staging *Progress `json:",omitempty"`

	ETag        string    // of the fragments feed's recent document at the last round
	LastCheck   time.Time // by this node's clock, as is LastChange
	LastChange  time.Time
	LastError   string `json:",omitempty"`
	LastErrorAt time.Time

	Number uint32
}

// Progress is how far a generation of a source has come.
type Progress struct {
	Generation uint32
	Mark       Mark
	Applied    int // entries applied since the clean start
}

// Mark is the point in a feed up to which everything is applied. Times are the
// server's.
type Mark struct {
	Updated time.Time
	// Handled are the ids of the entries at Updated that are applied. It is
	// empty right after a snapshot, whose last change need not be in the feed.
	Handled []string `json:",omitempty"`
}

func (s *Subscription) source(p *Progress) sourceID { return sourceID{s.Number, p.Generation} }

func getSubscription(t *tx, name string) (*Subscription, error) {
	var s Subscription
	ok, err := t.getJSON(nameKey(tableSubscription, name), &s)
	if err == nil && !ok {
		err = fmt.Errorf("%w: subscription %q", ErrNotFound, name)
	}
	return &s, err
}

func (t *tx) putSubscription(s *Subscription) error {
	return t.putJSON(nameKey(tableSubscription, s.Name), s)
}

// Subscriptions returns all subscriptions by name.
func (db *DB) Subscriptions() ([]Subscription, error) {
	var all []Subscription
	err := db.viewing(func(t *tx) error {
		for r, err := range t.scan([]byte{tableSubscription}, nil) {
			if err != nil {
				return err
			}
			var s Subscription
			if err := json.Unmarshal(r.value, &s); err != nil {
				return err
			}
			all = append(all, s)
		}
		return nil
	})
	return all, err
}

// AddSubscription adds a subscription. A name that is taken is ErrExists.
func (db *DB) AddSubscription(s Subscription) error {
	var err error
	if s.Number, err = db.nextNumber(); err != nil {
		return err
	}
	return db.update(func(t *tx) error {
		if b, err := t.get(nameKey(tableSubscription, s.Name)); b != nil || err != nil {
			if err == nil {
				err = fmt.Errorf("%w: subscription %q", ErrExists, s.Name)
			}
			return err
		}
		return t.putSubscription(&s)
	})
}

// UpdateSubscription changes what is known of a subscription. Generations that
// it names no longer are removed.
func (db *DB) UpdateSubscription(name string, change func(*Subscription)) error {
	var dropped []sourceID
	err := db.update(func(t *tx) error {
		s, err := getSubscription(t, name)
		if err != nil {
			return err
		}
		before := s.generations()
		change(s)
		kept := map[sourceID]bool{}
		for _, id := range s.generations() {
			kept[id] = true
		}
		for _, id := range before {
			if !kept[id] {
				dropped = append(dropped, id)
			}
		}
		return t.putSubscription(s)
	})
	if err != nil || len(dropped) == 0 {
		return err
	}
	return db.viewing(func(*tx) error { // Close waits for it
		for _, id := range dropped {
			if err := db.deleteSource(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Subscription) generations() []sourceID {
	var ids []sourceID
	for _, p := range []*Progress{s.State, s.Staging} {
		if p != nil {
			ids = append(ids, s.source(p))
		}
	}
	return ids
}

// StageSource loads src as a new generation of a subscription's source, to be
// caught up by ApplyEntries and then switched to. What was staged before goes.
func (db *DB) StageSource(name string, src fragment.Source, mark Mark, progress func(records int)) error {
	var id sourceID
	err := db.viewing(func(t *tx) error {
		s, err := getSubscription(t, name)
		id.number = s.Number
		return err
	})
	if err != nil {
		return err
	}
	// Never a number again: another load, or the removal of what another has
	// left, may still be writing.
	if id.generation, err = db.nextNumber(); err != nil {
		return err
	}
	if err := db.load(context.Background(), id, src, progress); err != nil {
		return errors.Join(err, db.deleteSource(id))
	}
	return db.UpdateSubscription(name, func(s *Subscription) {
		s.Staging = &Progress{Generation: id.generation, Mark: mark}
	})
}

// ApplyEntries changes the records of a source and moves its mark, in one
// commit. It works on the staged generation where there is one, so that readers
// go on seeing the state before a clean replacement.
func (db *DB) ApplyEntries(ctx context.Context, name string, f func(merge.State, *Progress) error) error {
	return db.update(func(t *tx) error {
		s, err := getSubscription(t, name)
		if err != nil {
			return err
		}
		p := s.Staging
		if p == nil {
			p = s.State
		}
		if p == nil {
			return fmt.Errorf("%w: subscription %q has no state yet", ErrNotFound, name)
		}
		if err := f(records{t, s.source(p)}, p); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return t.putSubscription(s)
	})
}

// ReadSources calls f with the subscriptions that have a state and their
// records, all as of one moment. The sources are valid until f returns.
func (db *DB) ReadSources(f func([]Subscription, []fragment.Source) error) error {
	return db.viewing(func(t *tx) error {
		var subscriptions []Subscription
		var sources []fragment.Source
		for r, err := range t.scan([]byte{tableSubscription}, nil) {
			if err != nil {
				return err
			}
			var s Subscription
			if err := json.Unmarshal(r.value, &s); err != nil {
				return err
			}
			if s.State != nil {
				subscriptions = append(subscriptions, s)
				sources = append(sources, records{t, s.source(s.State)})
			}
		}
		return f(subscriptions, sources)
	})
}
