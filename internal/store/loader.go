package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tmshare/tmshare/fragment"
)

// load writes all records of src into a new generation, in no single
// transaction: nothing shows a generation until a commit switches to it, and one
// that nothing switched to is removed when the database is opened. progress, if
// not nil, is told from time to time how many records are written.
func (db *DB) load(ctx context.Context, id sourceID, src fragment.Source, progress func(records int)) error {
	batch := db.badger.NewWriteBatch()
	defer batch.Cancel()
	mentions := map[fragment.Ref]uint64{}
	mention := func(ref fragment.Ref) { mentions[ref]++ }
	written := 0
	step := func() error {
		if written++; progress != nil && written%1000 == 0 {
			progress(written)
		}
		return ctx.Err()
	}
	for t, err := range src.Topics() {
		if err != nil {
			return err
		}
		if err := topicRows(id, t, batch.Set); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		t.Mentions(mention)
		if err := step(); err != nil {
			return err
		}
	}
	for a, err := range src.Associations() {
		if err != nil {
			return err
		}
		if err := associationRows(id, a, batch.Set); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		a.Mentions(mention)
		if err := step(); err != nil {
			return err
		}
	}
	for ref, n := range mentions {
		if err := batch.Set(id.locatorKey(tableMentions, ref), binary.BigEndian.AppendUint64(nil, n)); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if err := batch.Flush(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
