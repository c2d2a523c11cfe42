package store

import (
	"log/slog"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// Bare is the database of a data folder without what this package makes of it:
// rows, set up as Open does it. Benchmarks compare with it.
type Bare struct{ badger *badger.DB }

// BareRow is a row of a Bare.
type BareRow struct{ Key, Value []byte }

// OpenBare opens the database in a data folder, creating it where there is none.
func OpenBare(dir string) (*Bare, error) {
	b, err := openBadger(badgerOptions(filepath.Join(dir, "badger"), slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	return &Bare{b}, nil
}

// Rows calls f with all rows in the order of their keys, until it returns an error.
func (d *Bare) Rows(f func(BareRow) error) error {
	t := &tx{base: d.badger.NewTransaction(false)}
	defer t.discard()
	for r, err := range t.scan(nil, nil) {
		if err == nil {
			err = f(BareRow{r.key, r.value})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Write writes rows in one batch, synced.
func (d *Bare) Write(rows []BareRow) error {
	batch := d.badger.NewWriteBatch()
	defer batch.Cancel()
	for _, r := range rows {
		if err := batch.Set(r.Key, r.Value); err != nil {
			return err
		}
	}
	return batch.Flush()
}

// Close closes the database.
func (d *Bare) Close() error { return d.badger.Close() }
