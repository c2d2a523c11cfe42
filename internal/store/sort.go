package store

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

	"github.com/klauspost/compress/s2"
)

// loadingFolder is where in the data folder the files of loads are. They are of
// no use to anybody else: what is there when the database is opened goes.
const loadingFolder = "loading"

// sorter sorts rows by their keys: in memory, or where they are too many for
// that, in a file, to which it writes one sorted run after the other.
type sorter struct {
	path string // of the file, if one is needed
	most int    // bytes of memory, about

	rows  []row // in memory
	size  int   // of these, about
	count int   // of all rows

	file *os.File // nil: all rows are in memory
	runs []int64  // where each run ends in the file
}

// perRow is what a row takes in memory besides its bytes.
const perRow = 64

// add takes a row, whose key and value must not be changed any more.
func (s *sorter) add(key, value []byte) error {
	s.rows = append(s.rows, row{key, value})
	s.count++
	if s.size += cap(key) + cap(value) + perRow; s.size < s.most {
		return nil
	}
	return s.writeRun()
}

// sorted iterates over the rows by key. Those with one key follow each other. The
// rows stay valid.
func (s *sorter) sorted() iter.Seq2[row, error] {
	if s.file == nil {
		return func(yield func(row, error) bool) {
			s.sortRows()
			for _, r := range s.rows {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	return func(yield func(row, error) bool) {
		runs, err := s.readRuns()
		if err != nil {
			yield(row{}, err)
			return
		}
		for left := s.count; ; left-- {
			if len(runs) == 0 {
				if left > 0 {
					yield(row{}, fmt.Errorf("%s: %w: %d rows are missing", s.path, io.ErrUnexpectedEOF, left))
				}
				return
			}
			if !yield(runs[0].row, nil) {
				return
			}
			switch err := runs[0].next(); {
			case err == nil:
				heap.Fix(&runs, 0)
			case err == io.EOF:
				heap.Pop(&runs)
			default:
				yield(row{}, fmt.Errorf("%s: %w", s.path, err))
				return
			}
		}
	}
}

func (s *sorter) sortRows() {
	slices.SortFunc(s.rows, func(a, b row) int { return bytes.Compare(a.key, b.key) })
}

// packedBlock is how many bytes of a run are packed at once.
const packedBlock = 64 << 10

// writeRun writes the rows that are in memory to the file, as lengths and bytes,
// packed: neighbours have much in common.
func (s *sorter) writeRun() (err error) {
	if s.file == nil {
		if err := os.MkdirAll(filepath.Dir(s.path), 0o750); err != nil {
			return err
		}
		if s.file, err = os.OpenFile(s.path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o640); err != nil {
			return err
		}
	}
	s.sortRows()
	w := s2.NewWriter(s.file, s2.WriterConcurrency(1), s2.WriterBlockSize(packedBlock))
	var lengths [2 * binary.MaxVarintLen64]byte
	for _, r := range s.rows {
		b := binary.AppendUvarint(lengths[:0], uint64(len(r.key)))
		b = binary.AppendUvarint(b, uint64(len(r.value)))
		for _, b := range [...][]byte{b, r.key, r.value} {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, end)
	clear(s.rows)
	s.rows, s.size = s.rows[:0], 0
	return nil
}

// readRuns writes the rest to the file too, so that merging needs little memory,
// and begins to read all runs.
func (s *sorter) readRuns() (runs, error) {
	if len(s.rows) > 0 {
		if err := s.writeRun(); err != nil {
			return nil, err
		}
	}
	s.rows = nil
	var all runs
	begin := int64(0)
	for i, end := range s.runs {
		packed := io.NewSectionReader(s.file, begin, end-begin)
		r := &run{number: i, file: bufio.NewReader(s2.NewReader(packed, s2.ReaderMaxBlockSize(packedBlock)))}
		if err := r.next(); err != nil {
			return nil, err
		}
		all = append(all, r)
		begin = end
	}
	heap.Init(&all)
	return all, nil
}

// close removes the file.
func (s *sorter) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.path))
}

// run is a sorted run in the file, and the row that was read of it last.
type run struct {
	number int
	file   *bufio.Reader
	row    row
}

// next reads the next row. After the last it returns io.EOF.
func (r *run) next() error {
	key, err := binary.ReadUvarint(r.file)
	if err != nil {
		return err
	}
	value, err := binary.ReadUvarint(r.file)
	if err == nil {
		b := make([]byte, key+value)
		_, err = io.ReadFull(r.file, b)
		r.row = row{b[:key:key], b[key:]}
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
	if order := bytes.Compare(r[i].row.key, r[j].row.key); order != 0 {
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
