package formats

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

const (
	progressFrom  = 20 << 20 // bytes; what is shorter is read before anybody wonders
	progressEvery = 500 * time.Millisecond
)

// Terminal returns f if that is a terminal, for [Source.Progress], and else nil.
func Terminal(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// progress reads r and writes how far it has come, on one line that it takes
// away at the end.
type progress struct {
	r     io.Reader
	out   io.Writer
	name  string
	size  int64 // 0: not known
	read  int64
	next  time.Time
	shown bool
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read += int64(n)
	if long := p.size >= progressFrom || p.read >= progressFrom; long && time.Now().After(p.next) {
		of := ""
		if p.size > 0 {
			of = fmt.Sprintf(" of %d", p.size>>20)
		}
		fmt.Fprintf(p.out, "\r%s: %d%s MB read ", p.name, p.read>>20, of)
		p.next, p.shown = time.Now().Add(progressEvery), true
	}
	return n, err
}

func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K") // ECMA-48 §8.3.41, EL: erase to the end of the line
	}
}
