package changes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/extension"
)

// sink passes lines on in the process of the command: to a shell command, with the sender's folder and environment, or
// to the output. Then it saves the position after them.
type sink struct {
	flags       *flags
	dir         string
	out, errors io.Writer
	path        string // of the file with the position; "": none
	lock        *os.File
	at          string // where to begin

	rest   []byte // the beginning of a line
	lines  []byte // not passed on yet
	count  int    // number of these
	behind string // the position after them
	failed error
}

func newSink(a *extension.App, f *flags) (*sink, error) {
	s := &sink{flags: f, dir: a.Request.Dir, out: a.Request.Stdout, errors: a.Request.Stderr, at: f.from}
	if f.state == "" {
		return s, nil
	}
	if s.path = f.state; !filepath.IsAbs(s.path) {
		s.path = filepath.Join(s.dir, s.path)
	}
	lock, err := os.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	held, err := durable.Lock(lock, false)
	if held {
		err = &cli.ExitError{Code: cli.Conflict, Err: fmt.Errorf("another process goes on from %s: wait until it ends, or "+
			"give another file", s.path)}
	}
	if err == nil {
		err = s.load()
	}
	if err != nil {
		s.lock.Close()
		return nil, err
	}
	return s, nil
}

// load reads the position that is kept, if one is.
func (s *sink) load() error {
	b, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	s.at = strings.TrimSpace(string(b))
	if _, err := parsePosition(s.at); err != nil {
		return &cli.ExitError{Code: cli.BrokenInput, Err: fmt.Errorf("%s: keeps no position (%.40q): remove it to begin anew",
			s.path, s.at)}
	}
	return nil
}

func (s *sink) unlock() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// Write implements [io.Writer].
func (s *sink) Write(p []byte) (n int, err error) {
	for rest := p; s.failed == nil && len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		if s.rest = append(s.rest, line...); !whole {
			break
		}
		rest = after
		s.failed = s.line(append(s.rest, '\n'))
		s.rest = s.rest[:0]
	}
	if s.failed != nil {
		return 0, s.failed
	}
	return len(p), nil
}

// line adds a line. One without a kind has the position after those before it.
func (s *sink) line(text []byte) error {
	var l Line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("a line of the process that holds the store: %w", err)
	}
	s.behind = l.Position
	if l.Kind == "" {
		return s.hand()
	}
	if write := formats[s.flags.format]; write != nil {
		var err error
		if text, err = write(&l); err != nil {
			return err
		}
	}
	s.lines = append(s.lines, text...)
	if s.count++; s.count < s.flags.batch {
		return nil
	}
	return s.hand()
}

// hand passes the lines on, and saves the position after them.
func (s *sink) hand() error {
	switch {
	case s.count == 0:
	case s.flags.exec == "":
		if _, err := s.out.Write(s.lines); err != nil {
			return err
		}
	default:
		c := exec.Command("sh", "-c", s.flags.exec)
		c.Dir, c.Stdin, c.Stdout, c.Stderr = s.dir, bytes.NewReader(s.lines), s.out, s.errors
		c.Env = append(os.Environ(), "TMSHARE_POSITION="+s.behind)
		if err := c.Run(); err != nil {
			return fmt.Errorf("the command %q: %w; the next run gives it these lines again", s.flags.exec, err)
		}
	}
	s.lines, s.count = s.lines[:0], 0
	if s.path == "" {
		return nil
	}
	return durable.WriteFile(s.path, []byte(s.behind+"\n"))
}
