package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/loads"
	"github.com/tmshare/tmshare/internal/store/moving"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// A collection moves to the store of another server in five commits, by turns at the source and at the target:
//
//	source  depart  it is not written any more
//	target  arrive  all its rows are there, under a number that no name leads to
//	source  left    it does not become writable here again
//	target  admit   it is read and written there
//	source  gone    it is removed here
//
// Each is done once, however often it is asked for. So after any crash at most one of the two can be written, and the
// one that goes on is whole.

type (
	// Leaving is the state of a collection that moves to another server.
	Leaving = collections.Leaving
	// Arrival is a collection that comes from another server.
	Arrival = collections.Arrival
)

// DepartCollection begins to move a collection to the store of the server at an address. It returns the collection.
func (db *DB) DepartCollection(ctx context.Context, name, to string) (*Collection, error) {
	return db.transfer(ctx, name, func(t *txn.Tx, c *Collection) error {
		switch {
		case c.Leaving != nil && c.Leaving.To == to:
			return nil
		case c.Leaving != nil:
			return txn.Refuse(http.StatusConflict, "%s is being moved to %s already: end that first (--cancel)", name,
				c.Leaving.To)
		case len(c.DerivedFrom) > 0 || c.Owner != nil || c.Hidden:
			return txn.Refuse(http.StatusConflict, "%s is derived, and what it is derived from is here: derive it there anew",
				name)
		}
		if err := errors.Join(c.Bound(db.settings), c.Writable()); err != nil {
			return err
		}
		numbers, err := derived.DerivedFrom(t, name)
		if err == nil && len(numbers) > 0 {
			err = txn.Refuse(http.StatusConflict, "another collection is derived from %s: delete that first", name)
		}
		if err != nil {
			return err
		}
		c.Leaving = &Leaving{Move: uuid.New(), To: to, At: db.now().UTC()}
		return collections.Put(t, c)
	})
}

// KeepCollection ends a move: the collection is written here as before. If the other server has all of it, the error is
// a conflict, unless it was lost there.
func (db *DB) KeepCollection(ctx context.Context, name string, move uuid.UUID, lost bool) (*Collection, error) {
	return db.transfer(ctx, name, func(t *txn.Tx, c *Collection) error {
		if c.Leaving == nil {
			return nil
		}
		if c.Leaving.Move != move || c.Leaving.Left && !lost {
			return txn.Refuse(http.StatusConflict, "%s is on the other server already: run the move again, which completes it",
				name)
		}
		c.Leaving = nil
		return collections.Put(t, c)
	})
}

// LeaveCollection notes that the other server has all of a collection. It is never written here again.
func (db *DB) LeaveCollection(ctx context.Context, name string, move uuid.UUID) (*Collection, error) {
	return db.transfer(ctx, name, func(t *txn.Tx, c *Collection) error {
		if err := moves(c, move); err != nil || c.Leaving.Left {
			return err
		}
		c.Leaving.Left = true
		return collections.Put(t, c)
	})
}

// moves checks that a collection is in a move.
func moves(c *Collection, move uuid.UUID) error {
	if c.Leaving == nil || c.Leaving.Move != move {
		return txn.Refuse(http.StatusConflict, "the move of %s was ended meanwhile: begin it anew", c.Name)
	}
	return nil
}

func (db *DB) transfer(ctx context.Context, name string, change func(*txn.Tx, *Collection) error) (*Collection, error) {
	var c *Collection
	err := db.rows.Update(ctx, func(t *txn.Tx) (err error) {
		if c, err = collections.Read(t, name); err != nil {
			return err
		}
		return change(t, c)
	})
	return c, err
}

// RemoveLeft removes a collection that is at the other server, where it was admitted.
func (db *DB) RemoveLeft(ctx context.Context, name string, move uuid.UUID) error {
	return db.rows.View(ctx, func(*txn.Tx) error { // Close waits for all of it
		c, err := db.transfer(ctx, name, func(t *txn.Tx, c *Collection) error {
			if err := moves(c, move); err != nil {
				return err
			}
			if !c.Leaving.Left {
				return txn.Refuse(http.StatusConflict, "%s is not on the other server yet", name)
			}
			return errors.Join(records.Unname(t, keys.TableCollection, name, c.Number),
				c.Leave(t, Former{Name: name, At: db.now().UTC(), Moved: &c.Epoch}))
		})
		former, is := errors.AsType[*FormerError](err)
		if is && former.Moved != nil { // done before
			return nil
		}
		if err != nil {
			return err
		}
		return db.removeDeleted(ctx, c)
	})
}

// Departure is a state of a collection that moves.
type Departure struct {
	Arrival // as the other server gets it
	db      *DB
	tx      *txn.Tx
}

// ReadDeparture calls f with a collection in a move.
func (db *DB) ReadDeparture(ctx context.Context, name string, move uuid.UUID, f func(*Departure) error) error {
	return db.rows.View(ctx, func(t *txn.Tx) error {
		c, err := collections.Read(t, name)
		if err == nil {
			err = moves(c, move)
		}
		if err != nil {
			return err
		}
		former, err := c.FormerNames(t)
		if err != nil {
			return err
		}
		c.Leaving = nil
		return f(&Departure{Arrival{Move: move, Collection: *c, Former: former}, db, t})
	})
}

// Rows iterates over the rows of the collection without its own row and the indexes, which are made anew. Keys lack the
// number. A row is valid until the next one.
func (d *Departure) Rows() iter.Seq2[Row, error] { return rowsToMove(d.tx, d.Collection.Number) }

func rowsToMove(t *txn.Tx, number uint32) iter.Seq2[Row, error] {
	own := keys.Own(number).Key(keys.TableCollection)
	return seq.Map(t.ScanInPlace(keys.Space(number), nil), func(r row) (row, error) {
		if err := t.Context().Err(); err != nil {
			return r, err
		}
		if bytes.Equal(r.Key, own) || keys.Table(r.Key) == keys.TableIndex {
			return r, seq.ErrSkip
		}
		return row{Key: r.Key[len(keys.Space(number)):], Value: r.Value}, nil
	})
}

// areasOf are the prefixes of the names of the files of a collection.
func areasOf(c *Collection) (prefixes []string) {
	for _, area := range files.Areas {
		prefixes = append(prefixes, area+"/"+c.Epoch.String()+"/")
	}
	return prefixes
}

// Files calls f with each file of the collection. Those that are lost are lost at the target, too, and made again.
func (d *Departure) Files(f func(name string, file files.File) error) error {
	ctx, from := d.tx.Context(), files.In(d.db.files, d.tx.Reader())
	for _, prefix := range areasOf(&d.Collection) {
		all, err := files.All(ctx, from, prefix)
		for i := range all {
			var file files.File
			if err == nil {
				file, err = from.Open(ctx, all[i].Name)
			}
			if err == nil {
				err = errors.Join(f(all[i].Name, file), file.Close())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Arrivals returns the collections that have arrived, and were not admitted.
func (db *DB) Arrivals(ctx context.Context) (all []Arrival, err error) {
	err = db.rows.View(ctx, func(t *txn.Tx) error { all, err = collections.Arrivals(t); return err })
	return all, err
}

// Standing is what a store has of a collection that moves. A nil epoch is that of no collection.
type Standing struct {
	Store   uuid.UUID  `json:"store"`
	BaseURL string     `json:"baseURL"`           // of its server
	Epoch   *uuid.UUID `json:"epoch,omitempty"`   // of the collection with the name
	Leaving *Leaving   `json:"leaving,omitempty"` // its state, if it moves
	Moved   *uuid.UUID `json:"moved,omitempty"`   // the epoch of one that was moved to another server
	Arrived *uuid.UUID `json:"arrived,omitempty"` // the epoch of one that has arrived, and is not shown
	Move    *uuid.UUID `json:"move,omitempty"`    // by which it has arrived
}

// StandingOf returns what the store has of a collection. A [*FormerError] is the error for one that was renamed.
func (db *DB) StandingOf(ctx context.Context, name string) (*Standing, error) {
	s := &Standing{Store: db.node}
	return s, db.rows.View(ctx, func(t *txn.Tx) error {
		a, err := collections.ArrivalOf(t, name)
		if err != nil {
			return err
		}
		if a != nil {
			s.Arrived, s.Move = &a.Collection.Epoch, &a.Move
		}
		c, err := collections.Read(t, name)
		former, is := errors.AsType[*FormerError](err)
		if is && former.To != "" {
			return err
		}
		if is {
			s.Moved = former.Moved
		}
		if err == nil {
			s.Epoch, s.Leaving = &c.Epoch, c.Leaving
		}
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return err
	})
}

// Arrive keeps the rows of a collection that comes from another server. rest is called after the last row: it returns
// the digest of the rows at the source, as [moving.Sum] has it. Rows that differ are an error. If the move has arrived
// already, nothing is changed.
func (db *DB) Arrive(ctx context.Context, a Arrival, rows iter.Seq2[Row, error],
	rest func() (sum string, err error)) error {
	c := &a.Collection
	arrivable := func(t *txn.Tx) (before *Arrival, err error) {
		before, err = collections.ArrivalOf(t, c.Name)
		if err != nil || before != nil { // a move that was ended: its source is the same
			return before, err
		}
		for _, name := range append([]string{c.Name}, c.Former...) {
			_, missing := collections.Read(t, name)
			if former, is := errors.AsType[*FormerError](missing); is && former.To == "" { // it may come back
				continue
			}
			err = errors.Join(err, absent(t, name, c.Name))
		}
		return nil, err
	}
	err := c.Bound(db.settings)
	if err == nil {
		err = db.rows.View(ctx, func(t *txn.Tx) error { _, err := arrivable(t); return err })
	}
	if err != nil {
		return err
	}
	load, err := loads.Begin(ctx, db.rows, db.now)
	if err != nil {
		return err
	}
	c.Number, c.Leaving = load.Number, nil
	var obsolete uint32
	if err = db.copyRows(ctx, c, rows, rest); err == nil {
		err = db.rows.Update(load.Naming(ctx), func(t *txn.Tx) error {
			before, err := arrivable(t)
			switch {
			case err != nil:
				return err
			case before != nil && before.Move == a.Move:
				return errArrived
			case before != nil && before.Collection.Epoch != c.Epoch:
				return fmt.Errorf("%w: another collection %q is being moved here", ErrNameTaken, c.Name)
			case before != nil:
				obsolete = before.Collection.Number
			}
			return a.Put(t)
		})
	}
	err = load.End(ctx, err, func() error { return db.deleteRows(ctx, c) })
	if errors.Is(err, errArrived) {
		return nil
	}
	if err == nil && obsolete > 0 {
		err = records.DeleteSpace(ctx, db.rows.Engine, obsolete)
	}
	return err
}

var errArrived = errors.New("another request has brought it meanwhile")

// copyRows writes the rows of a collection that nothing names, and compares them with their digest.
func (db *DB) copyRows(ctx context.Context, c *Collection, rows iter.Seq2[Row, error],
	rest func() (string, error)) error {
	space := keys.Space(c.Number)
	err := moving.Load(ctx, db.rows.Engine, seq.Map(rows, func(r row) (row, error) {
		if len(r.Key) < keys.SourceSize-len(space) {
			return r, txn.Refuse(http.StatusBadRequest, "%x is the key of no row", r.Key)
		}
		return row{Key: append(binary.BigEndian.AppendUint32(nil, c.Number), r.Key...), Value: r.Value}, nil
	}))
	if err != nil {
		return err
	}
	want, err := rest()
	if err != nil {
		return err
	}
	got := moving.NewSum()
	err = db.rows.View(ctx, func(t *txn.Tx) error {
		return seq.Each(rowsToMove(t, c.Number), func(r row) error { got.Add(r); return nil })
	})
	if err == nil && got.String() != want {
		err = txn.Refuse(http.StatusBadRequest, "the rows that have come are not those of the source (%s, not %s): try again",
			got, want)
	}
	if err != nil {
		return err
	}
	return db.makeIndexesOf(ctx, c.SourceKey())
}

// TakeFile begins a file of a collection that arrives.
func (db *DB) TakeFile(ctx context.Context, c *Collection, name string) (files.Writer, error) {
	for _, prefix := range areasOf(c) {
		if rest, is := strings.CutPrefix(name, prefix); is && rest != "" {
			return db.files.Create(ctx, name)
		}
	}
	return nil, txn.Refuse(http.StatusBadRequest, "%q is no file of the collection", name)
}

// Admit shows a collection that has arrived. It is read and written here from then on. If it was admitted before, as
// its epoch shows, nothing is changed.
func (db *DB) Admit(ctx context.Context, name string, move, epoch uuid.UUID) error {
	return db.rows.Update(ctx, func(t *txn.Tx) error {
		a, err := collections.ArrivalOf(t, name)
		if err != nil {
			return err
		}
		if a != nil && a.Move == move {
			subscription, err := t.Get(keys.Name(keys.TableSubscription, name))
			if err == nil && subscription != nil {
				err = fmt.Errorf("%w: a subscription has it: end that, and run the move again", ErrNameTaken)
			}
			if err != nil {
				return err
			}
			return a.Admit(t)
		}
		c, err := collections.Read(t, name)
		former, is := errors.AsType[*FormerError](err)
		if err == nil && c.Epoch == epoch || is && former.Moved != nil && *former.Moved == epoch {
			return nil
		}
		if err == nil || errors.Is(err, ErrNotFound) {
			err = txn.Refuse(http.StatusConflict, "the other server has no collection %s of this move", name)
		}
		return err
	})
}

// DropArrival removes a collection that has arrived by a move, and was not admitted.
func (db *DB) DropArrival(ctx context.Context, name string, move uuid.UUID) error {
	var number uint32
	err := db.rows.Update(ctx, func(t *txn.Tx) error {
		number = 0
		a, err := collections.ArrivalOf(t, name)
		if a == nil || a.Move != move || err != nil {
			return err
		}
		number = a.Collection.Number
		return a.Drop(t)
	})
	if err != nil || number == 0 {
		return err
	}
	return records.DeleteSpace(ctx, db.rows.Engine, number)
}
