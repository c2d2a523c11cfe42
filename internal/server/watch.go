package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/store"
)

// Watched is a file that a collection follows.
type Watched struct {
	Collection, File string

	// Published is the file as it was when the collection was last published
	// from it; nil: not known, so the file is published if it says anything else
	// than the collection.
	Published fs.FileInfo
}

// Watch publishes the files whenever they change, until Close.
//
// It looks at each file every second (WatchEvery) rather than be notified of
// changes. A look is a stat, which costs nothing beside what it watches for, and
// it sees what notifications do not: changes by other machines on a network
// file system, files replaced by renaming, removed and put back, and the symbolic
// links of links that a Kubernetes config map consists of, all without knowing
// of any of them. What it may miss is a change that leaves the identity, the
// size and the modification time of the file as they were.
func (s *Server) Watch(files []Watched) {
	one := make(chan struct{}, 1)
	for _, w := range files {
		f := &follower{Watched: w, s: s, one: one}
		s.watched.set(w.Collection, false)
		s.background.begin(func() { f.follow(s.background.ctx) })
	}
}

// follower follows one file.
type follower struct {
	Watched
	s   *Server
	one chan struct{} // full while a file is read, so that one map at a time is in memory

	last     fs.FileInfo // the file at the look before; nil: it was not there
	failures int         // in a row, of the file as it is
	wait     int         // looks until the next try
	reported string      // the failure that the log has last, "" when all is well
}

func (f *follower) follow(ctx context.Context) {
	t := time.NewTicker(f.s.WatchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f.look(ctx)
		}
	}
}

// look publishes the file if it has changed, and then rested from one look to the
// next: whoever writes it should be given the time to finish. That the same file
// is seen twice also makes sure that no later change has the same modification
// time, as long as the clock of the file system is as fine as the looks.
func (f *follower) look(ctx context.Context) {
	now, err := os.Stat(f.File)
	if err != nil {
		f.last = nil
		f.failed(err)
		return
	}
	rested := sameFile(f.last, now)
	f.last = now
	switch {
	case !rested:
		f.failures, f.wait = 0, 0
		return
	case sameFile(f.Published, now):
		f.fine()
		return
	case f.wait > 0:
		f.wait--
		return
	}
	switch err := f.publish(ctx, now); {
	case err == nil:
		f.Published = now
		f.fine()
	case ctx.Err() == nil:
		f.failed(err)
		// A broken file stays so until it changes, and then it is read at once.
		// Other things mend themselves.
		f.wait = min(1<<min(f.failures, 30), maxLooks)
	}
}

// maxLooks is how many looks lie between two tries at most: with the default,
// about ten minutes.
const maxLooks = 600

// errNotRested says that a file has changed while it was read.
var errNotRested = errors.New("server: the file is being written")

// publish publishes the file, which looks like now.
func (f *follower) publish(ctx context.Context, now fs.FileInfo) error {
	select {
	case f.one <- struct{}{}:
		defer func() { <-f.one }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !now.Mode().IsRegular() {
		return fmt.Errorf("server: %s is no regular file", f.File)
	}
	file, err := os.Open(f.File)
	if err != nil {
		return err
	}
	defer file.Close()
	var c store.Collection
	if err := f.s.Store.View(f.Collection, func(v *store.View) error { c = v.Collection; return nil }); err != nil {
		return err
	}
	tm, dropped, err := f.s.read(untilDone{ctx, file}, f.File, c.SP)
	if after, err := file.Stat(); err != nil || !sameFile(now, after) {
		return errNotRested // half of the old content and half of the new may even be well-formed
	}
	if err != nil {
		return err
	}
	_, err = f.s.commit(ctx, f.Collection, dropped, newVersion(tm))
	return err
}

// sameFile reports whether a file is the same as it was before.
func sameFile(before, now fs.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// failed reports a failure, once. Many pass by themselves: a file that is written
// slowly, or replaced. So only the second one in a row counts.
func (f *follower) failed(err error) {
	f.failures++
	reason := err.Error()
	if p := asProblem(err); p != nil {
		reason = p.Detail
	}
	if f.failures < 2 || reason == f.reported {
		return
	}
	f.reported = reason
	f.s.watched.set(f.Collection, true)
	f.s.Logger.Error("file not published; the version before stays", "collection", f.Collection, "file", f.File, "error", reason)
}

func (f *follower) fine() {
	f.failures = 0
	if f.reported != "" {
		f.reported = ""
		f.s.watched.set(f.Collection, false)
		f.s.Logger.Info("file is in order again", "collection", f.Collection, "file", f.File)
	}
}

// watched says of each collection that follows a file whether that cannot be
// published.
type watched struct {
	mu     sync.Mutex
	broken map[string]bool
}

func (w *watched) set(collection string, broken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == nil {
		w.broken = map[string]bool{}
	}
	w.broken[collection] = broken
}

func (w *watched) of(collection string) (broken, follows bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	broken, follows = w.broken[collection]
	return broken, follows
}

// untilDone reads until the context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
