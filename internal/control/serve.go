package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// ErrStopping is the cause with which the context of a command ends because the
// process that holds the data folder stops.
var ErrStopping = errors.New("the process that holds the data folder is stopping")

// ErrInterrupted is the cause with which it ends if the caller interrupts it, or has ended.
var ErrInterrupted = errors.New("interrupted by the caller")

const (
	handshake = 10 * time.Second // for hello and request
	lastWords = 3 * time.Second  // for output after ErrStopping
)

// Server executes the command lines of other processes.
type Server struct {
	run      func(context.Context, *Request) int
	hello    hello
	path     string
	socket   os.FileInfo
	listener net.Listener

	ctx     context.Context
	stop    context.CancelCauseFunc
	mu      sync.Mutex
	closing bool
	busy    int
	running sync.WaitGroup // as many
}

// Serve listens in dir, which this process must hold, and executes commands with run, concurrently. run returns the
// exit code; its context ends when the caller is interrupted or has ended, or when this process stops, with a
// [context.Cause]. Callers get the name program.
//
// Only the user of this process can connect to the socket. Serve replaces the socket of a killed process.
func Serve(dir, program string, run func(context.Context, *Request) int) (*Server, error) {
	return serveAs(dir, hello{Protocol: protocol, Program: program, Version: version(), PID: os.Getpid()}, run)
}

func serveAs(dir string, h hello, run func(context.Context, *Request) int) (*Server, error) {
	s := &Server{run: run, path: filepath.Join(dir, socketName), hello: h}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	err := withAddress(dir, func(address string) (err error) {
		s.listener, err = (&net.ListenConfig{Control: private}).Listen(context.Background(), "unix", address)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.listener.(*net.UnixListener).SetUnlinkOnClose(false) // it may know another path
	if err = os.Chmod(s.path, 0o600); err == nil {
		s.socket, err = os.Lstat(s.path)
	}
	if err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	go s.accept()
	return s, nil
}

// Busy returns the number of running commands of other processes.
func (s *Server) Busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}

// Close accepts no more requests and waits for running ones. When ctx ends, it cancels them with ErrStopping as the
// cause.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.listener.Close()
	// not that of another process, in a folder that has taken the place
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.socket) {
		os.Remove(s.path)
	}
	defer s.stop(ErrStopping)
	defer context.AfterFunc(ctx, func() { s.stop(ErrStopping) })()
	s.running.Wait()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			time.Sleep(50 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		taken := !s.closing
		if taken {
			s.busy++
			s.running.Add(1)
		}
		s.mu.Unlock()
		if !taken { // without hello: the caller tries again
			conn.Close()
			continue
		}
		go func() {
			s.handle(conn)
			conn.Close()
			s.mu.Lock()
			s.busy--
			s.mu.Unlock()
			s.running.Done()
		}()
	}
}

func (s *Server) handle(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(handshake))
	out := &output{w: conn}
	if out.writeJSON(frameHello, s.hello) != nil {
		return
	}
	var r Request
	if readJSON(conn, frameRequest, &r) != nil { // the caller has ended
		return
	}
	_ = conn.SetDeadline(time.Time{})
	ctx, end := context.WithCancelCause(s.ctx)
	defer end(nil)
	defer context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Now().Add(lastWords)) })()
	in := &input{ctx: ctx, out: out, frames: make(chan []byte)}
	go func() { end(in.receive(conn)) }()
	r.Stdin, r.Stdout, r.Stderr = in, stream{out, frameStdout}, stream{out, frameStderr}
	code := s.execute(ctx, &r)
	_ = out.write(frameExit, []byte(strconv.Itoa(code))) // an error means that the caller has ended
}

// execute runs a command. A panic of the command does not end this process.
func (s *Server) execute(ctx context.Context, r *Request) (code int) {
	defer func() {
		if cause := recover(); cause != nil {
			fmt.Fprintf(r.Stderr, "%s: panic: %v\n%s", s.hello.Program, cause, debug.Stack())
			code = 1
		}
	}()
	return s.run(ctx, r)
}

// input is the standard input of the caller, which is requested when it is read.
type input struct {
	ctx    context.Context
	out    *output
	frames chan []byte
	rest   []byte
	ended  bool
}

// receive reads from the caller until the end, and returns the reason of the end.
func (in *input) receive(conn net.Conn) error {
	for {
		kind, content, err := readFrame(conn)
		if err != nil || kind != frameStdin {
			return ErrInterrupted
		}
		select {
		case in.frames <- content:
		case <-in.ctx.Done():
			return ErrInterrupted
		}
	}
}

func (in *input) Read(p []byte) (int, error) {
	if len(in.rest) == 0 && !in.ended {
		if err := in.out.write(frameWant, nil); err != nil {
			return 0, err
		}
		select {
		case in.rest = <-in.frames:
			in.ended = len(in.rest) == 0
		case <-in.ctx.Done():
			return 0, context.Cause(in.ctx)
		}
	}
	if in.ended {
		return 0, io.EOF
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}
