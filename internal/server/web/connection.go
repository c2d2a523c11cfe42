package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listener makes connections with the settings of this package. The [http.Server] that accepts from it also needs
// [ConnContext].
//
// The system's buffer for slow clients is bounded, because their time limits depend on it. A small answer is sent in
// one piece, while net/http would send its first 4 KiB separately, which doubles the work for the system and the
// client.
type Listener struct{ net.Listener }

// Accept implements [net.Listener].
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	tcp, ok := c.(*net.TCPConn)
	if err != nil || !ok {
		return c, err
	}
	_ = tcp.SetWriteBuffer(WriteBuffer) // as much as the system allows
	return &connection{TCPConn: tcp}, nil
}

// connection is used by one request at a time: those of HTTP/2 leave it alone.
type connection struct {
	*net.TCPConn
	extended time.Time // when the client last got more time, unless it was reduced since
	held     *[]byte   // nil: writes are not buffered
}

type connectionKey struct{}

// ConnContext is that of an [http.Server].
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	if own, ok := c.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, own)
	}
	return ctx
}

// connectionOf returns the connection of a request, nil where several requests may use it at once.
func connectionOf(r *http.Request) *connection {
	if r.ProtoMajor != 1 {
		return nil
	}
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

// Answers of these lengths are sent in one piece: net/http does that with shorter ones, and for longer ones the copy
// costs too much.
const (
	leastHeld = 2 << 10
	mostHeld  = 32 << 10
)

var heldBuffers = sync.Pool{New: func() any { b := make([]byte, 0, mostHeld+(4<<10)); return &b }}

// Write implements [net.Conn].
func (c *connection) Write(b []byte) (int, error) {
	if c.held == nil {
		return c.TCPConn.Write(b)
	}
	*c.held = append(*c.held, b...)
	return len(b), nil
}

// inOnePiece calls write, and then sends its output.
func (c *connection) inOnePiece(write func() error) error {
	c.held = heldBuffers.Get().(*[]byte)
	err := write()
	held := c.held
	c.held = nil
	if len(*held) > 0 && err == nil {
		_, err = c.TCPConn.Write(*held)
	}
	*held = (*held)[:0]
	heldBuffers.Put(held)
	return err
}
