package follow

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// MaxSpan is the maximum number of entries remembered of a source: some 400 kB.
const MaxSpan = 10_000

// Span has the entries that were read of a source, the newest MaxSpan of them.
type Span struct {
	entries map[mark16]spanned
	low     time.Time // all entries of the documents that were read are remembered from then on
}

// mark16 is the beginning of a hash, long enough to prevent collisions.
type mark16 [16]byte

func hash16(s string) mark16 {
	sum := sha256.Sum256([]byte(s))
	return mark16(sum[:16])
}

// spanned is an entry. A later entry may be about the same record.
type spanned struct {
	updated int64 // microseconds since 1970
	record  mark16
	late    bool // it came after entries with later times: its time does not show how far back a reading goes
}

// Remembered returns the remembered entries of earlier readings. m may be nil: none.
func (m *Memory) Remembered() *Span {
	if m == nil {
		return nil
	}
	return m.Span
}

// Has reports whether an entry with a key is remembered.
func (s *Span) Has(key string) bool {
	if s == nil {
		return false
	}
	_, ok := s.entries[hash16(key)]
	return ok
}

// Reaches reports whether an entry of that time would be remembered if it had been read.
func (s *Span) Reaches(at time.Time) bool { return s != nil && !at.Before(s.low) }

// IsNew reports whether an entry of that time is not remembered, and would be if it had been read.
func (s *Span) IsNew(key string, at time.Time) bool { return s.Reaches(at) && !s.Has(key) }

// Forget removes the entries from a time on, so that they are handled again.
func (s *Span) Forget(from time.Time) {
	if s == nil {
		return
	}
	for k, e := range s.entries {
		if e.updated >= from.UnixMicro() {
			delete(s.entries, k)
		}
	}
}

const spannedSize = 16 + 8 + 16 + 1

// MarshalBinary implements [encoding.BinaryMarshaler].
func (s *Span) MarshalBinary() ([]byte, error) {
	b := binary.BigEndian.AppendUint64(nil, uint64(s.low.UnixMicro()))
	keys := make([]mark16, 0, len(s.entries))
	for k := range s.entries {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b mark16) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		e := s.entries[k]
		b = binary.BigEndian.AppendUint64(append(b, k[:]...), uint64(e.updated))
		b = append(append(b, e.record[:]...), flag(e.late, 1))
	}
	return b, nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler].
func (s *Span) UnmarshalBinary(b []byte) error {
	if len(b) < 8 || (len(b)-8)%spannedSize != 0 {
		return errors.New("what is remembered of the entries of the source is damaged")
	}
	s.low = time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC()
	s.entries = map[mark16]spanned{}
	for b = b[8:]; len(b) > 0; b = b[spannedSize:] {
		s.entries[mark16(b[:16])] = spanned{int64(binary.BigEndian.Uint64(b[16:24])), mark16(b[24:40]), b[40] == 1}
	}
	return nil
}

// SpanRead compares the entries of a reading with the remembered ones. Each is added when it is read.
type SpanRead struct {
	Part bool // only some records were read: the remembered entries of others are kept

	before *Span
	asOf   int64 // a time by the server's clock, from before it was read
	newest int64 // of all that is remembered and was no future then, but for some time
	read   map[mark16]spanned
	low    int64            // the earliest time of all that was read
	back   int64            // the earliest time of an entry in order: so far the reading goes back
	kept   int64            // read has all entries from then on
	seen   map[mark16]bool  // remembered entries that were read
	later  map[mark16]int64 // by record: the latest time of an entry
	fresh  map[mark16]bool  // by record: whether it has an entry that is not remembered
}

// never is earlier than all times that are stated, and forever later, in microseconds since 1970.
const (
	never   = -1 << 63
	forever = 1 << 62
)

// NewSpanRead begins a reading. before may be nil. asOf is a time by the server's clock, from before it was read.
func NewSpanRead(before *Span, asOf time.Time) *SpanRead {
	r := &SpanRead{
		before: before, asOf: asOf.UnixMicro(), newest: never, read: map[mark16]spanned{}, low: forever, back: forever,
		kept: time.Time{}.UnixMicro(), seen: map[mark16]bool{}, later: map[mark16]int64{}, fresh: map[mark16]bool{},
	}
	if before != nil {
		for _, e := range before.entries {
			r.later[e.record] = never
			if e.updated <= r.asOf {
				r.newest = max(r.newest, e.updated-Grace.Microseconds())
			}
		}
	}
	return r
}

// Add notes an entry with a key that is about a record.
func (r *SpanRead) Add(key, record string, at time.Time) {
	k, e := hash16(key), spanned{updated: at.UnixMicro(), record: hash16(record)}
	r.low = min(r.low, e.updated)
	if r.before != nil {
		known, isKnown := r.before.entries[k]
		if isKnown {
			r.seen[k] = true
		}
		e.late = isKnown && known.late || !isKnown && e.updated < r.newest
		if latest, ok := r.later[e.record]; ok {
			r.later[e.record] = max(latest, e.updated)
			r.fresh[e.record] = r.fresh[e.record] || !isKnown
		}
	}
	if !e.late {
		r.back = min(r.back, e.updated)
	}
	if e.updated < r.kept {
		return
	}
	if r.read[k] = e; len(r.read) > 2*MaxSpan {
		r.cut()
	}
}

// cut keeps the newest entries.
func (r *SpanRead) cut() {
	if len(r.read) <= MaxSpan {
		return
	}
	times := make([]int64, 0, len(r.read))
	for _, e := range r.read {
		times = append(times, e.updated)
	}
	slices.SortFunc(times, func(a, b int64) int { return cmp.Compare(b, a) })
	r.kept = times[MaxSpan] + 1 // of one time all or none are kept
	for k, e := range r.read {
		if e.updated < r.kept {
			delete(r.read, k)
		}
	}
}

// Lacks reports whether an entry that is remembered of the time that was read is not there any more, nor a later one of
// the same record. What is older than all that was read may have been given up by the source.
func (r *SpanRead) Lacks() bool {
	if r.before == nil {
		return false
	}
	for k, e := range r.before.entries {
		if e.updated > r.back && !e.late && !r.stands(k, e) {
			return true
		}
	}
	return false
}

// stands reports whether a remembered entry was read, or a later one of its record. For an entry with a future time no
// later one is known: another, unknown one of its record corrects it.
func (r *SpanRead) stands(k mark16, e spanned) bool {
	return r.seen[k] || r.later[e.record] > e.updated || e.updated > r.asOf && r.fresh[e.record]
}

// Newest returns the time of the newest remembered entry, or zero.
func (s *Span) Newest() (newest time.Time) {
	if s == nil || len(s.entries) == 0 {
		return time.Time{}
	}
	at := int64(never)
	for _, e := range s.entries {
		at = max(at, e.updated)
	}
	return time.UnixMicro(at).UTC()
}

// Stands reports whether the newest entry that is remembered was read, or a later one of its record.
func (r *SpanRead) Stands() bool {
	if r.before == nil || len(r.before.entries) == 0 {
		return true
	}
	newest := r.before.Newest().UnixMicro()
	for k, e := range r.before.entries {
		if e.updated == newest && r.stands(k, e) {
			return true
		}
	}
	return false
}

// Span returns the entries to remember: those of the reading, and the remembered ones of the time before it. whole
// states that the source was read to its end.
func (r *SpanRead) Span(whole bool) *Span {
	if r.before != nil {
		for k, e := range r.before.entries {
			if r.Part && r.later[e.record] == never || !r.Part && e.updated < r.low {
				r.read[k] = e
			}
		}
	}
	r.cut()
	low := r.low
	if r.before != nil && (r.Part || r.before.low.UnixMicro() < r.low) {
		low = r.before.low.UnixMicro()
	}
	if whole {
		low = time.Time{}.UnixMicro()
	}
	low = max(low, r.kept)
	return &Span{r.read, time.UnixMicro(low).UTC()}
}
