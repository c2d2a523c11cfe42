package sources

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/loads"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// StageSource loads records, each of which comes once, as a new generation of a
// subscription's source, to be caught up by ApplyEntries and then switched to.
// What was staged before goes. An error, that of an iteration or the end of ctx
// among them, stages nothing.
func (st *Store) StageSource(ctx context.Context, name string, all iter.Seq2[fragment.Record, error], mark Mark,
	progress func(records.Loading)) error {
	var id keys.Source
	err := st.rows.View(ctx, func(t *txn.Tx) error {
		s, err := Get(t, name)
		id.Number = s.Number
		return err
	})
	if err != nil {
		return err
	}
	// Never a number again: another load, or the removal of what another has
	// left, may still be writing.
	load, err := loads.Begin(ctx, st.rows, st.now)
	if err != nil {
		return err
	}
	id.Generation = load.Number
	if err = st.loader().Load(ctx, id, all, progress); err == nil {
		err = st.UpdateSubscription(load.Naming(ctx), name, func(s *Subscription) {
			s.ETag, s.Staging = "", &Progress{
				Generation: id.Generation, Snapshot: !mark.Updated.IsZero(), Mark: mark, RDF: mark.RDF,
			}
		})
	}
	return load.End(ctx, err, func() error { return records.Delete(ctx, st.rows.Engine, id) })
}

// SwitchSource makes the staged generation of a subscription the one that
// readers see. It is [ErrOvertaken] if another one is staged. note says why the
// source was replaced, "" for a clean start.
func (st *Store) SwitchSource(ctx context.Context, name string, generation uint32, note string) error {
	var dropped []keys.Source
	var after func() error
	err := st.rows.Update(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) (err error) {
		if s.Staging == nil {
			return fmt.Errorf("%w: subscription %q has nothing staged", txn.ErrNotFound, name)
		}
		if s.Staging.Generation != generation {
			return fmt.Errorf("%s: %w", name, ErrOvertaken)
		}
		dropped = nil
		if s.State != nil {
			dropped = []keys.Source{s.Source(s.State)}
		}
		s.State, s.Staging = s.Staging, nil
		if s.Replica {
			if after, err = st.server.Switched(t, s); err != nil {
				return err
			}
		}
		if err := Put(t, s); err != nil {
			return err
		}
		return st.Note(t, Activity{Source: name, Kind: ActivityReplaced, Note: note})
	}))
	if err != nil {
		return err
	}
	return errors.Join(st.drop(ctx, dropped), then(after))
}

// ErrOvertaken says that another process works on the same subscription.
var ErrOvertaken = errors.New("another process has gone on with the subscription meanwhile; nothing is lost: try again")
