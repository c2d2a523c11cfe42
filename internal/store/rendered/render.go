package rendered

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/records"
)

// Renderer renders the entries of a collection.
type Renderer struct {
	Form    fragment.Form // how the records are written; the version is the one that is stored
	Digests bool          // of the record forms are wanted
}

// render returns the data of an entry as src has it now, or nil if all of it is too large to
// store, and how many bytes were written. The record form of one that is rendered late, after its
// entry was published, has only what cannot have changed since.
func (r Renderer) render(src fragment.Source, e *fragment.Entry, late bool) (f *Fragment, written int, err error) {
	record, whole := plains.Get().(*limitedBuffer), plains.Get().(*limitedBuffer)
	defer plains.Put(record)
	defer plains.Put(whole)
	form := r.Form
	form.Version = stored
	ofRecord := form
	ofRecord.OmitInstances, ofRecord.ContentOnly = true, late
	storable, err := record.write(e, src, ofRecord)
	if !storable || err != nil {
		return nil, record.Len(), err
	}
	f = &Fragment{}
	if r.Digests {
		if f.Digests, err = digestsOf(record.Bytes(), r.Form.SP); err != nil {
			return nil, record.Len(), err
		}
	}
	packed, err := compress(record.Bytes())
	if err != nil {
		return nil, record.Len(), err
	}
	differs := late && !e.Deleted
	if !differs && !e.Deleted && !form.OmitInstances {
		if differs, err = fragment.IsClass(src, e.Topic); err != nil {
			return nil, record.Len(), err
		}
	}
	if !differs {
		f.Gzipped = packed
		return f, record.Len(), nil
	}
	storable, err = whole.write(e, src, form)
	written = record.Len() + whole.Len()
	switch {
	case err != nil:
		return nil, written, err
	case !storable:
		f.Record = packed
	case bytes.Equal(whole.Bytes(), record.Bytes()):
		f.Gzipped = packed
	default:
		f.Record = packed
		f.Gzipped, err = compress(whole.Bytes())
	}
	return f, written, err
}

// write puts the document of an entry into b, which is emptied first. It reports whether that is small enough to be stored.
func (b *limitedBuffer) write(e *fragment.Entry, src fragment.Source, form fragment.Form) (storable bool, err error) {
	b.Reset()
	err = e.Write(b, src, form)
	switch {
	case errors.Is(err, records.ErrNotStorable):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("fragment of %s: %w", e.TopicSI, err)
	}
	return true, nil
}

// A change may mention what is large in each of many entries: topics with thousands of
// identifiers, for instance, which each stub repeats. What is rendered at a commit is
// therefore bounded by the number of its entries, and the rest rendered when asked for.
const (
	anyway   = 64 << 20
	perEntry = 8 << 10
)

// Budget is how many bytes of fragments are rendered at a commit of so many
// entries. Of these, least come with few entries too; 0 is as many as usual.
func Budget(least int64, entries int) int64 {
	return cmp.Or(least, anyway) + perEntry*int64(entries)
}

// AtOnce is how many fragments are rendered, and are in memory, before their rows are put.
const AtOnce = 100

// One returns the data of an entry as src has it, nil where they are too large to store.
func (r Renderer) One(src fragment.Source, e *fragment.Entry) (*Fragment, error) {
	f, _, err := r.render(src, e, false)
	return f, err
}

func expect(src *records.Cached, entries []fragment.Entry) error {
	topics := make([]fragment.Ref, 0, len(entries))
	for i := range entries {
		if !entries[i].Deleted {
			topics = append(topics, entries[i].Topic)
		}
	}
	return src.ExpectStubs(topics)
}

// All returns the data of each of the entries as src has them now, as long as they have no more
// than budget bytes, of which it takes what it has used; those that are left have no fragment, as
// those that are too large, whose data are nil. Those rendered late, after their entries were
// published, have record forms with what cannot have changed since. It works on
// some at the same time: it is what takes most of the time of a publication.
func (r Renderer) All(ctx context.Context, src *records.Cached, entries []fragment.Entry, budget *int64, late bool) ([]*Fragment, error) {
	if err := expect(src, entries); err != nil {
		return nil, err
	}
	data := make([]*Fragment, len(entries))
	left := atomic.Int64{}
	left.Store(*budget)
	defer func() { *budget = left.Load() }()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var next atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(entries) {
				return
			}
			if left.Load() < 0 && !entries[i].Deleted {
				continue
			}
			var written int
			var err error
			if data[i], written, err = r.render(src.Storable(), &entries[i], late); err != nil {
				fail(err)
			}
			left.Add(-int64(written))
		}
	}
	var workers sync.WaitGroup
	for range min(len(entries), runtime.GOMAXPROCS(0)) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	return data, context.Cause(ctx)
}
