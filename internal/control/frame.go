package control

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// The two sides exchange frames: a byte for the type, the length of the content in four bytes, and the content.
const (
	frameHello   = 'h' // from the holder: its identity; it will execute one request
	frameRequest = 'r' // from the caller
	frameStdout  = 'o' // from the holder, as are the next three
	frameStderr  = 'e'
	frameWant    = 'w' // the command reads standard input
	frameExit    = 'x' // the exit code: the last frame
	frameStdin   = 'i' // from the caller, one for each frameWant; empty at the end
)

// protocol is the version of all this.
const protocol = 1

// hello identifies the process that holds the data folder.
type hello struct {
	Protocol int
	Program  string
	Version  string
	PID      int
}

const maxFrame = 1 << 20

// output writes frames; several goroutines may.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *output) write(kind byte, content []byte) error {
	frame := make([]byte, 5, 5+len(content))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(content)))
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.w.Write(append(frame, content...))
	return err
}

func (o *output) writeJSON(kind byte, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return o.write(kind, content)
}

// stream is standard output or standard error as frames.
type stream struct {
	*output
	kind byte
}

func (s stream) Write(p []byte) (n int, err error) {
	for n < len(p) {
		part := p[n:min(n+64<<10, len(p))]
		if err := s.write(s.kind, part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

func readFrame(r io.Reader) (kind byte, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too long", n)
	}
	content = make([]byte, n)
	_, err = io.ReadFull(r, content)
	return head[0], content, err
}

func readJSON(r io.Reader, kind byte, value any) error {
	got, content, err := readFrame(r)
	if err != nil {
		return err
	}
	if got != kind {
		return fmt.Errorf("a frame %q where %q is due", got, kind)
	}
	return json.Unmarshal(content, value)
}
