package collections

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
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
	Run     uint32    `json:",omitempty"` // of the last entry, see [Entry]
	Topics  int

	Beginning *Beginning `json:",omitempty"` // the first entries, where they were loaded
	Segments  []Segment  `json:",omitempty"` // of the fragments feed; none: all documents have the same size
	// the first commit from which on former records are kept (package past)
	Remembered  uint64    `json:",omitempty"`
	Horizon     uint64    `json:",omitempty"` // the sequence up to which the log is pruned
	HorizonTime time.Time // of the last entry that is
	HorizonRun  uint32    `json:",omitempty"` // of that entry
	Offers      []Offer   `json:",omitempty"` // how RecordForms have changed
	RDFAfter    Turns     `json:",omitempty"` // which entries are offered in RDF
	Omits       Turns     `json:",omitempty"` // which entries leave the instances out
	Hashed      uint64    `json:",omitempty"` // how many entries the tree of the log has; all where Sign is set
	Restating   bool      `json:",omitempty"` // records are still to be published by which what is offered of them shows

	Former []string `json:",omitempty"` // the names that it had and that lead to it

	Owner  *Owner `json:",omitempty"` // what alone publishes it; nil: all who may write
	Hidden bool   `json:",omitempty"` // it is not whole yet, and must not be read

	Leaving *Leaving `json:",omitempty"` // nil: it does not move to another server

	// DerivedFrom names the collections and subscriptions of this node that it merges; none: it is not derived.
	DerivedFrom []string `json:",omitempty"`
	Filter      *Filter  `json:",omitempty"` // of what it is derived from; nil: all passes
	Inputs      []Input  `json:",omitempty"` // what the names mean; none: they are bound by the next update

	Number     uint32
	Generation uint32

	Replica *Replica `json:",omitempty"` // nil: the collection is written here
}

// Replica holds the data of a collection that serves the content of a subscription. Its log equals that of the origin,
// entry by entry: the epoch, the sequences and the runs are the origin's.
type Replica struct {
	Origin  string      // URL of the fragments feed of the subscription's authority
	Records keys.Source // the generation of the subscription's source
	Partial bool        `json:",omitempty"` // the origin did not keep the beginning of its log any more

	// Checkpoint is the origin's last checkpoint of a state of the log, as a signed note, and Key the public key of its
	// signature. Both are "" if there is none.
	Checkpoint, Key string `json:",omitempty"`
}

// SourceKey names the records of the published map.
func (c *Collection) SourceKey() keys.Source {
	if c.Replica != nil {
		return c.Replica.Records
	}
	return keys.Source{Number: c.Number, Generation: c.Generation}
}

// Log identifies the rows of the collection besides the records of the map. A replica has a new one for each log made
// of its origin's.
func (c *Collection) Log() keys.Source {
	if c.Replica != nil {
		return keys.Source{Number: c.Number, Generation: c.Generation}
	}
	return keys.Own(c.Number)
}

// Digest returns the text of the digest of the state.
func (c *Collection) Digest(t *txn.Tx) (string, error) {
	d, err := records.In(t, c.SourceKey()).Digest()
	return d.String(), err
}

// Get returns the collection with a name. It returns txn.ErrNotFound, or a [*FormerError] for a former name, and in an
// update a [*LeavingError] for a collection that moves.
func Get(t *txn.Tx, name string) (*Collection, error) {
	c, err := Read(t, name)
	if err == nil && t.Changing() && c.Leaving != nil {
		err = &LeavingError{name}
	}
	return c, err
}

// Read is Get, also in updates of a collection that moves.
func Read(t *txn.Tx, name string) (*Collection, error) {
	found, err := Find(t, name)
	if err != nil {
		return nil, err
	}
	return Decode(&found)
}

// Find returns the row of the collection with a name, with the errors of [Get].
func Find(t *txn.Tx, name string) (found records.Named, err error) {
	// A change of a collection needs both rows.
	if err := t.Expect([][]byte{keys.Name(keys.TableCollection, name), keys.Name(keys.TableInput, name)},
		nil); err != nil {
		return found, err
	}
	found, err = records.Find(t, keys.TableCollection, name)
	if found.Row != nil || err != nil {
		return found, err
	}
	f, err := former(t, name)
	switch {
	case f != nil:
		err = f
	case err == nil:
		err = fmt.Errorf("%w: collection %q", txn.ErrNotFound, name)
	}
	return found, err
}

// Decode returns the collection of a row.
func Decode(found *records.Named) (*Collection, error) {
	var c Collection
	return &c, found.Decode(keys.TableCollection, &c, func() string { return c.Name })
}

// Put writes the row of a collection.
func Put(t *txn.Tx, c *Collection) error {
	return records.PutNamed(t, keys.TableCollection, c.Name, c.Number, c)
}

// All returns all collections by name.
func All(t *txn.Tx) ([]Collection, error) { return records.ListAs(t, keys.TableCollection, Decode) }

// BeginEpochs gives each collection a new epoch, except replicas, whose history is the origin's. It returns the new
// epochs by the former ones.
func BeginEpochs(t *txn.Tx) (map[uuid.UUID]uuid.UUID, error) {
	epochs := map[uuid.UUID]uuid.UUID{}
	all, err := All(t)
	for i := range all {
		c := &all[i]
		if c.Replica != nil {
			continue
		}
		before := c.Epoch
		c.Epoch = uuid.New()
		epochs[before] = c.Epoch
		err = errors.Join(err, Put(t, c))
	}
	return epochs, err
}
