package formats

import (
	"bytes"
	"io"
	"io/fs"
)

// The name of the element in ASCII-compatible encodings, and in UTF-16 with either byte order.
var mergeMaps = [][]byte{[]byte("mergeMap"), []byte("m\x00e\x00r\x00g\x00e\x00M\x00a\x00p")}

// MayMerge reports whether the document in a file may merge others in: whether it
// has the name of the element mergeMap in it.
func MayMerge(path string) (bool, error) {
	f, _, err := Open(path, func(string, fs.FileInfo) {})
	if err != nil {
		return false, err
	}
	defer f.Close()
	r, err := (&input{left: DefaultMaxSize, max: DefaultMaxSize}).unpack(f)
	if err != nil {
		return false, err
	}
	overlap := len(mergeMaps[1]) - 1
	buf := make([]byte, overlap, 64<<10)
	for {
		n, err := io.ReadFull(r, buf[overlap:cap(buf)])
		window := buf[:overlap+n]
		for _, name := range mergeMaps {
			if bytes.Contains(window, name) {
				return true, nil
			}
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return false, nil
		default:
			return false, err
		}
		copy(buf, window[n:])
	}
}
