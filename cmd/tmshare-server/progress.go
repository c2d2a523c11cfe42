package main

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/extension"
)

// reporting shows the progress of an upload until its result is called.
func reporting(d *extension.Display, name string, r *counted) (done func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer d.Clear()
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				p := client.Progress{Source: name, Phase: "sending", Unit: client.Bytes, Done: r.n.Load(), Total: r.size}
				if r.ended.Load() {
					p.Phase = "sent, waiting for the server"
				}
				d.Progress(p)
			}
		}
	}()
	return func() { close(stop); <-ended }
}

// counted is a reader that counts bytes. The count is safe for concurrent use.
type counted struct {
	r     io.Reader
	size  int64 // 0: not known
	n     atomic.Int64
	ended atomic.Bool
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	c.ended.Store(err == io.EOF)
	return n, err
}
