package store

import (
	"context"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/txn"
)

type (
	// Settings are the settings that the owner of a collection may change at any time.
	Settings = collections.Settings
	// Setting is one of them.
	Setting = collections.Setting
	// Period is a length of time that JSON has as text.
	Period = collections.Period
)

// ValueOf returns the value that a collection has of a setting.
func ValueOf[T any](x *Setting, c *Collection) T { return *x.In(c).(*T) }

// Settings returns the settings that collections have: those of the core, and those of the extensions.
func (db *DB) Settings() []Setting { return db.settings }

// ChangeSettings changes the settings of a collection by change, if it passes all checks, and returns the collection
// afterwards. It publishes nothing. It may call change more than once.
func (db *DB) ChangeSettings(ctx context.Context, name string, change func(*Settings) error,
	checks ...func(*Collection) error) (*Collection, error) {
	return db.changeSettings(ctx, name, change, checks, nil)
}

// changeSettings is ChangeSettings. then may change the collection besides.
func (db *DB) changeSettings(ctx context.Context, name string, change func(*Settings) error,
	checks []func(*Collection) error, then func(*txn.Tx, *Collection) error) (*Collection, error) {
	if err := db.prepareSigning(ctx, name, change); err != nil {
		return nil, err
	}
	return db.update(ctx, name, checks, func(t *txn.Tx, c *Collection) error {
		next := c.Settings
		if err := change(&next); err != nil {
			return err
		}
		if err := next.Validate(); err != nil {
			return err
		}
		if c.Replica != nil {
			if c.Republishes(next, db.settings) {
				return c.Writable()
			}
			next.RDF = nil // that of the origin applies
		}
		if next.DocumentSize == 0 {
			next.DocumentSize = c.DocumentSize
		}
		c.ResizeDocuments(next.DocumentSize)
		c.OfferIn(next.RecordForms)
		c.OfferRDF(next.RDF)
		c.Omit(next.OmitInstances)
		if next.Sign != "" {
			if err := collections.CompleteTree(t, c, c.Head); err != nil {
				return err
			}
		}
		c.Settings = next
		if then != nil {
			if err := then(t, c); err != nil {
				return err
			}
		}
		return collections.Put(t, c)
	})
}
