package records

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/agree"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Loader loads records into new generations of sources.
type Loader struct {
	Engine  kv.Engine
	Scratch string       // path of a folder for temporary files, which need not exist
	Ready   func() error // is called every 1,000 records; its error ends the load
	Memory  int          // for sorting rows, in bytes; 0: the default
	Indexes []txn.Index
}

// Loading is the progress of a load. First all records are read and their rows sorted; then the rows are stored.
type Loading struct {
	Records      int // read so far
	Stored, Rows int // stored rows, and all rows; 0 while records are read
}

// Load writes records, each once, into a new generation. It uses no single transaction: a generation is invisible until
// a commit switches to it, and opening the database removes one that was never switched to. progress, if not nil, is
// called every 1,000 records or rows. Memory does not grow with the number of records, because rows are sorted through
// a file in Scratch.
func (o Loader) Load(ctx context.Context, id keys.Source, records iter.Seq2[fragment.Record, error],
	progress func(Loading)) error {
	l := o.loading(id)
	if progress != nil {
		l.progress = progress
	}
	return errors.Join(l.load(ctx, records), l.close())
}

func (o Loader) loading(id keys.Source) *loading {
	l := &loading{Loader: o, derived: newDerived(id, o.file(id), o.Memory, o.Indexes, false)}
	l.progress = func(Loading) {}
	return l
}

// file returns the path of the file for sorting the rows of a source.
func (o Loader) file(id keys.Source) string {
	return filepath.Join(o.Scratch, fmt.Sprintf("%d-%d", id.Number, id.Generation))
}

// Ordered writes rows in the order of their keys, in a few ascending runs. Badger writes large amounts in such runs
// once. It writes rows in other orders several times, with much memory.
type Ordered struct {
	Bulk   kv.Writer
	Sorter *extsort.Sorter
	Table  byte // the table whose rows are written directly while their keys ascend

	last []byte // the last key that was written at once
}

// Put writes a row at once, or has it sorted.
func (o *Ordered) Put(key, value []byte) error {
	if keys.Table(key) == o.Table && bytes.Compare(key, o.last) > 0 {
		o.last = key
		return o.Bulk.Put(key, value)
	}
	return o.Sorter.Add(key, value)
}

// Ordered returns a writer for rows of a source. Most rows of the table should come sorted. The caller closes its
// sorter.
func (o Loader) Ordered(id keys.Source, bulk kv.Writer, table byte) *Ordered {
	file := filepath.Join(o.Scratch, fmt.Sprintf("%d-%d-%c", id.Number, id.Generation, table))
	return &Ordered{Bulk: bulk, Table: table, Sorter: &agree.New(file, o.Memory, nil).Sorter}
}

// Commit writes the sorted rows, and commits.
func (o *Ordered) Commit() error {
	put := func(r extsort.Row) error { return o.Bulk.Put(r.Key, r.Value) }
	if err := seq.Each(o.Sorter.Sorted(), put); err != nil {
		return err
	}
	return o.Bulk.Commit()
}

// loading writes the rows of a new generation.
type loading struct {
	Loader
	*derived
	bulk     kv.Writer
	progress func(Loading)
	read     int // records
}

func (l *loading) load(ctx context.Context, records iter.Seq2[fragment.Record, error]) error {
	var err error
	if l.bulk, err = l.Engine.Bulk(ctx); err != nil {
		return err
	}
	defer l.bulk.Cancel()
	// the topics of a snapshot are sorted
	l.topicRow = (&Ordered{Bulk: l.bulk, Sorter: &l.sorter.Sorter, Table: keys.TableTopic}).Put
	if err := l.sort(ctx, records); err != nil {
		return err
	}
	return l.store(ctx)
}

// sort reads all records and gives their rows to the sorter.
func (l *loading) sort(ctx context.Context, records iter.Seq2[fragment.Record, error]) error {
	for r, err := range readAhead(ctx, records) {
		if err == nil && l.read%1000 == 0 {
			err = cmp.Or(context.Cause(ctx), l.Ready())
		}
		if err == nil {
			err = l.add(r)
		}
		if err != nil {
			return err
		}
		if l.read++; l.read%1000 == 0 {
			l.progress(Loading{Records: l.read})
		}
	}
	return l.finish()
}

func (l *loading) add(r fragment.Record) (err error) {
	if r.Topic != nil {
		err = topicFollows(l.id, r.Topic, fragment.MarshalTopic(r.Topic), l)
	}
	if r.Association != nil && err == nil {
		err = associationFollows(l.id, r.Association, fragment.MarshalAssociation(r.Association), l)
	}
	return err
}

// store writes the sorted rows, and commits.
func (l *loading) store(ctx context.Context) error {
	l.mentions = nil
	stored := 0
	err := l.write(seq.Map(l.sorter.All(), func(r row) (_ row, err error) {
		if stored++; stored%1000 == 0 {
			err = context.Cause(ctx)
			l.progress(Loading{Records: l.read, Stored: stored, Rows: l.sorter.Count()})
		}
		return r, err
	}), l.bulk.Put)
	if err != nil {
		return err
	}
	return l.bulk.Commit()
}
