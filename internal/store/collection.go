package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/consumers"
	"github.com/tmshare/tmshare/internal/store/inputs"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/loads"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/titles"
)

// Errors for callers to distinguish.
var (
	ErrNotFound = txn.ErrNotFound
	ErrExists   = txn.ErrExists
	ErrTooLarge = txn.ErrTooLarge
	ErrGone     = errors.New("gone") // was there and is not kept

	// ErrLost is the error for a snapshot file that is missing or was replaced.
	ErrLost = collections.ErrLost

	ErrNameTaken = errors.New("the name is taken")

	// ErrRecordTooLarge is the error for the record of a topic or an association that is too large for a row.
	ErrRecordTooLarge = kv.ErrTooLarge
)

// ValidateName checks the name of a collection.
func ValidateName(name string) error { return collections.ValidateName(name) }

// Forms are the XTM versions in which fragments and snapshots are available.
var Forms = rendered.Forms

// SnapshotForm is the one in which snapshots are stored.
const SnapshotForm = rendered.Snapshot

// What a node publishes: see package collections.
type (
	// Collection is a published topic map.
	Collection = collections.Collection
	Filter     = collections.Filter // of a derived collection
	Former     = collections.Former // the fate of a collection
	// FormerError is the error for a name that no collection has any more.
	FormerError = collections.FormerError
	// LeavingError is the error for a change of a collection that moves to another server.
	LeavingError = collections.LeavingError
	// ReadOnlyError is the error for a collection that is not written here.
	ReadOnlyError = collections.ReadOnlyError
	// Entry is an entry of the change log: one fragment.
	Entry = collections.Entry
	// Snapshot is a whole map at one moment.
	Snapshot = collections.Snapshot
	// Offer holds the forms in which records are offered from an entry on.
	Offer = collections.Offer
)

// Collections returns all collections by name. It caches the result until the next commit; callers must not change it.
// With an error it returns the readable ones.
func (db *DB) Collections(ctx context.Context) (all []Collection, err error) {
	if node, err := db.Listing(ctx); err == nil {
		return slices.Clone(node.Collections), nil
	}
	err = db.rows.View(ctx, func(t *txn.Tx) (err error) { all, err = collections.All(t); return err })
	return all, err
}

// CreateCollection publishes a map that was not there before, with an entry for
// each topic. It shows all at once, when it is whole. A collection of the name
// that exists already is ErrExists. What was written of one that fails is removed.
func (db *DB) CreateCollection(ctx context.Context, c Collection, src fragment.Source,
	progress func(records int)) (*Collection, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.DocumentSize == 0 {
		c.DocumentSize = 100
	}
	err := db.rows.View(ctx, func(t *txn.Tx) error { return absent(t, c.Name, "") })
	if err != nil {
		return nil, err
	}
	load, err := loads.Begin(ctx, db.rows, db.now)
	if err != nil {
		return nil, err
	}
	c.Number = load.Number
	c.Generation = 1
	c.Epoch = uuid.New()
	c.Created = db.now().UTC().Truncate(time.Microsecond)
	c.Updated = c.Created
	snapshot, err := db.fill(ctx, &c, src, func(l Loading) {
		if progress != nil && l.Rows == 0 {
			progress(l.Records)
		}
	})
	if err == nil {
		err = db.rows.Update(load.Naming(ctx), func(t *txn.Tx) error {
			if err := absent(t, c.Name, ""); err != nil {
				return err
			}
			if err := errors.Join(collections.Forget(t, c.Name), inputs.Begin(t, &c)); err != nil {
				return err
			}
			return putFilled(t, &c, snapshot)
		})
	}
	err = load.End(ctx, err, func() error {
		db.snapshotFiles(&c).RemoveAll(ctx)
		return db.deleteRows(ctx, &c)
	})
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// absent checks that a name may be given to a new collection, or to that with the name own.
func absent(t *txn.Tx, name, own string) error {
	subscription, err := t.Get(keys.Name(keys.TableSubscription, name))
	if err == nil && subscription != nil {
		return fmt.Errorf(
			"%w: a subscription of this node has the name %q; choose another name for the collection, or end the subscription",
			ErrNameTaken, name)
	}
	var arrival *collections.Arrival
	if err == nil {
		if arrival, err = collections.ArrivalOf(t, name); err == nil {
			_, err = collections.Read(t, name)
		}
	}
	switch {
	case err == nil:
		return fmt.Errorf("%w: collection %q", ErrExists, name)
	case arrival != nil:
		return fmt.Errorf("%w: collection %q is being moved here from another server", ErrNameTaken, name)
	case errors.Is(err, ErrNotFound):
		if err = collections.Free(t, name, own); errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w: %w", ErrNameTaken, err)
		}
	}
	return err
}

// First is the first version of a collection.
type First struct {
	fragment.Source
	Author, Note string // of the publication, for the first entries of the log
	RDF          bool   // it was a graph: unless the owner has decided, it is offered in RDF

	// Snapshot makes the first snapshot concurrently with the rows, and publishes it with them. Several goroutines read
	// the source then. If it cannot be written, there is none.
	Snapshot bool
}

// fill writes the rows of a collection that is not visible yet, and its first snapshot if requested.
func (db *DB) fill(ctx context.Context, c *Collection, src fragment.Source,
	progress func(Loading)) (snapshot *Snapshot, err error) {
	first, _ := src.(First)
	c.OfferRDF(cmp.Or(c.RDF, &first.RDF))
	c.Omit(c.OmitInstances)
	snapshotting, cancel := context.WithCancel(ctx)
	defer cancel()
	var writing sync.WaitGroup
	if first.Snapshot {
		into, sp := db.snapshotFiles(c), c.SP
		writing.Go(func() {
			snapshot, _ = into.Write(snapshotting, first.Source, sp) // TakeSnapshot reports errors
		})
	}
	topics, languages := 0, titles.Count{}
	records := seq.Map(fragment.Records(src), func(r fragment.Record) (fragment.Record, error) {
		if r.Topic != nil {
			topics++
			r.Topic.CountLanguages(languages)
		}
		return r, nil
	})
	if err = db.loader().Load(ctx, c.SourceKey(), records, progress); err == nil {
		c.Language = cmp.Or(c.Language, languages.Most())
		err = db.loadLog(ctx, c, src, topics)
	}
	if err != nil {
		cancel()
	}
	writing.Wait()
	if snapshot == nil {
		return nil, err
	}
	if err == nil {
		err = db.rows.View(ctx, func(t *txn.Tx) error { return snapshot.State(t, c) })
	}
	if err != nil {
		db.removeSnapshot(ctx, c, snapshot)
	}
	return snapshot, err
}

// putFilled writes the row of a collection after its other rows, and lists its first snapshot.
func putFilled(t *txn.Tx, c *Collection, snapshot *Snapshot) error {
	if snapshot != nil {
		if err := snapshot.List(t, c); err != nil {
			return err
		}
	}
	return collections.Put(t, c)
}

// loadLog writes the first entries of a collection that is not visible yet, one for each topic.
func (db *DB) loadLog(ctx context.Context, c *Collection, src fragment.Source, topics int) (err error) {
	bulk, err := db.rows.Engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer bulk.Cancel()
	rows := db.loader().Ordered(c.SourceKey(), bulk, keys.TableLog)
	defer func() { err = errors.Join(err, rows.Sorter.Close()) }()
	log := &collections.Appender{C: c, Put: rows.Put, Signed: c.Sign != "", Now: db.now, Run: db.run.Load,
		Digest: func() (digest string, err error) {
			err = db.rows.View(ctx, func(t *txn.Tx) error { digest, err = c.Digest(t); return err })
			return digest, err
		}}
	by, attributed := src.(First)
	if attributed {
		src, log.Author, log.Note = by.Source, by.Author, by.Note
	}
	err = log.Load(topics, seq.Map(fragment.InPassing(src).Topics(), func(t *fragment.Topic) (fragment.Ref, error) {
		c.Topics++
		return t.TopicSI(), context.Cause(ctx)
	}))
	if err != nil {
		return err
	}
	c.Remembered = c.Head
	if err := past.Begin(c.SourceKey(), c.Head, rows.Put); err != nil {
		return err
	}
	return rows.Commit()
}

// FillCollection publishes the first version of a map in an empty collection, if it passes all checks. It costs less
// than Publish, because it compares nothing and needs no single large commit: like a new collection, the map becomes
// visible at once, when it is complete. If the collection is not empty, or is not any more at the end, the error is
// ErrExists.
func (db *DB) FillCollection(ctx context.Context, name string, src fragment.Source,
	checks ...func(*Collection) error) (*Collection, error) {
	var empty, filled Collection
	err := db.rows.View(ctx, func(t *txn.Tx) error {
		c, err := collections.Get(t, name)
		if err == nil {
			err = cmp.Or(c.Bound(db.settings), c.WritableBy(""))
		}
		if err == nil {
			empty, filled = *c, *c
			err = stillEmpty(c, &empty)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	load, err := loads.Begin(ctx, db.rows, db.now)
	if err != nil {
		return nil, err
	}
	filled.Number = load.Number // separate rows that are not visible
	snapshot, err := db.fill(ctx, &filled, src, nil)
	if err == nil {
		checks = append([]func(*Collection) error{func(c *Collection) error { return stillEmpty(c, &empty) }}, checks...)
		_, err = db.update(load.Naming(ctx), name, checks, func(t *txn.Tx, c *Collection) error {
			c.Language = cmp.Or(c.Language, filled.Language)
			filled.Settings, filled.Segments, filled.Offers, filled.Omits, filled.Restating = c.Settings, c.Segments, c.Offers,
				c.Omits, c.Restating
			if filled.Sign != "" { // since a moment ago
				if err := collections.CompleteTree(t, &filled, filled.Head); err != nil {
					return err
				}
			}
			return errors.Join(keepExtended(t, c, &filled), putFilled(t, &filled, snapshot))
		})
	}
	err = load.End(ctx, err, func() error {
		if snapshot != nil {
			db.removeSnapshot(ctx, &filled, snapshot)
		}
		return db.deleteRows(ctx, &filled)
	})
	if err != nil {
		return nil, err
	}
	return &filled, errors.Join(records.Delete(ctx, db.rows.Engine, empty.SourceKey()), db.deleteLog(ctx, &empty))
}

// keepExtended copies the data of extensions from a collection to the one that replaces it.
func keepExtended(t *txn.Tx, from, to *Collection) error {
	return seq.Each(t.Scan(from.Log().Key(keys.TableExtension), nil), func(r row) error {
		return t.Put(append(to.Log().Key(keys.TableExtension), keys.Rest(r.Key)...), r.Value)
	})
}

// stillEmpty checks that c is the collection that was empty, and is so still.
func stillEmpty(c, was *Collection) error {
	if c.Head > 0 || c.Number != was.Number {
		return fmt.Errorf("%w: something was published in collection %q", ErrExists, c.Name)
	}
	return nil
}

// update lets change alter the rows of a collection in one commit, if the collection passes all
// checks, and returns the collection as it is then.
func (db *DB) update(ctx context.Context, name string, checks []func(*Collection) error,
	change func(*txn.Tx, *Collection) error) (*Collection, error) {
	return db.updateBeside(ctx, "", name, checks, change)
}

// updateOf is update concurrent with updates of other collections: change must alter only rows of this one.
func (db *DB) updateOf(ctx context.Context, name string, change func(*txn.Tx, *Collection) error) (*Collection, error) {
	return db.updateBeside(ctx, name, name, nil, change)
}

func (db *DB) updateBeside(ctx context.Context, turn, name string, checks []func(*Collection) error,
	change func(*txn.Tx, *Collection) error) (*Collection, error) {
	var c *Collection
	err := db.rows.UpdateOf(ctx, turn, func(t *txn.Tx) (err error) {
		if c, err = collections.Get(t, name); err != nil {
			return err
		}
		for _, check := range checks {
			if err := check(c); err != nil {
				return err
			}
		}
		return change(t, c)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// RenameCollection renames a collection, if it passes all checks. Its prefix, its history and the identifiers of its
// entries are kept. Collections derived from it refer to the new name, and the former name leads to it until
// [DB.ForgetCollection].
func (db *DB) RenameCollection(ctx context.Context, name, to string,
	checks ...func(*Collection) error) (*Collection, error) {
	if err := ValidateName(to); err != nil {
		return nil, err
	}
	c, err := db.update(ctx, name, checks, func(t *txn.Tx, c *Collection) error {
		if err := cmp.Or(c.Writable(), absent(t, to, name), inputs.Rename(t, c, to),
			consumers.Rename(t, c.Number, to)); err != nil {
			return err
		}
		err := c.Leave(t, Former{Name: name, To: to, At: db.now().UTC()})
		c.Former = slices.DeleteFunc(append(c.Former, name), func(name string) bool { return name == to })
		c.Name = to
		return errors.Join(err, t.Delete(keys.Name(keys.TableCollection, name)), collections.Forget(t, to),
			collections.Put(t, c))
	})
	db.latest.Delete(name)
	return c, err
}

// ForgetCollection makes a former name lead nowhere. If it is none, the error is ErrNotFound.
func (db *DB) ForgetCollection(ctx context.Context, name string) error {
	return db.rows.Update(ctx, func(t *txn.Tx) error {
		_, err := collections.Find(t, name)
		former, is := errors.AsType[*FormerError](err)
		switch {
		case err == nil:
			return fmt.Errorf("%w: %q is the name of a collection: delete that, or leave it", ErrExists, name)
		case !is:
			return err
		}
		c, err := collections.Get(t, former.To)
		if err == nil {
			c.Former = slices.DeleteFunc(c.Former, func(other string) bool { return other == name })
			err = collections.Put(t, c)
		}
		if errors.Is(err, ErrNotFound) { // it was deleted
			err = nil
		}
		return errors.Join(err, collections.Forget(t, name))
	})
}

// DeleteCollection removes a collection with its log and snapshots, if it passes all checks. It is gone with the
// commit, and a [*FormerError] has the note. Its space is freed afterwards, or, after an interruption, by the next
// Open.
func (db *DB) DeleteCollection(ctx context.Context, name, note string, checks ...func(*Collection) error) error {
	// Close waits for all of it
	return db.rows.View(ctx, func(*txn.Tx) error { return db.deleteCollection(ctx, name, note, checks) })
}

func (db *DB) deleteCollection(ctx context.Context, name, note string, checks []func(*Collection) error) error {
	c, err := db.update(ctx, name, checks, func(t *txn.Tx, c *Collection) error {
		if err := errors.Join(c.Writable(), inputs.End(t, c)); err != nil {
			return err
		}
		err := records.Unname(t, keys.TableCollection, name, c.Number)
		if c.Head == 0 || err != nil { // no follower has received any entry
			return err
		}
		return c.Leave(t, Former{Name: name, Note: note, At: db.now().UTC()})
	})
	if err != nil {
		return err
	}
	return db.removeDeleted(ctx, c)
}

// removeDeleted removes all of a collection that nothing names any more.
func (db *DB) removeDeleted(ctx context.Context, c *Collection) error {
	err := db.deleteRows(ctx, c)
	db.latest.Delete(c.Name)
	db.snapshotFiles(c).RemoveAll(ctx) // a concurrent snapshot removes its own files
	return err
}

// deleteRows removes the rows under the number of a deleted collection, even if ctx ends.
func (db *DB) deleteRows(ctx context.Context, c *Collection) error {
	return records.DeleteSpace(ctx, db.rows.Engine, c.Number)
}
