package durable

import (
	"context"
	"io"
)

// ContextWriter writes until a context ends.
type ContextWriter struct {
	Context context.Context
	Writer  io.Writer
}

// Write implements [io.Writer].
func (c ContextWriter) Write(p []byte) (int, error) {
	if err := c.Context.Err(); err != nil {
		return 0, err
	}
	return c.Writer.Write(p)
}
