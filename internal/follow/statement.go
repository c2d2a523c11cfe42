package follow

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/internal/extsort"
)

// Scratch holds the settings for data of a look that do not fit into memory.
type Scratch struct {
	// Path is how the names of the files begin that are made, and removed again. By default
	// they are in the system's folder for such files.
	Path       string
	Memory     int          // bytes that each of some sorters has in memory, about; default 8 MB
	Chunk      int          // records that are read back at a time; default 4000
	CheckSpace func() error // called periodically to check the free space; may be nil

	// MaxEntries limits the statements of a source in one look; default 10,000,000.
	MaxEntries int
}

// The names of files that only a round needs begin, or end, so.
const (
	OwnPrefix  = ".tmshare-harvest"
	TempSuffix = ".part"

	PackagePrefix = OwnPrefix + "-package-" // see [PackagePath]
)

// PackagePath returns where a package that is at a URI is kept in a folder until the round is done.
func PackagePath(folder, uri string) string {
	return filepath.Join(folder, PackagePrefix+ShortHash(uri))
}

// ShortHash returns the beginning of a hash of a text, for the names of files.
func ShortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

const defaultMaxEntries = 10_000_000

// ScratchMemory is the default of [Scratch.Memory]. Tests have less.
var ScratchMemory = 8 << 20

// sorters makes the names of files unique.
var sorters atomic.Uint64

// Sorter returns a sorter. Its file, if needed, has a unique name.
func (s *Scratch) Sorter() *extsort.Sorter {
	path, most := s.Path, s.Memory
	if path == "" {
		path = filepath.Join(os.TempDir(), fmt.Sprintf("tmshare-%d", os.Getpid()))
	}
	if most == 0 {
		most = ScratchMemory
	}
	return &extsort.Sorter{Path: path + "-rows-" + strconv.FormatUint(sorters.Add(1), 36) + TempSuffix, Most: most}
}

// Kind is the part of a source that has a statement.
type Kind byte

// The kinds, in the order in which the statements about a record are read.
const (
	kindHeld    Kind = iota // a record that is held
	KindOlder               // it is no news: it stands before the mark
	KindListed              // in a list of all
	KindChanged             // in a list of changes, or in a feed
)

// Statement is a statement of a source about a record. The fields that determine the last statement are separate from
// the rest of the Record, which is rarely read.
type Statement struct {
	ID    string
	Kind  Kind
	Place uint64 // of two statements at one time the later place counts

	Updated               time.Time
	Deleted, Anew, Placed bool
	Unsure, Fresh         bool
	Pack                  uint32 // the number of the package that has the content; 0: none

	skipped bool   // there was another change between the one held and this one
	rest    []byte // the Record as JSON
}

// StatementOf packs a record.
func StatementOf(r *Record, k Kind, place uint64) (Statement, error) {
	rest, err := json.Marshal(r)
	return Statement{
		ID: r.ID, Kind: k, Place: place, Updated: r.Updated, Deleted: r.Deleted, Anew: r.Anew, Placed: r.Placed,
		Unsure: r.Unsure, Fresh: r.Fresh, Pack: r.Pack, rest: rest,
	}, err
}

// With returns the statement with a record that was changed since it was unpacked.
func (s *Statement) With(r *Record) (Statement, error) {
	changed, err := StatementOf(r, s.Kind, s.Place)
	changed.skipped = s.skipped
	return changed, err
}

// Record unpacks the record.
func (s *Statement) Record() (Record, error) {
	var r Record
	err := json.Unmarshal(s.rest, &r)
	r.ID, r.Updated, r.Deleted, r.Anew, r.Placed, r.Unsure, r.Fresh, r.Pack = s.ID, s.Updated, s.Deleted, s.Anew, s.Placed,
		s.Unsure, s.Fresh, s.Pack
	if s.skipped {
		r.dropPatches()
	}
	return r, err
}

const (
	isDeleted byte = 1 << iota
	isAnew
	isPlaced
	isUnsure
	isSkipped
	isFresh
)

func flag(set bool, value byte) byte {
	if set {
		return value
	}
	return 0
}

const headSize = 1 + 4 + extsort.TimeSize

// value returns the value of the statement in a row: all but its id, kind and place.
func (s *Statement) value() []byte {
	flags := flag(s.Deleted, isDeleted) | flag(s.Anew, isAnew) | flag(s.Placed, isPlaced) | flag(s.Unsure,
		isUnsure) | flag(s.skipped, isSkipped) | flag(s.Fresh, isFresh)
	b := make([]byte, 0, headSize+len(s.rest))
	b = binary.BigEndian.AppendUint32(append(b, flags), s.Pack)
	return append(extsort.AppendTime(b, s.Updated), s.rest...)
}

func (s *Statement) readValue(b []byte) {
	s.Deleted, s.Anew, s.Placed = b[0]&isDeleted != 0, b[0]&isAnew != 0, b[0]&isPlaced != 0
	s.Unsure, s.skipped, s.Fresh = b[0]&isUnsure != 0, b[0]&isSkipped != 0, b[0]&isFresh != 0
	s.Pack = binary.BigEndian.Uint32(b[1:])
	s.Updated, s.rest = extsort.Time(b[5:]), b[headSize:]
}

// byID returns the key for sorting the statement by record. XML has no character 0.
func (s *Statement) byID() []byte {
	key := append(append([]byte(s.ID), 0), byte(s.Kind))
	return binary.BigEndian.AppendUint64(key, s.Place)
}

// ReadByID reads a row of [Statements], or of the wanted records of a [Planning].
func ReadByID(row extsort.Row) (s Statement) {
	id, rest, _ := bytes.Cut(row.Key, []byte{0})
	s.ID, s.Kind, s.Place = string(id), Kind(rest[0]), binary.BigEndian.Uint64(rest[1:])
	s.readValue(row.Value)
	return s
}

// InOrder returns the row of a statement for sorting by a key.
func (s *Statement) InOrder(key []byte) extsort.Row {
	value := binary.AppendUvarint(nil, uint64(len(s.ID)))
	return extsort.Row{Key: key, Value: append(append(value, s.ID...), s.value()...)}
}

// ReadInOrder reads a row of InOrder back. Kind and Place are not in it.
func ReadInOrder(row extsort.Row) (s Statement) {
	n, size := binary.Uvarint(row.Value)
	rest := row.Value[size:]
	s.ID = string(rest[:n])
	s.readValue(rest[n:])
	return s
}
