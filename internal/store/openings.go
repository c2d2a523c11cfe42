package store

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/leases"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// The openings of a database are a chain of random ids by which followers detect a restore: an id that they know is
// missing, or an unknown one is among those that they know.
//
// A process that publishes begins one before it serves. In a shared store, an opening identifies a history of it: one
// begins if no process was running, if the database states another history, or if versions go back.

// Opening is one of them.
type Opening struct {
	ID uuid.UUID
	At time.Time
}

// openingsStated is the number of openings that a feed states.
const openingsStated = 8

// openings are kept this long, and so many of them at least.
const (
	keptFor   = 30 * 24 * time.Hour
	keptLeast = 100
)

// openingsRow is the row of the newest openings.
type openingsRow struct {
	Number  uint64   // of the last one
	Newest  []string // their ids, the newest first
	History string   `json:",omitempty"` // of the database, see [kv.Dated]
}

// openingsKey is the key of the row with the newest openings.
var openingsKey = keys.Once(keys.TableOpening)

func readOpenings(t *txn.Tx) (s openingsRow, err error) {
	_, err = t.GetJSON(openingsKey, &s)
	return s, err
}

func openingKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64(keys.Once(keys.TableOpening), number)
}

// openings begins those of a store. It is safe for concurrent use.
type openings struct {
	rows   *txn.DB
	others *leases.Leases
	every  time.Duration // is looked for another history
	began  func()        // is called where another history has begun while this process had it open
	log    *slog.Logger
}

// BeginOpening begins an opening before this process serves its collections.
func (o *openings) BeginOpening(ctx context.Context) error {
	if o.others.Alone() {
		_, err := o.begin(ctx, nil, "", false)
		return err
	}
	known, err := o.known(ctx)
	if err != nil {
		return err
	}
	history, _, err := o.history(ctx)
	if err != nil {
		return err
	}
	if known.Number > 0 && known.History == history {
		if lives, err := o.others.Living(ctx); lives || err != nil {
			return err
		}
	}
	_, err = o.begin(ctx, &known, history, known.Number > 0 && known.History != history)
	return err
}

// publishing is a job of the process that begins an opening, from that commit on. By it, others see that it lives.
const publishing = "publishing"

// WatchHistory begins an opening whenever the store has another history, until ctx ends: the database was restored, or
// another server has taken over. It holds the lease of publishing, or waits for it. It returns if no store is shared.
func (o *openings) WatchHistory(ctx context.Context) {
	if o.others.Alone() {
		return
	}
	var lease sync.WaitGroup
	defer lease.Wait()
	lease.Go(func() { o.others.Lease(ctx, publishing, func(ctx context.Context) { <-ctx.Done() }) })
	due := time.NewTicker(o.every / 2) // each process has seen it after that time
	defer due.Stop()
	for last := o.rows.Lineage(); ; {
		now, err := o.look(ctx, last)
		if err == nil {
			last = now
		} else {
			o.log.Debug("whether the store has another history is not known", "error", err) // users report it
		}
		select {
		case <-ctx.Done():
			return
		case <-o.rows.Turned():
		case <-due.C:
		}
	}
}

// look begins an opening, and with it an era, if the database was reset, or its history differs from that of the newest
// opening. If another process has begun one, too, this process continues in another history.
func (o *openings) look(ctx context.Context, last txn.Lineage) (txn.Lineage, error) {
	known, err := o.known(ctx)
	if err != nil {
		return last, err
	}
	history, writable, err := o.history(ctx)
	if err != nil || !writable {
		return last, err
	}
	now := o.rows.Lineage()
	if now.Back != last.Back || known.History != history {
		begun, err := o.begin(ctx, &known, history, true)
		if err != nil {
			return last, err
		}
		if begun {
			o.log.Warn("the database has another history: it was restored, or another server has taken over; followers are told",
				"history", history)
		}
		if _, err := o.known(ctx); err != nil { // sees the era
			return last, err
		}
		now = o.rows.Lineage()
	}
	if now.Turns != last.Turns {
		o.began()
	}
	return now, nil
}

func (o *openings) known(ctx context.Context) (s openingsRow, err error) {
	err = o.rows.View(ctx, func(t *txn.Tx) (err error) { s, err = readOpenings(t); return err })
	return s, err
}

// history returns the history of the database; "" if the engine knows of none. writable is false if the database lags
// behind.
func (o *openings) history(ctx context.Context) (history string, writable bool, err error) {
	dated, ok := o.rows.Engine.(kv.Dated)
	if !ok {
		return "", true, nil
	}
	history, err = dated.History(ctx)
	return history, history != "", err
}

// begin writes an opening, unless another process has done so since a state was read; nil: in any case. If the database
// has turned to another history, it begins an era.
func (o *openings) begin(ctx context.Context, since *openingsRow, history string, turned bool) (begun bool, err error) {
	err = o.rows.Update(ctx, func(t *txn.Tx) error {
		s, err := readOpenings(t)
		if err != nil {
			return err
		}
		if begun = since == nil || s.Number == since.Number; !begun {
			return nil
		}
		now := Opening{uuid.New(), o.rows.Now().UTC()}
		s.Number++
		s.History = history
		s.Newest = append([]string{now.ID.String()}, s.Newest[:min(len(s.Newest), openingsStated-1)]...)
		if err := t.PutJSON(openingsKey, s); err != nil {
			return err
		}
		if err := t.PutJSON(openingKey(s.Number), now); err != nil {
			return err
		}
		if turned {
			if err := t.Put(kv.EraKey, now.ID[:8]); err != nil {
				return err
			}
		}
		return errors.Join(o.others.Claim(t, publishing), forget(t, s.Number, now.At))
	})
	return begun, err
}

// atOnce is the maximum number of openings that one commit removes.
const atOnce = 1000

// forget removes openings that are not kept any more.
func forget(t *txn.Tx, last uint64, now time.Time) error {
	var old [][]byte
	for r, err := range t.Scan(openingsKey, openingKey(0)) {
		var o Opening
		if err == nil {
			err = txn.Decode(r, &o)
		}
		if err != nil {
			return err
		}
		number := keys.NumberIn(r.Key)
		if number+keptLeast > last || now.Sub(o.At) <= keptFor || len(old) == atOnce {
			break
		}
		old = append(old, openingKey(number))
	}
	for _, k := range old {
		if err := t.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
