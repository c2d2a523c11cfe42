package sim

import (
	"context"
	"errors"
	"sync"

	"github.com/tmshare/tmshare/internal/kv"
)

// disk is the engine of one process. It can simulate a crash at a commit: then all reads and writes fail, and the rows
// are those before or after that commit.
type disk struct {
	kv.Engine

	mu    sync.Mutex
	left  int // commits until the process dies; negative: it does not
	after bool
	died  bool
}

var errDied = errors.New("the process has died")

func newDisk(e kv.Engine) *disk { return &disk{Engine: e, left: -1} }

// dieAfter simulates a crash at the commit after so many others, before or after it is written.
func (d *disk) dieAfter(commits int, behind bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.after = commits, behind
}

func (d *disk) stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.died
}

func (d *disk) alive() error {
	if d.stopped() {
		return errDied
	}
	return nil
}

// commit carries out a commit, unless the process dies before.
func (d *disk) commit(f func() error) error {
	d.mu.Lock()
	if d.died {
		d.mu.Unlock()
		return errDied
	}
	d.died = d.left == 0
	if d.left >= 0 {
		d.left--
	}
	died, after := d.died, d.after
	d.mu.Unlock()
	if died && !after {
		return errDied
	}
	if err := f(); err != nil || !died {
		return err
	}
	return errDied
}

// Snapshot implements [kv.Engine].
func (d *disk) Snapshot(ctx context.Context) (kv.Reader, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	return d.Engine.Snapshot(ctx)
}

// Begin implements [kv.Engine].
func (d *disk) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	return d.writer(d.Engine.Begin(ctx, since))
}

// Bulk implements [kv.Engine].
func (d *disk) Bulk(ctx context.Context) (kv.Writer, error) {
	return d.writer(d.Engine.Bulk(ctx))
}

func (d *disk) writer(w kv.Writer, err error) (kv.Writer, error) {
	if err == nil {
		err = d.alive()
	}
	return &writer{w, d}, err
}

// DeletePrefix implements [kv.Engine].
func (d *disk) DeletePrefix(ctx context.Context, prefix []byte) error {
	return d.commit(func() error { return d.Engine.DeletePrefix(ctx, prefix) })
}

type writer struct {
	kv.Writer
	disk *disk
}

// Commit implements [kv.Writer].
func (w *writer) Commit() error { return w.disk.commit(w.Writer.Commit) }
