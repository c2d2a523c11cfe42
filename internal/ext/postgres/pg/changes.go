package pg

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tmshare/tmshare/internal/kv"
)

// changes are the last of each key. A nil value removes the row.
type changes struct {
	values map[string][]byte
	size   int // of keys and values, in bytes
}

// The limits of changes in memory, in rows and bytes, after which a writer sends them.
const (
	maxChanges     = 5000
	maxChangeBytes = 4 << 20
)

// add adds a change, and reports whether a limit is reached.
func (c *changes) add(key, value []byte) (full bool) {
	if c.values == nil {
		c.values = map[string][]byte{}
	}
	c.values[string(key)] = value
	c.size += len(key) + len(value)
	return len(c.values) >= maxChanges || c.size >= maxChangeBytes
}

// put checks a row and adds it.
func (c *changes) put(ctx context.Context, key, value []byte) (full bool, err error) {
	if err := errors.Join(context.Cause(ctx), kv.CheckRow(key, value)); err != nil {
		return false, err
	}
	if value == nil {
		value = empty
	}
	return c.add(key, value), nil
}

// remove checks a key and adds the removal of its row.
func (c *changes) remove(ctx context.Context, key []byte) (full bool, err error) {
	if err := errors.Join(context.Cause(ctx), kv.CheckKey(key)); err != nil {
		return false, err
	}
	return c.add(key, nil), nil
}

func (c *changes) clear() { *c = changes{} }

const (
	upsert = `INSERT INTO tm_rows (head, hash, tail, value) SELECT head, coalesce(hash, ''), coalesce(tail, ''), value
		FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[]) AS k (head, hash, tail, value)
			ON CONFLICT (head, hash) DO UPDATE SET value = excluded.value`
	remove = `DELETE FROM tm_rows WHERE (head, hash) IN (SELECT head, coalesce(hash, '')
		FROM unnest($1::bytea[], $2::bytea[]) AS k (head, hash))`
)

// columns are rows as the database takes them: one list for each column.
type columns struct{ heads, hashes, tails, values [][]byte }

func (c *columns) add(key string, value []byte) {
	head, tail := split([]byte(key))
	c.heads, c.hashes, c.tails, c.values = append(c.heads, head), append(c.hashes, hashOf(tail)), append(c.tails, tail),
		append(c.values, value)
}

// sorted returns the rows to put and to remove, both in the order of keys, so that two transactions on the same rows
// cannot deadlock.
func (c *changes) sorted() (put, gone columns) {
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		if value := c.values[key]; value != nil {
			put.add(key, value)
		} else {
			gone.add(key, nil)
		}
	}
	return put, gone
}

// queue adds the statements that make the changes.
func (c *changes) queue(to *pgx.Batch) {
	put, gone := c.sorted()
	if len(put.heads) > 0 {
		to.Queue(upsert, byteas(put.heads), withoutEmpty(put.hashes), withoutEmpty(put.tails), byteas(put.values))
	}
	if len(gone.heads) > 0 {
		to.Queue(remove, byteas(gone.heads), withoutEmpty(gone.hashes))
	}
}
