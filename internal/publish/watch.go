package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/filestate"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Watched is a file that a collection follows, with the files that it merges in.
type Watched struct {
	Collection, File string
	Root             string // the folder that must contain these; "": that of the file

	// was is the state of the files when the collection was last published from them; nil: not known, so they are
	// published if their content differs from the collection. content are their digests then.
	was     looks
	content digests
}

// looks is the state of some files, by their paths; nil: missing.
type looks map[string]fs.FileInfo

// again returns the present state of the same files.
func (l looks) again() looks {
	now := looks{}
	for path := range l {
		now[path], _ = os.Stat(path)
	}
	return now
}

// digests are those of the contents of files (SHA-256), by their paths.
type digests map[string][sha256.Size]byte

// read reads the files that are there.
func (l looks) read(ctx context.Context) (digests, error) {
	all := digests{}
	for path, info := range l {
		if info == nil {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, formats.UntilDone(ctx, file))
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		all[path] = [sha256.Size]byte(sum.Sum(nil))
	}
	return all, nil
}

// sized reports whether the files are there that were there, and are as long as before.
func (l looks) sized(now looks) bool {
	return maps.EqualFunc(l, now, func(before, now fs.FileInfo) bool {
		return before == nil && now == nil || before != nil && now != nil && before.Size() == now.Size()
	})
}

// same reports whether two looks have the same files, without changes in between.
func (l looks) same(now looks) bool { return maps.EqualFunc(l, now, sameFile) }

// agree reports whether the files in both looks are unchanged.
func (l looks) agree(now looks) bool {
	for path, info := range now {
		if before, ok := l[path]; ok && !sameFile(before, info) {
			return false
		}
	}
	return true
}

// Watcher publishes files whenever they change.
//
// It polls each file every second (Every) instead of using notifications. A poll is a stat, which is cheap, and detects
// changes that notifications miss: by other machines on a network file system, replacement by renaming, removal and
// restoration, and the nested symbolic links of a Kubernetes config map. A file with other times, another size or
// identity is read, and its content decides. If the system has no time of change ([filestate.Describe]), a change that
// keeps size and modification time is missed.
//
// It is safe for concurrent use.
type Watcher struct {
	Publisher *Publisher
	Reader    *Reader
	MaxDelete losses.Limit // of a new version of a map
	Every     time.Duration

	turn chan struct{} // full while a file is read, so that only one map is in memory

	mu     sync.Mutex
	broken map[string]*store.Dependent // by collection: why its file cannot be published; nil: it can
}

// NewWatcher returns a watcher without files.
func NewWatcher(p *Publisher, r *Reader, limit losses.Limit, every time.Duration) *Watcher {
	return &Watcher{Publisher: p, Reader: r, MaxDelete: limit, Every: every, turn: make(chan struct{}, 1),
		broken: map[string]*store.Dependent{}}
}

// Follow returns a job that publishes a file whenever it changes, until its context ends.
func (w *Watcher) Follow(file Watched) (job func(context.Context)) {
	w.set(file.Collection, nil)
	f := &follower{Watched: file, w: w}
	return f.follow
}

// Broken reports whether a collection follows a file that cannot be published.
func (w *Watcher) Broken(collection string) (broken, follows bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	why, follows := w.broken[collection]
	return why != nil, follows
}

// AllBroken returns the names of the collections whose files cannot be published, and the reasons.
func (w *Watcher) AllBroken() (names []string, why []store.Dependent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.broken)) {
		if d := w.broken[name]; d != nil {
			names, why = append(names, name), append(why, *d)
		}
	}
	return names, why
}

func (w *Watcher) set(collection string, why *store.Dependent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[collection] = why
}

// follower follows one file.
type follower struct {
	Watched
	w *Watcher

	last     looks  // at the look before; all files that the last reading looked at
	failures int    // in a row, of the file as it is
	wait     int    // looks until the next try
	reported string // the failure that the log has last, "" when all is well
	warned   looks  // the files whose tolerated faults were last logged
	logged   string // these faults
}

func (f *follower) follow(ctx context.Context) {
	t := time.NewTicker(f.w.Every)
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

// look publishes the file if it has changed, and was then the same in two looks, so that its writer has the time to
// finish. This also ensures that no later change has the same modification time, if the clock of the file system is at
// least as fine as the interval of looks.
func (f *follower) look(ctx context.Context) {
	if f.last == nil {
		f.last = looks{f.File: nil}
		maps.Copy(f.last, f.was)
	}
	before, now := f.last, f.last.again()
	f.last = now
	switch {
	case now[f.File] == nil:
		_, err := os.Stat(f.File)
		f.failed(cmp.Or(err, errNotRested)) // nil: it is there since a moment ago
		return
	case !before.same(now):
		f.failures, f.wait = 0, 0
		return
	case f.was.same(now):
		f.fine()
		return
	case f.wait > 0:
		f.wait--
		return
	case f.holds(ctx, now):
		f.was = now
		f.fine()
		return
	}
	seen, err := f.publish(ctx, now)
	if len(seen) > 0 {
		f.last = seen
	}
	switch {
	case err == nil:
		f.was = seen
		f.fine()
	case ctx.Err() == nil && f.renamed(err):
	case ctx.Err() == nil:
		f.failed(err)
		// A broken file stays so until it changes, and then it is read at once.
		// Other things mend themselves.
		f.wait = min(1<<min(f.failures, 30), maxLooks)
	}
}

// holds reports whether the files still have the content that was published last, although their states differ: they
// were touched, for example, or are another copy.
func (f *follower) holds(ctx context.Context, now looks) bool {
	if len(f.content) == 0 || !f.was.sized(now) {
		return false
	}
	content, err := now.read(ctx)
	return err == nil && maps.Equal(f.content, content)
}

// maxLooks is the maximum number of looks between two tries: with the default, about ten minutes.
const maxLooks = 600

// errNotRested is the error for a file that has changed while it was read.
var errNotRested = errors.New("the file is being written")

// publish publishes the file, with the files that it merges in, as they are now. seen is the state of all files that
// were read.
func (f *follower) publish(ctx context.Context, now looks) (seen looks, err error) {
	select {
	case f.w.turn <- struct{}{}:
		defer func() { <-f.w.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !now[f.File].Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", f.File)
	}
	var content digests
	done, err := f.w.Publisher.Publish(ctx, Publication{
		Collection: f.Collection, Decide: NewVersion(f.w.MaxDelete), RDF: f.w.Reader.IsExchanged(f.File),
		Read: func(sp string) (*tmdm.TopicMap, *xtm.Tally, error) {
			file, err := f.w.Reader.readFile(ctx, &f.Watched, sp)
			seen, content = file.seen, file.content
			if !now.agree(seen) || !seen.same(seen.again()) {
				return nil, nil, errNotRested // half of the old content and half of the new may even be well-formed
			}
			if err == nil && (f.warned == nil || !f.warned.same(seen)) { // it is tried again and again while it is held back
				f.warned = seen
				f.tell(&file.tolerated)
			}
			return file.tm, &file.tolerated, err
		},
	})
	if err == nil {
		f.content = content
		f.warnRenumbered(done)
	}
	return seen, err
}

// tell logs the rules that the file violates: in one line if they are the same as in the version before.
func (f *follower) tell(tolerated *xtm.Tally) {
	warnings := formats.Warnings(tolerated)
	last := f.logged
	if f.logged = formats.Texts(warnings); f.logged != last {
		f.w.Reader.logTolerated(tolerated)
	} else if len(warnings) > 0 {
		f.w.Publisher.Logger.Warn(formats.SameWarnings(len(warnings)), "collection", f.Collection, "file", f.File)
	}
}

// warnRenumbered logs that the ids of the file were renumbered. Violations of the rules of XTM are logged when it is
// read.
func (f *follower) warnRenumbered(done *Published) {
	for _, w := range done.Warnings {
		if w.Rule == losses.RenumberedRule {
			f.w.Publisher.Logger.Warn(w.Text, "collection", f.Collection, "file", f.File)
		}
	}
}

// sameFile reports whether a file is the same as it was before; nil: not there.
func sameFile(before, now fs.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return os.SameFile(before, now) && filestate.Describe(before) == filestate.Describe(now)
}

// renamed continues with the new name of the collection, and reports whether it was renamed.
func (f *follower) renamed(err error) bool {
	former, is := errors.AsType[*store.FormerError](err)
	if !is || former.To == "" {
		return false
	}
	f.w.Publisher.Logger.Warn(
		"a collection that follows a file was renamed: give serve --map with its name at the next start", "collection",
		former.To, "from", f.Collection, "file", f.File)
	f.Collection = former.To
	f.w.set(f.Collection, nil)
	return true
}

// failed reports a failure, once. Many pass by themselves: a file that is written
// slowly, or replaced. So only the second one in a row counts.
func (f *follower) failed(err error) {
	f.failures++
	reason, advice := err.Error(), formats.Remedy(f.File, err)
	if loses, ok := errors.AsType[*losses.TooManyError](err); ok {
		reason += ". Lost would be: " + strings.Join(loses.Lines(), "; ")
		advice = fmt.Sprintf(`mend it, or publish it all the same: "tmshare-server import %s %s --max-delete %s"`,
			f.Collection, f.File, losses.Allowing(&loses.Measure))
	}
	if f.failures < 2 || reason == f.reported {
		return
	}
	f.reported = reason
	f.w.set(f.Collection, &store.Dependent{Name: "collection " + f.Collection, State: "file not published",
		Wrong: "the file that it follows is not published: " + reason, Advice: advice})
	f.w.Publisher.Logger.Error("file not published; the version before stays", "collection", f.Collection, "file", f.File,
		"error", reason, "advice", advice)
}

func (f *follower) fine() {
	f.failures = 0
	if f.reported != "" {
		f.reported = ""
		f.w.set(f.Collection, nil)
		f.w.Publisher.Logger.Info("file is in order again", "collection", f.Collection, "file", f.File)
	}
}
