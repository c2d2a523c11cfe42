package mapfile

import (
	"io"

	"github.com/tmshare/tmshare/xtm"
)

// versionOf passes a document on and finds out its version: a decoder of its
// own reads along until it knows.
type versionOf struct {
	r     io.Reader
	along *io.PipeWriter // nil once the decoder has what it wants
	found chan xtm.Version
}

func newVersionOf(r io.Reader, o xtm.Options) *versionOf {
	pr, pw := io.Pipe()
	v := &versionOf{r: r, along: pw, found: make(chan xtm.Version, 1)}
	o.Dropped, o.Problem = nil, nil // the other decoder calls them
	go func() {
		d := xtm.NewDecoder(pr, o)
		_, _ = d.Next() // an error is the other decoder's as well
		v.found <- d.Version()
		_ = pr.Close()
	}()
	return v
}

func (v *versionOf) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	if v.along != nil && n > 0 {
		if _, closed := v.along.Write(p[:n]); closed != nil {
			v.along = nil
		}
	}
	return n, err
}

// end returns the version, or "" where the document has none.
func (v *versionOf) end() xtm.Version {
	if v.along != nil {
		_ = v.along.Close()
	}
	return <-v.found
}
