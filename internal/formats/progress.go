package formats

import "io"

// reporting reads, and reports the number of bytes read.
type reporting struct {
	io.Reader
	read, size int64
	report     func(read, size int64)
}

func (r *reporting) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.read += int64(n)
	r.report(r.read, r.size)
	return n, err
}
