package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/xtm"
)

// MaxStoredFragment is the size in bytes above which a fragment is not stored
// with its entry but rendered when it is asked for.
const MaxStoredFragment = 256 << 10

// Forms are the XTM versions in which fragments and snapshots are kept.
var Forms = [...]xtm.Version{xtm.V10, xtm.V21}

// form says how the collection's records are written.
func (c *Collection) form(version xtm.Version) fragment.Form {
	return fragment.Form{Version: version, SP: c.SP, OmitInstances: c.OmitInstances}
}

// next makes the next entry of the log. Times are those of commits, and
// strictly increase whatever the clock does.
func (db *DB) next(c *Collection, e fragment.Entry) Entry {
	now := db.now().UTC().Truncate(time.Microsecond)
	if least := c.Updated.Add(time.Microsecond); now.Before(least) {
		now = least
	}
	c.Head++
	c.Updated = now
	c.Run = db.run
	entry := Entry{Seq: c.Head, Run: c.Run, Updated: now, TopicSI: e.TopicSI, Title: shortTitle(e.Title), Deleted: e.Deleted}
	if e.Topic != e.TopicSI {
		entry.Topic = e.Topic
	}
	return entry
}

// maxTitle is the number of bytes of a title that the log keeps: names can be
// much longer, and a feed has many.
const maxTitle = 1000

func shortTitle(title string) string {
	if len(title) <= maxTitle {
		return title
	}
	return strings.ToValidUTF8(title[:maxTitle], "")
}

// keyRow is the last entry of a topic key.
type keyRow struct {
	Seq     uint64
	TopicSI fragment.Ref
}

// logRows calls put with the rows of an entry that is the last of its key. data is its fragment,
// or nil.
func logRows(c *Collection, e *Entry, data *Fragment, put func(key, value []byte) error) error {
	value, err := json.Marshal(keyRow{e.Seq, e.TopicSI})
	if err != nil {
		return err
	}
	if err := put(topicKeyKey(c, fragment.Key(e.TopicSI)), value); err != nil {
		return err
	}
	return entryRows(c, e, data, put)
}

// entryRows is logRows for an entry that is in the log already.
func entryRows(c *Collection, e *Entry, data *Fragment, put func(key, value []byte) error) error {
	if data != nil {
		e.Stored, e.Apart, e.Digests = data.Gzipped != nil, data.Record != nil, data.Digests
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := put(keys.Sequence(keys.TableLog, c.Number, e.Seq), value); err != nil || data == nil {
		return err
	}
	return put(keys.Sequence(keys.TableFragment, c.Number, e.Seq), data.pack())
}

func topicKeyKey(c *Collection, key string) []byte {
	return append(keys.Collection(keys.TableKey, c.Number), key...)
}

// Fragment is the data of an entry in each of Forms, gzipped.
type Fragment struct {
	Gzipped [][]byte // nil: the fragment is too large to store
	Record  [][]byte // the record form; nil: it has the same bytes
	Digests []Digest // of what is in the record form
}

// record returns the record form.
func (f *Fragment) record() [][]byte {
	if f.Record != nil {
		return f.Record
	}
	return f.Gzipped
}

// pack puts all that there is into one value: the fragment in each form, of no bytes where it is
// too large, and the record form behind it, where it has other bytes.
func (f *Fragment) pack() []byte {
	data := make([][]byte, len(Forms), 2*len(Forms))
	copy(data, f.Gzipped)
	data = append(data, f.Record...)
	size := 0
	for _, d := range data {
		size += binary.MaxVarintLen32 + len(d)
	}
	b := make([]byte, 0, size)
	for _, d := range data {
		b = binary.AppendUvarint(b, uint64(len(d)))
		b = append(b, d...)
	}
	return b
}

// unpackForm returns the n-th of what is packed into one value.
func unpackForm(b []byte, n int) ([]byte, error) {
	for ; ; n-- {
		length, size := binary.Uvarint(b)
		if size <= 0 || length > uint64(len(b)-size) {
			return nil, fmt.Errorf("%w: a fragment has no length. %s", ErrDamaged, txn.DamageRemedy)
		}
		if n == 0 {
			return b[size : size+int(length)], nil
		}
		b = b[size+int(length):]
	}
}

// Digest is what tells whether data are what they should be.
type Digest struct {
	Length int64
	MD5    [md5.Size]byte
	SHA256 [sha256.Size]byte
}

// DigestOf returns the digest of data.
func DigestOf(data []byte) Digest {
	return Digest{int64(len(data)), md5.Sum(data), sha256.Sum256(data)}
}

// Digester computes the digest of what is written to it.
type Digester struct {
	length int64
	md5    hash.Hash
	sha256 hash.Hash
}

// NewDigester returns a Digester to which nothing was written.
func NewDigester() *Digester { return &Digester{md5: md5.New(), sha256: sha256.New()} }

// Write adds data. It never fails.
func (d *Digester) Write(data []byte) (int, error) {
	d.length += int64(len(data))
	d.md5.Write(data)
	d.sha256.Write(data)
	return len(data), nil
}

// Digest returns the digest of what was written.
func (d *Digester) Digest() Digest {
	return Digest{d.length, [md5.Size]byte(d.md5.Sum(nil)), [sha256.Size]byte(d.sha256.Sum(nil))}
}

// MarshalText implements [encoding.TextMarshaler].
func (d Digest) MarshalText() ([]byte, error) {
	b := binary.AppendVarint(nil, d.Length)
	b = append(append(b, d.MD5[:]...), d.SHA256[:]...)
	return base64.RawStdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Digest) UnmarshalText(text []byte) error {
	b, err := base64.RawStdEncoding.AppendDecode(nil, text)
	length, n := binary.Varint(b)
	if err != nil || n <= 0 || len(b) != n+md5.Size+sha256.Size {
		return fmt.Errorf("%w: a digest cannot be read. %s", ErrDamaged, txn.DamageRemedy)
	}
	d.Length = length
	copy(d.MD5[:], b[n:])
	copy(d.SHA256[:], b[n+md5.Size:])
	return nil
}

// render returns the data of an entry as src has it now, or nil if all of it is too large to
// store, and how many bytes were written. The record form of one that is rendered late, after its
// entry was published, has only what cannot have changed since.
func render(c *Collection, src fragment.Source, e *fragment.Entry, late bool) (f *Fragment, written int, err error) {
	record, written, err := renderForms(e, nil, func(w io.Writer, version xtm.Version) error {
		form := c.form(version)
		form.OmitInstances, form.ContentOnly = true, late
		return e.Write(w, src, form)
	})
	if record == nil || err != nil {
		return nil, written, err
	}
	differs := late && !e.Deleted
	if !differs && !e.Deleted && !c.OmitInstances {
		if differs, err = fragment.IsClass(src, e.Topic); err != nil {
			return nil, written, err
		}
	}
	f = &Fragment{Gzipped: record.gzipped, Digests: record.digests}
	if !differs {
		return f, written, nil
	}
	whole, more, err := renderForms(e, record, func(w io.Writer, version xtm.Version) error { return e.Write(w, src, c.form(version)) })
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
	renderedAnyway   = 64 << 20
	renderedPerEntry = 8 << 10
)

// renderBudget is how many bytes of fragments are rendered at a commit of so many
// entries.
func (db *DB) renderBudget(entries int) int64 {
	return cmp.Or(db.rendered, renderedAnyway) + renderedPerEntry*int64(entries)
}

// renderedAtOnce is how many fragments are rendered, and are in memory, before their rows are put.
const renderedAtOnce = 100

// renderAll is render for each of the entries, as long as they have no more than budget
// bytes, of which it takes what it has used; those that are left have no fragment, as those that are too large. It works on
// some at the same time: it is what takes most of the time of a publication.
func renderAll(ctx context.Context, c *Collection, src *records.Cached, entries []fragment.Entry, budget *int64, late bool) ([]*Fragment, error) {
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
			if data[i], written, err = render(c, src.Storable(), &entries[i], late); err != nil {
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

type limitedBuffer struct{ bytes.Buffer }

// plains are buffers for reuse.
var plains = sync.Pool{New: func() any { return new(limitedBuffer) }}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxStoredFragment {
		return 0, records.ErrNotStorable
	}
	return b.Buffer.Write(p)
}

// packs are buffers for reuse.
var packs = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// compressors are kept for reuse: each has hundreds of kilobytes of tables. They
// are the fast ones: packing is much of the work of a publication, and what is small
// becomes only a tenth larger.
var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // there is no such level
	}
	return z
}}

func compress(plain []byte) ([]byte, error) {
	b := packs.Get().(*bytes.Buffer)
	defer packs.Put(b)
	b.Reset()
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(b)
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil // of just its length: there may be many
}
