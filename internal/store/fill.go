package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// FillCollection publishes the first version of a map in a collection in which
// nothing was published yet, if it passes all checks. It costs less than Publish,
// because nothing need be compared and no commit need hold it all: as when a
// collection is created, it shows all at once, when it is whole. A collection
// that is not empty, or is not any more in the end, is ErrExists.
func (db *DB) FillCollection(ctx context.Context, name string, src fragment.Source, checks ...func(*Collection) error) (*Collection, error) {
	var empty, filled Collection
	err := db.rows.View(ctx, func(t *txn.Tx) error {
		c, err := getCollection(t, name)
		if err == nil {
			empty, filled = *c, *c
			err = stillEmpty(c, &empty)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if filled.Number, err = db.nextNumber(ctx); err != nil { // rows of its own, that nothing shows yet
		return nil, err
	}
	if err = db.load(ctx, filled.source(), fragment.Records(src), nil); err == nil {
		err = db.loadLog(ctx, &filled, src)
	}
	if err != nil {
		return nil, errors.Join(err, db.deleteRows(ctx, &filled))
	}
	err = db.rows.Update(ctx, func(t *txn.Tx) error {
		c, err := getCollection(t, name)
		if err == nil {
			err = stillEmpty(c, &empty)
		}
		if err == nil {
			err = c.pass(checks)
		}
		if err != nil {
			return err
		}
		filled.Settings, filled.Segments, filled.Offers, filled.Restating = c.Settings, c.Segments, c.Offers, c.Restating
		return putCollection(t, &filled)
	})
	unused := &empty
	if err != nil {
		unused = &filled
	}
	return &filled, errors.Join(err, db.deleteRows(ctx, unused))
}

// stillEmpty checks that c is the collection that was empty, and is so still.
func stillEmpty(c, was *Collection) error {
	if c.Head > 0 || c.Number != was.Number {
		return fmt.Errorf("%w: something was published in collection %q", ErrExists, c.Name)
	}
	return nil
}
