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

// Errors that callers tell apart.
var (
	ErrNotFound = txn.ErrNotFound
	ErrExists   = txn.ErrExists
	ErrTooLarge = txn.ErrTooLarge
	ErrGone     = errors.New("gone") // was there and is not kept

	// ErrLost says that the file of a snapshot is missing, or another one than was written.
	ErrLost = collections.ErrLost

	ErrNameTaken = errors.New("the name is taken")

	// ErrRecordTooLarge says that the record of one topic, or of one association, is too large for a row.
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
	Former     = collections.Former // what has become of a collection
	// FormerError says that no collection has a name any more.
	FormerError = collections.FormerError
	// ReadOnlyError says that a collection is not written here.
	ReadOnlyError = collections.ReadOnlyError
	// Entry is an entry of the change log: one fragment.
	Entry = collections.Entry
	// Snapshot is a whole map at one moment.
	Snapshot = collections.Snapshot
	// Offer says in which forms records are offered, from an entry on.
	Offer = collections.Offer
)

// Collections returns all collections by name, at no cost as long as nothing is committed. What they point to is shared
// and must not be changed. With an error it returns those that can be read.
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
	if err == nil {
		_, err = collections.Get(t, name)
	}
	switch {
	case err == nil:
		return fmt.Errorf("%w: collection %q", ErrExists, name)
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
	Author, Note string // who published it, and why: the first entries in the log say so
	RDF          bool   // it was a graph: unless the owner has decided, it is offered in RDF

	// Snapshot says that the first snapshot is written while the rows are, and shows with them. Several
	// goroutines read the source then. Where it cannot be written there is none yet.
	Snapshot bool
}

// fill writes the rows of a collection that nothing shows yet, and its first snapshot if that is wanted.
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
			snapshot, _ = into.Write(snapshotting, first.Source, sp) // TakeSnapshot says what is wrong
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

// putFilled writes the row of a collection whose other rows are there, and lists its first snapshot.
func putFilled(t *txn.Tx, c *Collection, snapshot *Snapshot) error {
	if snapshot != nil {
		if err := snapshot.List(t, c); err != nil {
			return err
		}
	}
	return collections.Put(t, c)
}

// loadLog writes the first entries of a collection that nothing shows yet: of so many topics.
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

// FillCollection publishes the first version of a map in a collection in which
// nothing was published yet, if it passes all checks. It costs less than Publish,
// because nothing need be compared and no commit need hold it all: as when a
// collection is created, it shows all at once, when it is whole. A collection
// that is not empty, or is not any more in the end, is ErrExists.
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
	filled.Number = load.Number // rows of its own, that nothing shows yet
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

// keepExtended gives a collection what extensions keep of another one that it takes the place of.
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

// updateOf is update beside the updates of other collections: change alters nothing but rows of this one.
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

// RenameCollection gives a collection another name, if it passes all checks. All else stays: its prefix, its history,
// the identifiers of its entries. What is derived from it is so by the new name, and the name that it had leads to it,
// until [DB.ForgetCollection].
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
	db.seen.Delete(name)
	db.latest.Delete(name)
	return c, err
}

// ForgetCollection has a name that a collection had lead nowhere, as one that none ever had. It is ErrNotFound where it
// is none.
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

// DeleteCollection removes a collection with its log and snapshots, if it passes
// all checks. From its commit on it is not there, and a [*FormerError] has the note; what it took on disk is given up
// after that, and by the next Open where that is interrupted.
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
		if c.Head == 0 || err != nil { // nobody has had anything of it
			return err
		}
		return c.Leave(t, Former{Name: name, Note: note, At: db.now().UTC()})
	})
	if err != nil {
		return err
	}
	err = db.deleteRows(ctx, c)
	db.seen.Delete(name)
	db.latest.Delete(name)
	db.snapshotFiles(c).RemoveAll(ctx) // what a snapshot puts there meanwhile, it takes away again
	return err
}

// deleteRows removes what is kept under the number of a collection that nothing
// names any more, also where ctx ends.
func (db *DB) deleteRows(ctx context.Context, c *Collection) error {
	return records.DeleteSpace(ctx, db.rows.Engine, c.Number)
}
