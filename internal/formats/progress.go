package formats

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	progressFrom  = 8 << 20 // bytes; what is shorter is read before anybody wonders
	progressEvery = 500 * time.Millisecond
)

// Terminal returns f if that is a terminal, for [Source.Progress], and else nil.
func Terminal(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Progress reads R, and shows on a terminal how much of it was read, on one line.
type Progress struct {
	R    io.Reader
	Out  io.Writer
	Name string
	Size int64  // 0: not known
	Verb string // what is done by reading: "read", "sent"
	End  string // what is said at the end; "": the line goes

	mu    sync.Mutex // a transport may still read when the answer is there
	read  int64
	next  time.Time
	shown bool
}

func (p *Progress) Read(b []byte) (int, error) {
	n, err := p.R.Read(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += int64(n)
	long := p.Size >= progressFrom || p.read >= progressFrom
	switch {
	case long && err == io.EOF && p.End != "":
		fmt.Fprintf(p.Out, "\r\x1b[K%s: %d MB %s, %s\n", p.Name, p.read>>20, p.Verb, p.End)
		p.shown = false
	case long && time.Now().After(p.next):
		of := ""
		if p.Size > 0 {
			of = fmt.Sprintf(" of %d", p.Size>>20)
		}
		fmt.Fprintf(p.Out, "\r%s: %d%s MB %s ", p.Name, p.read>>20, of, p.Verb)
		p.next, p.shown = time.Now().Add(progressEvery), true
	}
	return n, err
}

// Done takes the line away, and shows no more.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.Out, "\r\x1b[K") // ECMA-48 §8.3.41, EL: erase to the end of the line
	}
	p.Out = io.Discard
}
