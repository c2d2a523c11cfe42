package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/loads"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// StageSource loads records, each once, as a new generation of a subscription's source, to be updated by ApplyEntries
// and then switched to. It drops an earlier staged generation. After an error, such as that of an iteration or the end
// of ctx, nothing is staged.
func (st *Store) StageSource(ctx context.Context, name string, all iter.Seq2[fragment.Record, error], mark Mark,
	progress func(records.Loading)) error {
	return st.stage(ctx, name, func(id keys.Source) (func(*Progress), error) {
		return func(p *Progress) {
			p.Snapshot, p.Mark, p.RDF = !mark.Updated.IsZero(), mark, mark.RDF
		}, st.loader().Load(ctx, id, all, progress)
	})
}

// Stated is a statement of a source's records: a record of the map, or the state of a record of the source.
type Stated struct {
	fragment.Record
	Held *Held
}

// StageRecords is StageSource for a source of records. After the load, change sets the position in the source.
func (st *Store) StageRecords(ctx context.Context, name string, all iter.Seq2[Stated, error],
	change func(*Progress)) error {
	return st.stage(ctx, name, func(id keys.Source) (func(*Progress), error) {
		file, memory := st.scratch(id)
		rows := extsort.Sorter{Path: file, Most: cmp.Or(memory, 16<<20)}
		err := st.loader().Load(ctx, id, seq.Map(all, func(one Stated) (fragment.Record, error) {
			if one.Held == nil {
				return one.Record, nil
			}
			return one.Record, cmp.Or(one.Held.rows(id, rows.Add), seq.ErrSkip)
		}), nil)
		if err == nil {
			err = st.put(ctx, rows.Sorted())
		}
		return change, errors.Join(err, rows.Close())
	})
}

// put writes rows of a new generation.
func (st *Store) put(ctx context.Context, rows iter.Seq2[extsort.Row, error]) error {
	bulk, err := st.rows.Engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer bulk.Cancel()
	if err := seq.Each(rows, func(r extsort.Row) error { return bulk.Put(r.Key, r.Value) }); err != nil {
		return err
	}
	return bulk.Commit()
}

// stage has a new generation loaded, and stages it.
func (st *Store) stage(ctx context.Context, name string, fill func(keys.Source) (func(*Progress), error)) error {
	var id keys.Source
	err := st.rows.View(ctx, func(t *txn.Tx) error {
		s, err := Get(t, name)
		id.Number = s.Number
		return err
	})
	if err != nil {
		return err
	}
	// Numbers are never reused, because another load, or the removal of another one's rows, may still be writing.
	load, err := loads.Begin(ctx, st.rows, st.now)
	if err != nil {
		return err
	}
	id.Generation = load.Number
	change, err := fill(id)
	if err == nil {
		err = st.UpdateSubscription(load.Naming(ctx), name, func(s *Subscription) {
			s.ETag, s.Staging = "", &Progress{Generation: id.Generation}
			change(s.Staging)
		})
	}
	return load.End(ctx, err, func() error { return records.Delete(ctx, st.rows.Engine, id) })
}

// SwitchSource makes the staged generation of a subscription visible. If another one is staged, the error is
// [ErrOvertaken]. note is the reason for the replacement of the source, "" for a clean start.
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

// ErrOvertaken is the error for a subscription that another process works on.
var ErrOvertaken = errors.New("another process has gone on with the subscription meanwhile; nothing is lost: try again")
