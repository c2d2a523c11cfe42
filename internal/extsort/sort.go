// Package extsort sorts rows that may be more than fit into memory.
package extsort

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
)

// Row is a value with the key by which it is sorted.
type Row struct{ Key, Value []byte }

// Sorter sorts rows by their keys, as bytes: in memory, or if they are too many for
// that, in a file, to which it writes one sorted run after the other. It is not for
// several goroutines at a time.
type Sorter struct {
	Path string // of the file, if one is needed; a second file has this prefix. Its folder is created too
	Most int    // bytes of memory, about
	// Unnamed removes the name of the file after its creation, if the system supports that, so that a killed process
	// leaves no file.
	Unnamed bool

	rows   []place // in memory
	arena  arena   // of the rows
	same   []byte  // the value that was added last
	at     span    // of it
	shown  bool    // rows in the arena may be in use
	sorted bool    // rows are in order
	count  int     // of all rows

	file *os.File // nil: all rows are in memory
	name string   // of that: Path, or that of a second file
	runs []runEnd // in the file
}

// runEnd is the offset of the end of a run in the file, and its number of rows.
type runEnd struct {
	offset int64
	rows   int
}

// fanIn is the number of runs merged at a time. Each needs some 150 KB of memory.
const fanIn = 64

// Add adds a row, whose key and value must not be changed later. A value shared by consecutive rows is stored once.
func (s *Sorter) Add(key, value []byte) error {
	if len(value) == 0 || len(value) != len(s.same) || &value[0] != &s.same[0] {
		s.same, s.at = value, s.arena.add(value)
	}
	p := place{s.arena.add(key), s.at}
	s.sorted = len(s.rows) == 0 || s.sorted && s.compare(s.rows[len(s.rows)-1], p) <= 0
	s.rows = append(s.rows, p)
	s.count++
	if s.arena.size+len(s.rows)*perRow < s.Most {
		return nil
	}
	return s.writeRun()
}

func (s *Sorter) row(p place) Row { return Row{s.arena.at(p.key), s.arena.at(p.value)} }

func (s *Sorter) compare(a, b place) int {
	if order := bytes.Compare(s.arena.at(a.key), s.arena.at(b.key)); order != 0 {
		return order
	}
	return a.key.compare(b.key)
}

// Sorted iterates over the rows by key. Those with one key follow each other as they came. The
// rows stay valid. More may be added later, and all be read again.
func (s *Sorter) Sorted() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if s.file != nil {
			if err := s.prepare(); err != nil {
				yield(Row{}, fmt.Errorf("%s: %w", s.Path, err))
				return
			}
			s.merged(0, len(s.runs))(yield)
			return
		}
		s.shown = true
		s.inMemory()(yield)
	}
}

// inMemory iterates over the rows that are in memory.
func (s *Sorter) inMemory() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if !s.sorted {
			slices.SortFunc(s.rows, s.compare)
			s.sorted = true
		}
		for _, p := range s.rows {
			if !yield(s.row(p), nil) {
				return
			}
		}
	}
}

// prepare brings all rows into the file, in so few runs that merging them needs little memory.
func (s *Sorter) prepare() error {
	if len(s.rows) > 0 {
		if err := s.writeRun(); err != nil {
			return err
		}
	}
	s.rows, s.arena, s.same = nil, arena{}, nil
	for len(s.runs) > fanIn {
		if err := s.mergeRuns(); err != nil {
			return err
		}
	}
	return nil
}

// mergeRuns writes another file, with one run of each fanIn runs, in the place of the file.
func (s *Sorter) mergeRuns() error {
	merged := &Sorter{Path: s.Path, Unnamed: s.Unnamed}
	if s.name == s.Path {
		merged.Path += ".merged"
	}
	err := merged.create()
	for first := 0; first < len(s.runs) && err == nil; first += fanIn {
		err = merged.writeRows(s.merged(first, min(first+fanIn, len(s.runs))))
	}
	if err != nil {
		return errors.Join(err, merged.Close())
	}
	err = errors.Join(s.file.Close(), s.remove())
	s.name, s.file, s.runs = merged.name, merged.file, merged.runs
	return err
}

// merged iterates over the rows of some runs.
func (s *Sorter) merged(first, last int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		left := 0
		for _, r := range s.runs[first:last] {
			left += r.rows
		}
		runs, err := s.openRuns(first, last)
		for ; err == nil; left-- {
			if len(runs) == 0 {
				if left > 0 {
					err = fmt.Errorf("%w: %d rows are missing", io.ErrUnexpectedEOF, left)
					break
				}
				return
			}
			if !yield(runs[0].row, nil) {
				return
			}
			switch err = runs[0].next(); err {
			case nil:
				heap.Fix(&runs, 0)
			case io.EOF:
				heap.Pop(&runs)
				err = nil
			}
		}
		yield(Row{}, fmt.Errorf("%s: %w", s.name, err))
	}
}

// packedBlock is the number of bytes of a run that are packed at once.
const packedBlock = 64 << 10

// writeRun writes the rows that are in memory to the file.
func (s *Sorter) writeRun() error {
	if s.file == nil {
		if err := s.create(); err != nil {
			return err
		}
	}
	if err := s.writeRows(s.inMemory()); err != nil {
		return err
	}
	if s.shown {
		s.arena, s.shown = arena{}, false
	}
	s.arena.clear()
	s.rows, s.same = s.rows[:0], nil
	return nil
}

func (s *Sorter) create() (err error) {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return err
	}
	s.name = s.Path
	s.file, err = os.OpenFile(s.name, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err == nil && s.Unnamed {
		_ = os.Remove(s.name) // otherwise it is removed by Close
	}
	return err
}

// writeRows writes a run to the end of the file, as lengths and bytes, packed: neighbours
// have much in common.
func (s *Sorter) writeRows(rows iter.Seq2[Row, error]) error {
	w := s2.NewWriter(s.file, s2.WriterConcurrency(1), s2.WriterBlockSize(packedBlock))
	var lengths [2 * binary.MaxVarintLen64]byte
	n := 0
	for r, err := range rows {
		if err != nil {
			return err
		}
		b := binary.AppendUvarint(lengths[:0], uint64(len(r.Key)))
		b = binary.AppendUvarint(b, uint64(len(r.Value)))
		for _, b := range [...][]byte{b, r.Key, r.Value} {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		n++
	}
	if err := w.Close(); err != nil {
		return err
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, runEnd{end, n})
	return nil
}

// openRuns begins to read runs.
func (s *Sorter) openRuns(first, last int) (runs, error) {
	var all runs
	begin := int64(0)
	if first > 0 {
		begin = s.runs[first-1].offset
	}
	for i, end := range s.runs[first:last] {
		packed := io.NewSectionReader(s.file, begin, end.offset-begin)
		r := &run{number: i, file: bufio.NewReader(s2.NewReader(packed, s2.ReaderMaxBlockSize(packedBlock)))}
		if err := r.next(); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		all = append(all, r)
		begin = end.offset
	}
	heap.Init(&all)
	return all, nil
}

// Count returns the number of rows.
func (s *Sorter) Count() int { return s.count }

// Close forgets the rows and removes the file.
func (s *Sorter) Close() error {
	file := s.file
	s.file, s.rows, s.runs, s.arena, s.same = nil, nil, nil, arena{}, nil
	if file == nil {
		return nil
	}
	return errors.Join(file.Close(), s.remove())
}

// remove removes the file, unless that was done when it was made.
func (s *Sorter) remove() error {
	err := os.Remove(s.name)
	if s.Unnamed && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// run is a sorted run in the file, and the row that was read of it last.
type run struct {
	number int
	file   *bufio.Reader
	row    Row
	buffer []byte // for the next rows
}

// roomSize is the number of bytes of rows allocated at a time.
const roomSize = 4 << 10

// take returns memory for a row, which is not shared.
func (r *run) take(size int) []byte {
	if size > len(r.buffer) {
		r.buffer = make([]byte, max(size, roomSize))
	}
	b := r.buffer[:size:size]
	r.buffer = r.buffer[size:]
	return b
}

// next reads the next row. After the last it returns io.EOF.
func (r *run) next() error {
	key, err := binary.ReadUvarint(r.file)
	if err != nil {
		return err
	}
	value, err := binary.ReadUvarint(r.file)
	if err == nil {
		b := r.take(int(key + value))
		_, err = io.ReadFull(r.file, b)
		r.row = Row{b[:key:key], b[key:]}
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// runs is a heap of runs by the keys of their rows.
type runs []*run

func (r runs) Len() int { return len(r) }

func (r runs) Less(i, j int) bool {
	if order := bytes.Compare(r[i].row.Key, r[j].row.Key); order != 0 {
		return order < 0
	}
	return r[i].number < r[j].number
}

func (r runs) Swap(i, j int) { r[i], r[j] = r[j], r[i] }

func (r *runs) Push(x any) { *r = append(*r, x.(*run)) }

func (r *runs) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}

// TimeSize is the number of bytes of a time in a key.
const TimeSize = 12

// AppendTime appends a time of any year to a key. The bytes are in the order of time.
func AppendTime(key []byte, t time.Time) []byte {
	key = binary.BigEndian.AppendUint64(key, uint64(t.Unix())^1<<63)
	return binary.BigEndian.AppendUint32(key, uint32(t.Nanosecond()))
}

// Time returns the time that a part of a key begins with.
func Time(key []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(key)^1<<63), int64(binary.BigEndian.Uint32(key[8:]))).UTC()
}
