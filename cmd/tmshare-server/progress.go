package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// reportEvery is how often a program that is not on a terminal is told of.
const reportEvery = 5 * time.Second

// reportWaiting says every so often that an import goes on, until the function that
// it returns is called: for logs, in which nothing can be overwritten.
func reportWaiting(to io.Writer, name string, every time.Duration, read func() int64) (done func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				fmt.Fprintf(to, "%s: %.1f MB sent, waiting for the server\n", name, float64(read())/1e6)
			}
		}
	}()
	return func() { close(stop); <-ended }
}

// counted reads and counts. It is safe to ask for the count meanwhile.
type counted struct {
	r io.Reader
	n atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}
