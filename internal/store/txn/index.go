package txn

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// Index is an index of the topics of each source, in its own rows ([keys.Source.Index]). Code that changes, loads or
// checks records calls its functions, and does not depend on its content.
type Index struct {
	Name  string // unique, without a zero byte
	Rules string // the version of its rules: an index of another version is made again

	// Change records that a topic is added (step 1) or removed (step -1).
	Change func(t *Tx, id keys.Source, topic *fragment.Topic, step int) error
	// Collect returns a collector of all topics of a source, which passes the entries for Pack to add, to be sorted by
	// key. For a check, each entry is single, with the key of Stored.
	Collect func(id keys.Source, check bool, add func(key, value []byte) error) Collector
	// Pack returns a packer of these entries, sorted by key, which passes the rows to put.
	Pack func(id keys.Source, put func(key, value []byte) error) Packer
	// Stored iterates over the entries that are stored, in the order of their keys. Rows that are not as they were written
	// have other keys than entries.
	Stored func(t *Tx, id keys.Source) iter.Seq2[kv.Row, error]
}

// Collector takes the topics of a source.
type Collector interface {
	Topic(t *fragment.Topic) error
	Close() error // passes the rest to add
}

// Packer receives the sorted entries of a [Collector].
type Packer interface {
	Add(key, value []byte) error
	Close() error // passes the rest to put
}
