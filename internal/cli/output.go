package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
)

// WriteJSON writes what a command prints for programs.
func WriteJSON(w io.Writer, value any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(value)
	if err == nil {
		_, err = w.Write(iri.ShownInJSON(b.Bytes()))
	}
	return err
}

// output is where a command prints. Most of what prints has no use for an error of each line: the first one is kept
// here, and told when the command has ended.
type output struct {
	io.Writer
	failed error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
}

// join adds to the error of a command that its output could not be written, unless it says so already.
func (o *output) join(err error) error {
	if o.failed == nil || err != nil && strings.Contains(err.Error(), o.failed.Error()) {
		return err
	}
	return errors.Join(err, o.failed)
}
