package rendered

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/xtm"
)

// render returns the data of an entry as src has it now, or nil if all of it is too large to
// store, and how many bytes were written. The record form of one that is rendered late, after its
// entry was published, has only what cannot have changed since.
func render(as fragment.Form, src fragment.Source, e *fragment.Entry, late bool) (f *Fragment, written int, err error) {
	record, written, err := renderForms(e, nil, func(w io.Writer, version xtm.Version) error {
		form := as
		form.Version = version
		form.OmitInstances, form.ContentOnly = true, late
		return e.Write(w, src, form)
	})
	if record == nil || err != nil {
		return nil, written, err
	}
	differs := late && !e.Deleted
	if !differs && !e.Deleted && !as.OmitInstances {
		if differs, err = fragment.IsClass(src, e.Topic); err != nil {
			return nil, written, err
		}
	}
	f = &Fragment{Gzipped: record.gzipped, Digests: record.digests}
	if !differs {
		return f, written, nil
	}
	whole, more, err := renderForms(e, record, func(w io.Writer, version xtm.Version) error {
		form := as
		form.Version = version
		return e.Write(w, src, form)
	})
	written += more
	switch {
	case err != nil:
		return nil, written, err
	case whole == nil:
		f.Gzipped, f.Record = nil, record.gzipped
	case !slices.Equal(whole.digests, record.digests):
		f.Gzipped, f.Record = whole.gzipped, record.gzipped
	}
	return f, written, nil
}

// forms are documents in each of Forms.
type forms struct {
	gzipped [][]byte
	digests []Digest
}

// renderForms returns what write writes, or nil if it is too large to store, and how many bytes were
// written. What is the same as in known, which may be nil, is not packed again.
func renderForms(e *fragment.Entry, known *forms, write func(io.Writer, xtm.Version) error) (f *forms, written int, err error) {
	f = &forms{make([][]byte, len(Forms)), make([]Digest, len(Forms))}
	plain := plains.Get().(*limitedBuffer)
	defer plains.Put(plain)
	for i, version := range Forms {
		plain.Reset()
		err = write(plain, version)
		written += plain.Len()
		if errors.Is(err, records.ErrNotStorable) {
			return nil, written, nil
		}
		if err != nil {
			return nil, written, fmt.Errorf("fragment of %s: %w", e.TopicSI, err)
		}
		f.digests[i] = DigestOf(plain.Bytes())
		if known != nil && known.digests[i] == f.digests[i] {
			f.gzipped[i] = known.gzipped[i]
		} else if f.gzipped[i], err = compress(plain.Bytes()); err != nil {
			return nil, written, err
		}
	}
	return f, written, nil
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
func One(as fragment.Form, src fragment.Source, e *fragment.Entry) (*Fragment, error) {
	f, _, err := render(as, src, e, false)
	return f, err
}

// All returns the data of each of the entries as src has them now, in a form whose version does
// not matter, as long as they have no more than budget
// bytes, of which it takes what it has used; those that are left have no fragment, as
// those that are too large, whose data are nil. Those rendered late, after their entries were
// published, have record forms with what cannot have changed since. It works on
// some at the same time: it is what takes most of the time of a publication.
func All(ctx context.Context, as fragment.Form, src *records.Cached, entries []fragment.Entry, budget *int64, late bool) ([]*Fragment, error) {
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
			if data[i], written, err = render(as, src.Storable(), &entries[i], late); err != nil {
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
