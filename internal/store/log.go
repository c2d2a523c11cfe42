package store

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/fragment"
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
func (c *Collection) next(now time.Time, e fragment.Entry) Entry {
	now = now.UTC().Truncate(time.Microsecond)
	if least := c.Updated.Add(time.Microsecond); now.Before(least) {
		now = least
	}
	c.Head++
	c.Updated = now
	entry := Entry{Seq: c.Head, Updated: now, TopicSI: e.TopicSI, Title: shortTitle(e.Title), Deleted: e.Deleted}
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

// logRows calls put with the rows of an entry. data is its fragment, or nil.
func logRows(c *Collection, e *Entry, data *Fragment, put func(key, value []byte) error) error {
	if e.Stored = data != nil; e.Stored {
		e.Digests = data.Digests
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := put(sequenceKey(tableLog, c.Number, e.Seq), value); err != nil {
		return err
	}
	if value, err = json.Marshal(keyRow{e.Seq, e.TopicSI}); err != nil {
		return err
	}
	if err := put(topicKeyKey(c, fragment.Key(e.TopicSI)), value); err != nil {
		return err
	}
	if data == nil {
		return nil
	}
	return put(sequenceKey(tableFragment, c.Number, e.Seq), packForms(data.Gzipped))
}

func topicKeyKey(c *Collection, key string) []byte {
	return append(collectionKey(tableKey, c.Number), key...)
}

// packForms puts the bytes of each form into one value.
func packForms(data [][]byte) []byte {
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

func unpackForms(b []byte) ([][]byte, error) {
	data := make([][]byte, len(Forms))
	for i := range data {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, errors.New("store: corrupt fragment data")
		}
		data[i], b = b[size:size+int(n)], b[size+int(n):]
	}
	return data, nil
}

// Fragment is the data of an entry in each of Forms.
type Fragment struct {
	Gzipped [][]byte
	Digests []Digest // of what is in them
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
		return errors.New("store: corrupt digest")
	}
	d.Length = length
	copy(d.MD5[:], b[n:])
	copy(d.SHA256[:], b[n+md5.Size:])
	return nil
}

// render returns the fragment of an entry as src has it now, or nil if it is too large
// to store.
func render(c *Collection, src fragment.Source, e *fragment.Entry) (*Fragment, error) {
	f := &Fragment{make([][]byte, len(Forms)), make([]Digest, len(Forms))}
	plain := plains.Get().(*limitedBuffer)
	defer plains.Put(plain)
	for i, version := range Forms {
		form := c.form(version)
		plain.Reset()
		var err error
		if e.Deleted {
			err = fragment.WriteTombstone(plain, e.Tombstone, form)
		} else {
			err = fragment.Write(plain, src, e.Topic, form)
		}
		if errors.Is(err, errTooLarge) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("store: fragment of %s: %w", e.TopicSI, err)
		}
		f.Digests[i] = DigestOf(plain.Bytes())
		if f.Gzipped[i], err = compress(plain.Bytes()); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// renderAll is render for each of the entries. It works on some at the same time:
// it is what takes most of the time of a publication.
func renderAll(ctx context.Context, c *Collection, src fragment.Source, entries []fragment.Entry) ([]*Fragment, error) {
	data := make([]*Fragment, len(entries))
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var next atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(entries) {
				return
			}
			var err error
			if data[i], err = render(c, src, &entries[i]); err != nil {
				fail(err)
			}
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

var errTooLarge = errors.New("store: fragment too large to store")

type limitedBuffer struct{ bytes.Buffer }

// plains are buffers for reuse.
var plains = sync.Pool{New: func() any { return new(limitedBuffer) }}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxStoredFragment {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

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
	var b bytes.Buffer
	b.Grow(len(plain) / 3)
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(&b)
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
