package xtm

import (
	"errors"
	"io"
	"runtime"

	"github.com/tmshare/tmshare/internal/ahead"
)

// reader reads the elements of a document for the builder. It reads those of a long document ahead in a separate
// goroutine, because parsing takes about as long as building the map. It is not safe for concurrent use. It reports
// tolerated errors and problems in document order.
type reader struct {
	dec   *Decoder
	last  Element            // may still be in use
	held  int64              // bytes of memory that elements have taken, about, while not reading ahead
	ahead *ahead.Queue[step] // nil: not reading ahead
}

// step is an element, or a report.
type step struct {
	element Element
	tell    func(*SyntaxError)
	what    *SyntaxError
}

// longDocument is the number of buffered bytes from which on reading ahead is worthwhile.
const longDocument = 64 << 10

func newReader(r io.Reader, o Options) *reader {
	x := &reader{}
	o.Tolerated, o.Problem = x.inOrder(o.Tolerated), x.inOrder(o.Problem)
	x.dec = NewDecoder(stoppable{r, x}, o)
	x.dec.own = &ownership{}
	return x
}

// next returns the next element, or io.EOF. The element is valid until next is called again.
func (x *reader) next() (Element, error) {
	x.dec.own.release(x.last)
	x.last = nil
	if x.ahead == nil && x.held > longDocument && runtime.GOMAXPROCS(0) > 1 {
		x.readAhead()
	}
	for x.ahead != nil {
		switch s, err := x.ahead.Next(); {
		case err == errPaused:
			x.ahead, x.dec.own.isAhead = nil, false
		case err != nil:
			return nil, err
		case s.tell != nil:
			s.tell(s.what)
		default:
			return s.element, nil
		}
	}
	e, err := x.dec.Next()
	x.last, x.held = e, x.held+x.dec.held
	return e, err
}

// errPaused interrupts reading ahead.
var errPaused = errors.New("paused")

// readAhead begins to read ahead. That pauses at a mergeMap: the readers of several documents
// may count together.
func (x *reader) readAhead() {
	d := x.dec
	x.held, d.own.isAhead = 0, true
	x.ahead = ahead.New(func(s step) { d.own.release(s.element) })
	go x.ahead.Run(func() error {
		for {
			e, err := d.Next()
			if err != nil {
				return err
			}
			if !x.ahead.Add(step{element: e}, d.held) {
				return ahead.ErrStopped
			}
			if _, ok := e.(*MergeMap); ok {
				return errPaused
			}
		}
	})
}

// end returns when the document is not read any more.
func (x *reader) end() {
	if x.ahead != nil {
		x.ahead.Stop()
	}
}

// inOrder returns a function that calls tell after the previous elements were consumed.
func (x *reader) inOrder(tell func(*SyntaxError)) func(*SyntaxError) {
	if tell == nil {
		return nil
	}
	return func(e *SyntaxError) {
		switch {
		case x.ahead == nil:
			tell(e)
		case !x.ahead.Add(step{tell: tell, what: e}, 0):
			x.dec.err = ahead.ErrStopped
		}
	}
}

// stoppable is a document that ends when its consumer stops.
type stoppable struct {
	io.Reader
	x *reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if a := s.x.ahead; a != nil && a.Stopped() {
		return 0, ahead.ErrStopped
	}
	return s.Reader.Read(p)
}
