// Package consumers stores the consumers outside of the store that read the changes of collections and subscriptions,
// with their positions. The rows are among the names, so commits that begin to keep former records of a source, and
// those that add a consumer of it, conflict.
package consumers

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Consumer reads the changes of a source.
type Consumer struct {
	Name   string // unique in the store
	Source string // the name of the collection or subscription
	Number uint32 // of the source that the cursor is of
	past.Cursor
	// Kept is the consumer's data, opaque to the store.
	Kept json.RawMessage `json:",omitempty"`
	// WithSource states that it is removed with the subscription that it reads.
	WithSource bool `json:",omitempty"`
}

func key(name string) []byte { return keys.Name(keys.TableConsumer, name) }

// Get returns the consumer with a name. The error is [txn.ErrNotFound] if there is none.
func Get(t *txn.Tx, name string) (*Consumer, error) {
	var c Consumer
	ok, err := t.GetJSON(key(name), &c)
	if err == nil && !ok {
		err = fmt.Errorf("%w: consumer %q", txn.ErrNotFound, name)
	}
	return &c, err
}

// Put writes the row of a consumer.
func Put(t *txn.Tx, c *Consumer) error { return t.PutJSON(key(c.Name), c) }

// Delete removes the row of a consumer. Later commits of its source remove the records kept for it.
func Delete(t *txn.Tx, name string) error { return t.Delete(key(name)) }

// All returns all consumers by name.
func All(t *txn.Tx) ([]Consumer, error) {
	return txn.List[Consumer](t, keys.Once(keys.TableConsumer), nil)
}

// Oldest returns the number of the last commit that all consumers of a source have read. It ignores consumers of
// another generation, because they start again; without others it returns upTo. wanted reports whether there is any
// consumer.
func Oldest(t *txn.Tx, id keys.Source, upTo uint64) (commit uint64, wanted bool, err error) {
	all, err := All(t)
	commit = upTo
	for _, c := range all {
		if c.Number != id.Number {
			continue
		}
		wanted = true
		if c.Generation == id.Generation {
			commit = min(commit, c.Commit)
		}
	}
	return commit, wanted, err
}

// Rename has the consumers of a source know it by its new name.
func Rename(t *txn.Tx, number uint32, to string) error {
	all, err := All(t)
	for _, c := range all {
		if c.Number == number {
			c.Source = to
			err = errors.Join(err, Put(t, &c))
		}
	}
	return err
}
