package control

import (
	"bytes"
	"errors"
	"strings"
)

// Outcome is the output of a command, and its exit code.
type Outcome struct {
	Out, Err string
	Code     int
}

// Capture executes a command and returns its output. It has no input and no terminal.
func (r *Request) Capture(run func() int) Outcome {
	var out, errs limited
	r.Stdin, r.StdoutTerminal, r.StderrTerminal = strings.NewReader(""), false, false
	r.Stdout, r.Stderr = &out, &errs
	code := run()
	return Outcome{Out: out.String(), Err: errs.String(), Code: code}
}

// maxPrinted is the maximum size in bytes of each captured output.
const maxPrinted = 64 << 20

// limited is a buffer that takes [maxPrinted] bytes.
type limited struct{ bytes.Buffer }

var errTooMuch = errors.New("it prints too much to be shown here: use the command")

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPrinted {
		return 0, errTooMuch
	}
	return l.Buffer.Write(p)
}
