package web

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Recorder is the ResponseWriter of all handlers. It records data about a request and its answer for the log and the
// metrics, and applies time limits to the client. Handlers may set the exported fields before the answer begins.
type Recorder struct {
	http.ResponseWriter
	control           *http.ResponseController
	conn              *connection // nil: it is not known, or others use it too
	slowClientTimeout time.Duration
	body              *timedBody // nil: the request has none

	id      string            // of the request
	route   string            // template of the URL, "" for an unknown URL
	vars    map[string]string // values of the route's variables; nil: the request has them
	Private bool              // the answer depends on the client
	Varies  string            // further headers that it depends on, as in Vary
	Waited  time.Duration     // for something to answer with, as the request wished
	Settled time.Time         // time of the last change of the content; zero: too recent
	Stated  http.Header       // further headers of an answer that is no error
	echo    echoed            // the value that the answer repeats

	guessed bool // its token is wrong, which is counted

	later func() error  // sends the handler's output after it has returned; nil: nothing
	place chan struct{} // the places among which the request has one; nil: none

	status    int       // of the answer, 0 until it begins
	sent      int64     // bytes of the body
	extended  time.Time // when the client was last given more time
	Failure   error     // the error of the server
	truncated bool      // the answer was cut off
	gone      bool      // the client does not take it
}

type recorderKey struct{}

func newRecorder(w http.ResponseWriter, r *http.Request, slowClientTimeout time.Duration) (*Recorder, *http.Request) {
	x := &Recorder{ResponseWriter: w, control: http.NewResponseController(w), conn: connectionOf(r),
		slowClientTimeout: slowClientTimeout, id: requestID(r)}
	if x.conn != nil {
		x.extended = x.conn.extended
	}
	r = r.WithContext(context.WithValue(r.Context(), recorderKey{}, x))
	if r.Body != nil && r.Body != http.NoBody {
		x.body = &timedBody{ReadCloser: r.Body, x: x}
		r.Body = x.body
	}
	return x, r
}

// firstHeaders sets the headers that every answer has.
func (x *Recorder) firstHeaders(r *http.Request) {
	x.Header().Set("X-Content-Type-Options", "nosniff")
	x.Header().Set("X-Request-Id", x.id)
	if r.ProtoMajor == 1 && (len(r.TransferEncoding) > 0 || r.ProtoMinor == 0) {
		// net/http does not report whether the request also had a Content-Length, or a coding that HTTP/1.0 does not
		// have. A proxy in front may have read another length, and the next bytes may be from another client (RFC 9112
		// §6.1, Transfer-Encoding).
		x.Header().Set("Connection", "close")
	}
}

// RecorderOf returns the recorder of the request r of a handler.
func RecorderOf(r *http.Request) *Recorder {
	return r.Context().Value(recorderKey{}).(*Recorder)
}

// requestID returns the X-Request-Id of a proxy in front, if it can be logged and
// sent back without harm, or a new one.
func requestID(r *http.Request) string {
	if given := r.Header.Get("X-Request-Id"); isHarmless(given) {
		return given
	}
	return strconv.FormatUint(rand.Uint64()|1<<63, 16)
}

// isHarmless reports whether a value of a request can be logged and sent back: it has up to 64 letters and digits of
// ASCII, dots, hyphens and underscores.
func isHarmless(given string) bool {
	harmless := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c)
	}
	return given != "" && len(given) <= 64 && strings.TrimFunc(given, harmless) == ""
}

// Unwrap lets http.ResponseController reach the connection.
func (x *Recorder) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *Recorder) WriteHeader(status int) {
	if status < 200 {
		x.ResponseWriter.WriteHeader(status)
		return
	}
	x.status = status
	if x.Private {
		keepPrivate(x.Header())
	}
	if x.Varies != "" {
		x.Header().Add("Vary", x.Varies)
	}
	if status < 400 {
		maps.Copy(x.Header(), x.Stated)
	}
	x.echo.set(x.Header(), status)
	if x.body != nil && !x.body.ended {
		// net/http reads a part of the unread body before it sends the answer, so the deadline of the answer must
		// include that time.
		x.extended = time.Now().Add(x.slowClientTimeout)
		_ = x.control.SetReadDeadline(x.extended)
		_ = x.control.SetWriteDeadline(x.extended.Add(x.slowClientTimeout))
		if x.conn != nil {
			x.conn.extended = time.Time{}
		}
	}
	x.extend()
	x.ResponseWriter.WriteHeader(status)
}

// keepPrivate keeps an answer out of caches that several people use (RFC 9111
// §5.2.2.7, private).
func keepPrivate(h http.Header) {
	if !strings.Contains(strings.Join(h.Values("Vary"), ","), "Authorization") {
		h.Add("Vary", "Authorization, Cookie")
	}
	switch cache := h.Get("Cache-Control"); {
	case strings.Contains(cache, "public"):
		h.Set("Cache-Control", strings.Replace(cache, "public", "private", 1))
	case cache == "":
		h.Set("Cache-Control", "private")
	case !strings.Contains(cache, "private") && !strings.Contains(cache, "no-store"):
		h.Set("Cache-Control", "private, "+cache)
	}
}

// piece is the number of bytes that a client must send, or take, within slowClientTimeout.
const piece = 64 << 10

func (x *Recorder) Write(p []byte) (n int, err error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if x.isWhole(p) {
		return x.writeWhole(p)
	}
	for {
		x.extend()
		m, err := x.ResponseWriter.Write(p[:min(len(p), piece)])
		n += m
		x.sent += int64(m)
		if p = p[m:]; err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// isWhole reports whether p is the body of a small answer.
func (x *Recorder) isWhole(p []byte) bool {
	return x.conn != nil && x.sent == 0 && leastHeld <= len(p) && len(p) <= mostHeld &&
		x.Header().Get("Content-Length") == strconv.Itoa(len(p))
}

func (x *Recorder) writeWhole(p []byte) (n int, err error) {
	x.extend()
	err = x.conn.inOnePiece(func() (err error) {
		if n, err = x.ResponseWriter.Write(p); err != nil {
			return err
		}
		return x.control.Flush()
	})
	x.sent += int64(n)
	x.gone = err != nil
	return n, err
}

// ReadFrom lets the system send a file.
func (x *Recorder) ReadFrom(from io.Reader) (n int64, err error) {
	to, ok := x.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return io.Copy(struct{ io.Writer }{x}, from)
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	left := &io.LimitedReader{R: from, N: math.MaxInt64}
	if limited, ok := from.(*io.LimitedReader); ok { // only one around the file may be left
		left = limited
	}
	for left.N > 0 {
		x.extend()
		m, err := to.ReadFrom(&io.LimitedReader{R: left.R, N: min(left.N, WriteBuffer)})
		n += m
		x.sent += m
		if left.N -= m; err != nil || m == 0 {
			return n, err
		}
	}
	return n, nil
}

// WriteBuffer is the size of the system's buffer for an answer, in bytes, which connections are set to. A write
// continues only when much of it was taken, so the client gets the time for all of it at once.
const WriteBuffer = 4 * piece

// extend gives the client more time to take the answer, but not at every write, because there are many small ones.
func (x *Recorder) extend() {
	if now := time.Now(); now.Sub(x.extended) >= x.slowClientTimeout/10 {
		x.extended = now
		if x.conn != nil {
			x.conn.extended = now
		}
		// not possible without a connection, in tests
		_ = x.control.SetWriteDeadline(now.Add(2 * WriteBuffer / piece * x.slowClientTimeout))
	}
}

// timedBody is the body of a request. Only the time in which the server waits
// for the client counts.
type timedBody struct {
	io.ReadCloser
	x     *Recorder
	left  time.Duration
	due   int // bytes that must come before the deadline
	ended bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	if b.due <= 0 {
		b.left, b.due = b.x.slowClientTimeout, piece
	}
	start := time.Now()
	_ = b.x.control.SetReadDeadline(start.Add(b.left))
	n, err := b.ReadCloser.Read(p)
	_ = b.x.control.SetReadDeadline(time.Time{}) // on HTTP/2 it would end the body while the handler works
	b.left -= time.Since(start)
	b.due -= n
	b.ended = b.ended || err == io.EOF
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = Problemf(http.StatusRequestTimeout, "the body came too slowly: %d bytes are expected within %s", piece,
			b.x.slowClientTimeout)
	}
	return n, err
}
