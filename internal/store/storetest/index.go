package storetest

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Index is an index with a row for each topic, which has its title.
var Index = txn.Index{
	Name: "titles", Rules: "1",
	Change: func(t *txn.Tx, id keys.Source, topic *fragment.Topic, step int) error {
		if step < 0 {
			return t.Delete(indexKey(id, topic))
		}
		return t.Put(indexKey(id, topic), []byte(topic.Title()))
	},
	Collect: func(id keys.Source, _ bool, add func(key, value []byte) error) txn.Collector {
		return indexing{id, add}
	},
	Pack: func(id keys.Source, put func(key, value []byte) error) txn.Packer { return indexing{id, put} },
	Stored: func(t *txn.Tx, id keys.Source) iter.Seq2[kv.Row, error] {
		return t.ScanInPlace(id.Index("titles"), nil)
	},
}

func indexKey(id keys.Source, topic *fragment.Topic) []byte {
	return append(id.Index("titles"), topic.TopicSI()...)
}

type indexing struct {
	id   keys.Source
	give func(key, value []byte) error
}

func (i indexing) Topic(t *fragment.Topic) error { return i.give(indexKey(i.id, t), []byte(t.Title())) }
func (i indexing) Add(key, value []byte) error   { return i.give(key, value) }
func (i indexing) Close() error                  { return nil }
