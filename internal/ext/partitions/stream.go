package partitions

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/moving"
)

// A collection is sent as frames: a byte for the kind, the lengths of two parts as varints, and the parts.
const (
	frameHead = 'h' // header (JSON)
	frameRow  = 'r' // key without the number of the collection, value
	frameSum  = 's' // digest of the rows, after them
	frameFile = 'f' // name, a piece; an empty piece ends the file
	frameEnd  = 'e'
)

// header begins a collection that is sent.
type header struct {
	Format  string // of the rows
	Store   uuid.UUID
	BaseURL string
	Closed  bool   // it is read with a token only
	Key     string // the public key of the signature of its log; "": it is not signed
	Arrival store.Arrival
}

// frames writes frames.
type frames struct{ *bufio.Writer }

func (f frames) put(kind byte, first, second []byte) error {
	lengths := []byte{kind}
	lengths = binary.AppendUvarint(binary.AppendUvarint(lengths, uint64(len(first))), uint64(len(second)))
	for _, part := range [][]byte{lengths, first, second} {
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// send writes all of a collection.
func send(w io.Writer, h *header, d *store.Departure) error {
	out := frames{bufio.NewWriterSize(w, web.WriteBuffer)}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := out.put(frameHead, head, nil); err != nil {
		return err
	}
	sum := moving.NewSum()
	for r, err := range d.Rows() {
		if err == nil {
			sum.Add(r)
			err = out.put(frameRow, r.Key, r.Value)
		}
		if err != nil {
			return err
		}
	}
	if err := out.put(frameSum, []byte(sum.String()), nil); err != nil {
		return err
	}
	piece := make([]byte, web.WriteBuffer)
	err = d.Files(func(name string, from files.File) error {
		for {
			n, err := from.Read(piece)
			if n > 0 {
				if err := out.put(frameFile, []byte(name), piece[:n]); err != nil {
					return err
				}
			}
			if err == io.EOF {
				return out.put(frameFile, []byte(name), nil)
			}
			if err != nil {
				return err
			}
		}
	})
	if err == nil {
		err = out.put(frameEnd, nil, nil)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// received reads frames.
type received struct {
	in            *bufio.Reader
	kind          byte // of the last frame
	first, second []byte
}

// errCut is the answer for a collection that was not sent to its end.
func errCut(err error) error {
	return web.Problemf(http.StatusBadRequest, "the collection has not come to its end: %s; nothing was changed", err)
}

func (r *received) next() (err error) {
	if r.kind, err = r.in.ReadByte(); err != nil {
		return errCut(err)
	}
	var lengths [2]uint64
	for i := range lengths {
		if lengths[i], err = binary.ReadUvarint(r.in); err == nil && lengths[i] > kv.MaxValue {
			err = fmt.Errorf("a part of %d bytes is too large", lengths[i])
		}
		if err != nil {
			return errCut(err)
		}
	}
	r.first, r.second = make([]byte, lengths[0]), make([]byte, lengths[1])
	for _, part := range [][]byte{r.first, r.second} {
		if _, err := io.ReadFull(r.in, part); err != nil {
			return errCut(err)
		}
	}
	return nil
}

// header reads the first frame. Members that are not known are refused, since a newer server may mean more by them.
func (r *received) header() (h *header, err error) {
	if err = r.next(); err == nil && r.kind != frameHead {
		err = errCut(fmt.Errorf("it begins with a frame %q", r.kind))
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(r.first))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return nil, web.Problemf(http.StatusConflict,
			"the collection is of another version of the program: run the same at both servers (%s)", err)
	}
	return h, nil
}

// rows iterates over the rows up to their digest.
func (r *received) rows() iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for {
			err := r.next()
			if err == nil && r.kind != frameRow {
				return
			}
			if !yield(store.Row{Key: r.first, Value: r.second}, err) || err != nil {
				return
			}
		}
	}
}

// rest returns the digest of the rows, and writes the files by create.
func (r *received) rest(create func(name string) (files.Writer, error)) (sum string, err error) {
	if r.kind != frameSum {
		return "", errCut(fmt.Errorf("a frame %q is where the digest should be", r.kind))
	}
	sum = string(r.first)
	var file files.Writer
	defer func() {
		if file != nil {
			file.Cancel()
		}
	}()
	for {
		if err := r.next(); err != nil {
			return "", err
		}
		switch {
		case r.kind == frameEnd && file == nil:
			return sum, nil
		case r.kind != frameFile:
			return "", errCut(fmt.Errorf("a frame %q is where a file should be", r.kind))
		}
		if file == nil {
			if file, err = create(string(r.first)); err != nil {
				return "", err
			}
		}
		if len(r.second) > 0 {
			_, err = file.Write(r.second)
		} else {
			err, file = file.Commit(), nil
		}
		if err != nil {
			return "", err
		}
	}
}
