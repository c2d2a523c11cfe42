package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
)

// Errors that callers tell apart.
var (
	ErrNotFound = errors.New("store: not found")
	ErrExists   = errors.New("store: exists already")
	ErrGone     = errors.New("store: gone") // was there and is not kept
)

// Collection is a published topic map. The exported fields above the line are
// given when it is created; the store keeps the others.
type Collection struct {
	Name string
	SP   string // source locator prefix
	Settings

	Epoch   uuid.UUID // names the history: a new database has a new one
	Created time.Time
	Head    uint64    // sequence of the last entry; the first is 1
	Updated time.Time // of the last entry; strictly increasing
	Topics  int

	Segments    []Segment `json:",omitempty"` // of the fragments feed; none: all documents have the same size
	Horizon     uint64    `json:",omitempty"` // the sequence up to which the log is pruned
	HorizonTime time.Time // of the last entry that is
	Offers      []Offer   `json:",omitempty"` // how RecordForms have changed
	Changes     *Changes  `json:",omitempty"` // nil: nobody has asked for change lists yet
	Restating   bool      `json:",omitempty"` // records are still to be published by which what is offered of them shows

	Number     uint32
	Generation uint32
}

func (c *Collection) source() sourceID { return sourceID{c.Number, c.Generation} }

// Entry is an entry of the change log: one fragment.
type Entry struct {
	Seq     uint64
	Updated time.Time
	TopicSI fragment.Ref
	Topic   fragment.Ref `json:",omitempty"` // the topic described, where its TopicSI is another
	Title   string
	Deleted bool `json:",omitempty"`
	Stored  bool `json:",omitempty"` // the fragment's bytes are kept; else it is rendered when asked for

	Prior    uint64   `json:",omitempty"` // sequence of the entry of the key before, 0: there was none
	Modified bool     `json:",omitempty"` // the record lived before; else this is its creation
	Digests  []Digest `json:",omitempty"` // of the fragment in each of Forms, where it is stored
	Patches  []Digest `json:",omitempty"` // of the patch from the fragment of Prior, in each of Forms; of no length where there is none
}

// Describes returns the TopicSI of the topic that the entry's fragment describes.
func (e *Entry) Describes() fragment.Ref {
	if e.Topic != "" {
		return e.Topic
	}
	return e.TopicSI
}

// Lives reports whether the key of the entry's TopicSI stands for a topic after it:
// else that is deleted, or goes on under another key.
func (e *Entry) Lives() bool { return !e.Deleted && e.Topic == "" }

// ID returns the identifier of the entry with the sequence: a UUID of version 8
// (RFC 9562 §5.8) made of 74 bits of the epoch and the sequence.
func (c *Collection) ID(seq uint64) uuid.UUID {
	id := c.Epoch
	id[6] = 0x80 | id[6]&0x0F
	for i := range 6 {
		id[15-i] = byte(seq >> (8 * i))
	}
	return id
}

// Seq is the inverse of ID. It returns 0 where the id is none of the collection.
func (c *Collection) Seq(id uuid.UUID) uint64 {
	var seq uint64
	for _, b := range id[10:] {
		seq = seq<<8 | uint64(b)
	}
	if c.ID(seq) != id || seq > c.Head {
		return 0
	}
	return seq
}

func getCollection(t *tx, name string) (*Collection, error) {
	var c Collection
	ok, err := t.getJSON(nameKey(tableCollection, name), &c)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: collection %q", ErrNotFound, name)
	}
	return &c, nil
}

func (t *tx) putCollection(c *Collection) error {
	return t.putJSON(nameKey(tableCollection, c.Name), c)
}

// Collections returns all collections by name.
func (db *DB) Collections() ([]Collection, error) {
	var all []Collection
	err := db.viewing(func(t *tx) error {
		for r, err := range t.scan([]byte{tableCollection}, nil) {
			if err != nil {
				return err
			}
			var c Collection
			if err := json.Unmarshal(r.value, &c); err != nil {
				return err
			}
			all = append(all, c)
		}
		return nil
	})
	return all, err
}

// nextNumber returns a number that neither a source nor a generation of a
// subscription has had.
func (db *DB) nextNumber() (uint32, error) {
	var n uint32
	err := db.update(func(t *tx) error {
		if _, err := t.getJSON(metaKey("next"), &n); err != nil {
			return err
		}
		n++
		return t.putJSON(metaKey("next"), n)
	})
	return n, err
}

// CreateCollection publishes a map that was not there before, with an entry for
// each topic. It shows all at once, when it is whole. A collection of the name
// that exists already is ErrExists.
func (db *DB) CreateCollection(ctx context.Context, c Collection, src fragment.Source, progress func(records int)) (*Collection, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.DocumentSize == 0 {
		c.DocumentSize = 100
	}
	err := db.viewing(func(t *tx) error { return absent(t, c.Name) })
	if err != nil {
		return nil, err
	}
	if c.Number, err = db.nextNumber(); err != nil {
		return nil, err
	}
	c.Generation = 1
	c.Epoch = uuid.New()
	c.Created = db.now().UTC().Truncate(time.Microsecond)
	c.Updated = c.Created
	err = db.load(ctx, c.source(), fragment.Records(src), func(l Loading) {
		if progress != nil && l.Rows == 0 {
			progress(l.Records)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := db.loadLog(ctx, &c, src); err != nil {
		return nil, err
	}
	err = db.update(func(t *tx) error {
		if err := absent(t, c.Name); err != nil {
			return err
		}
		return t.putCollection(&c)
	})
	if err != nil {
		return nil, err
	}
	return &c, nil
}

func absent(t *tx, name string) error {
	_, err := getCollection(t, name)
	switch {
	case err == nil:
		return fmt.Errorf("%w: collection %q", ErrExists, name)
	case errors.Is(err, ErrNotFound):
		return nil
	}
	return err
}

// loadLog writes the first entries of a collection that nothing shows yet.
func (db *DB) loadLog(ctx context.Context, c *Collection, src fragment.Source) error {
	batch := db.badger.NewWriteBatch()
	defer batch.Cancel()
	for t, err := range src.Topics() {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.Topics++
		e := c.next(db.now(), fragment.Entry{TopicSI: t.TopicSI(), Topic: t.TopicSI(), Title: t.Title()})
		if err := logRows(c, &e, nil, batch.Set); err != nil {
			return err
		}
	}
	return batch.Flush()
}
