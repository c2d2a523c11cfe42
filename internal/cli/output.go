package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
)

// WriteJSON writes the output of a command for programs.
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

// output is the output of a command. Because most printing code ignores errors, it keeps the first one, and the command
// reports it at its end.
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

// join adds an error of the output to that of a command, unless it contains it.
func (o *output) join(err error) error {
	if o.failed == nil || err != nil && strings.Contains(err.Error(), o.failed.Error()) {
		return err
	}
	return errors.Join(err, o.failed)
}
