package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"time"
)

// ErrNobody is the error if no process accepts commands for a data folder.
var ErrNobody = errors.New("no process serves the data folder")

// Call makes the process that holds dir execute r, and returns the exit code. The output of the command goes to
// r.Stdout and r.Stderr, and its input comes from r.Stdin. When ctx ends, the command is interrupted there, and its
// last output is read. A failure to write the output does not interrupt the command: the error is returned when it has
// ended.
func Call(ctx context.Context, dir string, r *Request) (code int, err error) {
	conn, who, err := dial(dir)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if who.Protocol != protocol {
		return 0, fmt.Errorf(
			"%s is held by %s, which is of another version than this program and cannot take its commands (%s, this is %s): "+
				"stop it, or restart it with this version",
			dir, who.name(), who.Version, version())
	}
	if who.Version != version() {
		fmt.Fprintf(r.Stderr, "note: executed by %s, which is of another version (%s) than this program (%s): restart it\n",
			who.name(), who.Version, version())
	}
	out := &output{w: conn}
	if err := out.writeJSON(frameRequest, r); err != nil {
		return 0, fmt.Errorf("%s: %w", who.name(), err)
	}
	_ = conn.SetDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() { _ = conn.CloseWrite() })()
	var lost error
	for {
		kind, content, err := readFrame(conn)
		if err != nil {
			return 0, fmt.Errorf(
				"%s, which held the data folder, ended before the command was done (%w); what it has committed stays: run the "+
					"command again", who.name(), err)
		}
		switch kind {
		case frameStdout:
			if _, err := r.Stdout.Write(content); lost == nil {
				lost = err
			}
		case frameStderr:
			_, err = r.Stderr.Write(content)
		case frameWant:
			go answer(out, r.Stdin) // which may take for ever, on a terminal
		case frameExit:
			code, err := strconv.Atoi(string(content))
			return code, errors.Join(lost, err)
		default:
			err = fmt.Errorf("%s sent a frame %q", who.name(), kind)
		}
		if err != nil {
			return 0, err
		}
	}
}

// answer sends the next piece of standard input, or that it has ended.
func answer(out *output, stdin io.Reader) {
	b := make([]byte, 32<<10)
	n, err := stdin.Read(b)
	for n == 0 && err == nil {
		n, err = stdin.Read(b)
	}
	_ = out.write(frameStdin, b[:n]) // if it fails, reading the other side's frames fails too
}

// Holder returns the name of the program that serves dir, and its process. The error is ErrNobody if there is none.
func Holder(dir string) (string, error) {
	conn, who, err := dial(dir)
	if err != nil {
		return "", err
	}
	conn.Close()
	return who.name(), nil
}

func (h *hello) name() string { return fmt.Sprintf("%s (process %d)", h.Program, h.PID) }

// dial connects to the process that serves dir. There is a deadline on the
// connection until the request is sent.
func dial(dir string) (*net.UnixConn, *hello, error) {
	var conn net.Conn
	err := withAddress(dir, func(address string) (err error) {
		conn, err = net.DialTimeout("unix", address, handshake)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, nil, fmt.Errorf("the data folder is in use by a process of another user: %w", err)
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrNobody, err)
	}
	_ = conn.SetDeadline(time.Now().Add(handshake))
	var who hello
	err = readJSON(conn, frameHello, &who)
	var slow net.Error
	switch {
	case err == nil:
		return conn.(*net.UnixConn), &who, nil
	case errors.As(err, &slow) && slow.Timeout():
		err = fmt.Errorf("%s: the process that holds the data folder does not answer", dir)
	default: // it is stopping
		err = fmt.Errorf("%w: %w", ErrNobody, err)
	}
	conn.Close()
	return nil, nil, err
}
