package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/replicas"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// A replica is a collection that serves on the source of the subscription with the same name. It has the records of the
// subscription. Its log has the entries of the origin, with the same ids and times, as epoch, runs and sequences are
// the origin's. A staged generation has a staged log; one commit shows both.

// serving implements [sources.Server].
type serving struct{ db *DB }

// StageLog makes the log of the staged generation of a replica from entries: those of the origin up to the generation's
// mark, in order. feedID is the id of their feed. fetch sets Applied of an entry whose fragment cannot be made of the
// records, because no topic has its TopicSI any more. If another process stages the log meanwhile, the error is
// ErrOvertaken.
func (db *DB) StageLog(ctx context.Context, name, feedID string, entries iter.Seq2[Logged, error],
	fetch func(context.Context, *Logged) error) error {
	epoch, err := replicas.EpochOf(feedID)
	if err != nil {
		return err
	}
	c := &Collection{Name: name, Epoch: epoch}
	if c.Generation, err = records.NextNumber(ctx, db.rows, nil); err != nil {
		return err
	}
	var before *Collection
	err = db.rows.Update(ctx, func(t *txn.Tx) error {
		s, err := sources.Get(t, name)
		if err != nil {
			return err
		}
		if s.Staging == nil {
			return fmt.Errorf("%w: subscription %q has nothing staged", ErrNotFound, name)
		}
		if before, err = replicas.Staged(t, s); err != nil {
			return err
		}
		replicas.Begin(c, s)
		c.Number = s.Number
		c.Settings = collections.Settings{DocumentSize: 100}
		c.Replica = &collections.Replica{Origin: s.Authority(), Records: s.Source(s.Staging)}
		for _, err := range records.In(t, c.Replica.Records).Topics() {
			if err != nil {
				return err
			}
			c.Topics++
		}
		return replicas.PutStaged(t, c)
	})
	if err != nil {
		return err
	}
	if before != nil {
		if err := db.deleteLog(ctx, before); err != nil {
			return err
		}
	}
	var some []Logged
	put := func(last bool) error {
		if err := db.fetchUnresolved(ctx, c, some, fetch); err != nil {
			return err
		}
		return db.rows.Update(ctx, func(t *txn.Tx) error {
			s, err := sources.Get(t, name)
			if err != nil {
				return err
			}
			staged, err := replicas.Staged(t, s)
			if err != nil {
				return err
			}
			if staged == nil || staged.Generation != c.Generation || s.Staging == nil {
				return fmt.Errorf("%s: %w", name, ErrOvertaken)
			}
			if err := db.appendOrigin(ctx, t, staged, s, some); err != nil {
				return err
			}
			if last {
				if err := beginPast(t, staged); err != nil {
					return err
				}
				s.Staging.Log = true
				if err := sources.Put(t, s); err != nil {
					return err
				}
			}
			return replicas.PutStaged(t, staged)
		})
	}
	for e, err := range entries {
		if err != nil {
			return err
		}
		if some = append(some, e); len(some) >= db.batch {
			if err := put(false); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return put(true)
}

// fetchUnresolved fetches the fragments of live entries whose TopicSI no topic has any more, and that no later entry
// supersedes.
func (db *DB) fetchUnresolved(ctx context.Context, c *Collection, entries []Logged,
	fetch func(context.Context, *Logged) error) error {
	var unresolved []*Logged
	err := db.rows.View(ctx,
		func(t *txn.Tx) (err error) { unresolved, err = replicas.Unresolved(t, c, entries); return err })
	if err != nil {
		return err
	}
	for _, l := range unresolved {
		if err := fetch(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// Logged implements [sources.Server].
func (r serving) Logged(ctx context.Context, t *txn.Tx, a *sources.Applying, entries []Logged) error {
	s := a.Subscription()
	added := records.In(t, s.Source(a.Progress)).AddedTopics()
	// also without entries: fragments from the quarantine may be applied
	return changeReplica(t, s, a.Progress, func(c *Collection) error {
		staged, name := a.Progress == s.Staging, c.Name
		past.Record(t, c.SourceKey(), c.Head, func() (uint64, error) {
			now, err := &Collection{}, error(nil)
			if staged {
				now, err = replicas.Staged(t, s)
			} else {
				now, err = collections.Get(t, name)
			}
			if err != nil {
				return 0, err
			}
			return now.Head, nil
		})
		c.Topics += added
		head := c.Head
		err := r.db.appendOrigin(ctx, t, c, s, entries)
		if err == nil && c.Head == head {
			err = keepLast(t, c)
		}
		return err
	})
}

// keepLast keeps the fragments of the last commit's entries, where a change without an entry alters them, such as a
// fragment that is applied late. The change counts as a part of that commit.
func keepLast(t *txn.Tx, c *Collection) error {
	first, err := past.CommitBefore(t.Reader(), c.SourceKey(), c.Head)
	if err != nil {
		return err
	}
	before, now := records.In(txn.Over(t.Context(), t.Reader()), c.SourceKey()), records.In(t, c.SourceKey())
	for e, err := range collections.Kept(t, c, max(first, c.Remembered)+1) {
		if err != nil {
			return err
		}
		if e.Late || e.Kept || e.Deleted {
			continue
		}
		err := replicas.Keep(t, c, now, before, &e)
		if err == nil && (e.Late || e.Kept) {
			err = t.PutJSON(c.Log().Numbered(keys.TableLog, e.Seq), e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Stated implements [sources.Server]: it also passes on statements that come without a new entry.
func (r serving) Stated(t *txn.Tx, s *Subscription) error {
	return changeReplica(t, s, s.State, func(c *Collection) error {
		c.Language = s.Languages().String()
		return replicas.PassOn(t, c, s)
	})
}

// Counted implements [sources.Server].
func (r serving) Counted(t *txn.Tx, s *Subscription, p *sources.Progress, topics int) error {
	return changeReplica(t, s, p, func(c *Collection) error {
		c.Topics = topics
		return beginPast(t, c) // the records before were wrong
	})
}

// beginPast notes that past states of the records are remembered from the present one on.
func beginPast(t *txn.Tx, c *Collection) error {
	c.Remembered = c.Head
	mark := c.SourceKey().Changed(c.Head, 0)
	if there, err := t.Get(mark); there != nil || err != nil {
		return err
	}
	return past.Begin(c.SourceKey(), c.Head, t.Put)
}

// changeReplica changes the replica of a generation, if there is one.
func changeReplica(t *txn.Tx, s *Subscription, p *sources.Progress, f func(*Collection) error) error {
	read, put := func() (*Collection, error) { return collections.Get(t, s.Name) }, collections.Put
	if p == s.Staging {
		read, put = func() (*Collection, error) { return replicas.Staged(t, s) }, replicas.PutStaged
	}
	c, err := read()
	if err != nil || c == nil {
		return err
	}
	return errors.Join(f(c), put(t, c))
}

// Switched implements [sources.Server].
func (r serving) Switched(t *txn.Tx, s *Subscription) (after func() error, err error) {
	c, err := replicas.Staged(t, s)
	if err == nil && c == nil {
		err = fmt.Errorf("%w: subscription %q has no log staged", ErrNotFound, s.Name)
	}
	if err != nil {
		return nil, err
	}
	before, err := collections.Get(t, s.Name)
	switch {
	case errors.Is(err, ErrNotFound):
		if err := cmp.Or(collections.Free(t, s.Name, ""), collections.Forget(t, s.Name)); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case before.Replica == nil:
		return nil, fmt.Errorf(
			"%w: a collection that is written here has the name %q; end the subscription, and replicate under another name",
			ErrNameTaken, s.Name)
	default:
		c.Settings, c.Segments = before.Settings, before.Segments
		after = func() error { return r.db.deleteLog(context.Background(), before) }
	}
	return after, errors.Join(collections.Put(t, c), replicas.DeleteStaged(t, s))
}

// Removed implements [sources.Server].
func (r serving) Removed(t *txn.Tx, s *Subscription) (after func() error, err error) {
	var gone []*Collection
	staged, err := replicas.Staged(t, s)
	if err != nil {
		return nil, err
	}
	if staged != nil {
		gone = append(gone, staged)
		err = replicas.DeleteStaged(t, s)
	}
	c, missing := collections.Get(t, s.Name)
	switch {
	case err != nil:
		return nil, err
	case errors.Is(missing, ErrNotFound) || missing == nil && c.Replica == nil:
	case missing != nil:
		return nil, missing
	default:
		gone = append(gone, c)
		err = records.Unname(t, keys.TableCollection, s.Name, c.Number)
	}
	return func() (err error) {
		for _, c := range gone {
			err = errors.Join(err, r.db.deleteLog(context.Background(), c))
		}
		return err
	}, err
}

// deleteLog removes the rows and files of a replica that nothing names any more. It keeps the records, which are the
// subscription's.
func (db *DB) deleteLog(ctx context.Context, c *Collection) error {
	return db.rows.View(context.WithoutCancel(ctx), func(t *txn.Tx) error { // Close waits for it
		v := &View{Collection: *c, db: db, tx: t}
		snapshots, err := v.Snapshots()
		for i := range snapshots {
			db.removeSnapshot(ctx, c, &snapshots[i]) // files that stay are removed when the folder is opened
		}
		return errors.Join(err, records.Delete(ctx, db.rows.Engine, c.Log()))
	})
}

// appendOrigin appends entries of the origin to the log of a replica, unless it has them.
func (db *DB) appendOrigin(ctx context.Context, t *txn.Tx, c *Collection, s *Subscription, entries []Logged) error {
	log := db.appender(t, c)
	log.Signed = s.Key != ""
	state := records.In(t, c.SourceKey())
	for i := range entries {
		e, err := replicas.Next(t, c, state, &entries[i])
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if v := e.RenderedBy(); !e.CanBeWritten() {
			if _, logged := db.unknown.LoadOrStore(fmt.Sprint(c.Name, "/", v), true); !logged {
				db.log.Warn(
					"the origin of a replica writes fragments in a way that this program does not know: it answers 503 for them. "+
						"Update this program", "collection", c.Name, "rendering", v)
			}
		}
		if !e.Late && !e.Deleted {
			source, err := replicas.SourceOf(entries[i].Applied)
			if err == nil {
				err = replicas.Keep(t, c, state, source, e)
			}
			if err != nil {
				return err
			}
		}
		if err := log.AppendEntry(e); err != nil {
			return err
		}
	}
	return replicas.PassOn(t, c, s)
}
