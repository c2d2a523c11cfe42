package txn

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// Index is an index of the topics of each source, in rows of its own ([keys.Source.Index]). What changes records, loads
// them or checks them calls its functions, and knows nothing else of it.
type Index struct {
	Name  string // unique, without a zero byte
	Rules string // by which it is made: an index that was made by others is made anew

	// Change notes that a topic comes, where step is 1, or goes, where it is -1.
	Change func(t *Tx, id keys.Source, topic *fragment.Topic, step int) error
	// Collect returns what takes all topics of a source, and gives add what Pack makes rows of, to be sorted by its keys.
	// For a check each entry is one of its own, with the key that Stored gives it.
	Collect func(id keys.Source, check bool, add func(key, value []byte) error) Collector
	// Pack returns what takes that in the order of keys, and gives put the rows.
	Pack func(id keys.Source, put func(key, value []byte) error) Packer
	// Stored iterates over the entries that are stored, in the order of their keys. Rows that are not as they were written
	// have other keys than entries.
	Stored func(t *Tx, id keys.Source) iter.Seq2[kv.Row, error]
}

// Collector takes the topics of a source.
type Collector interface {
	Topic(t *fragment.Topic) error
	Close() error // gives what is left
}

// Packer takes what a [Collector] has given, sorted.
type Packer interface {
	Add(key, value []byte) error
	Close() error // puts what is left
}
