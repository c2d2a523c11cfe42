package harvest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
)

// ErrLocked says that another process has a folder open.
var ErrLocked = errors.New("another process is harvesting into it")

// A Source says what has become of its records. [AtomPMH] is one.
type Source interface {
	News(ctx context.Context, ref string, mark Mark, h Holder) (*News, error)
}

// Options say what is harvested into a folder, and how.
type Options struct {
	Fetcher *fetch.Fetcher // for the records
	// Formats are the media types that are wanted, the best first; "*/*" is all that are
	// left. A record that is in none of them counts as deleted. With none here those of
	// the last round stay, which are all in the first one.
	Formats  []string
	Parallel int   // records that are fetched at a time; default 8
	MaxSize  int64 // bytes of a record; default 1 GiB

	Progress func(done, total int) // told of the records of a round; may be nil
}

// Folder is a folder with a file for each record of one source, and a state file. It
// holds at any instant what its state file says, or will when it is opened the next time.
// Files that others put there are left alone. One goroutine may use it at a time.
type Folder struct {
	Options
	root    *os.Root
	dir     *os.File // for the lock
	state   *State
	names   map[string]string // of files, as they will be when nothing is unfinished: the record's id
	durable bool              // what is done lasts even if the machine fails; tests do without
	every   time.Duration     // the least time between two saves in a round
	now     func() time.Time
	own     string // in names of temporary files

	temps atomic.Int64  // number of the last temporary file
	saved time.Time     // when the state was written last
	took  time.Duration // how long that took
}

// Open opens the folder, which is made where there is none, for this process alone, and
// finishes what an interrupted round has left.
func Open(dir string, o Options) (_ *Folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	o.Parallel = cmp.Or(o.Parallel, 8)
	o.MaxSize = cmp.Or(o.MaxSize, 1<<30)
	f := &Folder{Options: o, durable: true, every: 2 * time.Second, now: now, names: map[string]string{}, own: fmt.Sprintf("%08x", rand.Uint32())}
	if f.dir, err = os.Open(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := lock(f.dir); err != nil {
		return nil, fmt.Errorf("harvest: %s: %w", dir, err)
	}
	if f.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	if f.state, err = readState(f.root); err != nil {
		return nil, err
	}
	for id, held := range f.state.Records {
		if held.File != "" {
			f.names[held.File] = id
		}
	}
	if err := f.finish(); err != nil {
		return nil, err
	}
	f.state.Unfinished = nil
	return f, f.look()
}

// look finds out which files are there. It removes what an interrupted round has left.
// Files of records that somebody has removed are to be fetched again.
func (f *Folder) look() error {
	entries, err := f.dir.ReadDir(-1)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		file := e.Name()
		there[file] = e.Type().IsRegular() // whatever else has the name is not ours
		if strings.HasPrefix(file, ownPrefix) && strings.HasSuffix(file, tempSuffix) {
			if err := f.root.Remove(file); err != nil {
				return err
			}
		}
	}
	for id, held := range f.state.Records {
		if held.File == "" || there[held.File] {
			continue
		}
		missing := cmp.Or(held.Missing, &Missing{
			Updated: held.Updated, Since: f.now(), Reason: "somebody has removed its file from the folder",
			Representations: []Representation{{held.URL, held.Type}},
		})
		delete(f.names, held.File)
		f.state.Records[id] = &Held{Title: held.Title, Updated: held.Updated, Stale: held.Stale, Missing: missing}
	}
	return nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Close ends the use of the folder.
func (f *Folder) Close() error {
	err := f.dir.Close() // and with it the lock
	if f.root != nil {
		err = errors.Join(err, f.root.Close())
	}
	return err
}

// State returns what is known of the folder. It is not to be changed.
func (f *Folder) State() *State { return f.state }

// Versions implements Holder. A version that could not be had is known as well: it is
// tried for again without the feed.
func (f *Folder) Versions(ids []string) (map[string]time.Time, error) {
	versions := make(map[string]time.Time, len(ids))
	for _, id := range ids {
		held, ok := f.state.Records[id]
		switch {
		case !ok:
		case held.Stale:
			versions[id] = time.Time{}
		case held.Missing != nil:
			versions[id] = held.Missing.Updated
		default:
			versions[id] = held.Updated
		}
	}
	return versions, nil
}

// Each implements Holder.
func (f *Folder) Each(yield func(id string)) error {
	for id := range f.state.Records {
		yield(id)
	}
	return nil
}

// want makes the formats of the state those that are wanted now. If they are others, all
// records are looked at anew: the feed is read whole, whatever is held. It reports whether
// they are.
func (f *Folder) want() bool {
	if len(f.Formats) == 0 {
		f.Formats = f.state.Formats
	}
	if slices.Equal(f.state.Formats, f.Formats) {
		return false
	}
	f.state.Formats = f.Formats
	f.state.Mark = Mark{Feed: f.state.Mark.Feed, Complete: f.state.Mark.Complete, Begun: f.state.Mark.Begun}
	for _, held := range f.state.Records {
		held.Stale = true
	}
	return true
}

// put gives a temporary file the name of the record's file, from the next save on. It
// takes the place of the file that the record had before.
func (f *Folder) put(id string, held *Held, temp string) error {
	before := f.state.Records[id]
	f.state.Records[id] = held
	if before != nil && before.File != "" && extension(before.Type) == extension(held.Type) {
		held.File = before.File
	} else {
		if before != nil {
			f.drop(before.File)
		}
		for n := 0; held.File == ""; n++ {
			file := name(id, held.Type, n)
			free, err := f.free(file)
			if err != nil {
				return err
			}
			if free {
				held.File = file
			}
		}
		f.names[held.File] = id
	}
	f.discard(held.File)
	f.unfinished(held.File, temp)
	return nil
}

// forget removes a record, and its file from the next save on. It reports whether there
// was one.
func (f *Folder) forget(id string) bool {
	held := f.state.Records[id]
	delete(f.state.Records, id)
	if held == nil || held.File == "" {
		return false
	}
	f.drop(held.File)
	return true
}

// free reports whether a name is neither that of another record's file nor that of a file
// that is somebody else's.
func (f *Folder) free(file string) (bool, error) {
	if _, taken := f.names[file]; taken {
		return false, nil
	}
	if _, ours := f.state.Unfinished[file]; ours { // it is to be removed
		return true, nil
	}
	_, err := f.root.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// drop removes a record's file, from the next save on.
func (f *Folder) drop(file string) {
	if file != "" {
		f.discard(file)
		delete(f.names, file)
		f.unfinished(file, "")
	}
}

// discard removes the temporary file that was to have a name, and has not got it yet.
func (f *Folder) discard(file string) {
	if temp := f.state.Unfinished[file]; temp != "" {
		_ = f.root.Remove(temp) // if it stays, the next one who opens the folder removes it
	}
}

func (f *Folder) unfinished(file, temp string) {
	if f.state.Unfinished == nil {
		f.state.Unfinished = map[string]string{}
	}
	f.state.Unfinished[file] = temp
}

// temp returns a new name for a temporary file. No other process has used it either: a
// state that one has left may speak of its files.
func (f *Folder) temp() string {
	return fmt.Sprintf("%s-%s-%d%s", ownPrefix, f.own, f.temps.Add(1), tempSuffix)
}

// saveNowAndThen saves what was done, so that little is lost by an interruption and
// little time by saving.
func (f *Folder) saveNowAndThen() error {
	const share = 10
	if f.now().Sub(f.saved) < max(f.every, share*f.took) {
		return nil
	}
	begin := f.now()
	err := f.save()
	f.saved = f.now()
	f.took = f.saved.Sub(begin)
	return err
}

// saveAll saves what was done, and that nothing is unfinished.
func (f *Folder) saveAll() error {
	unfinished := len(f.state.Unfinished) > 0
	err := f.save()
	if err == nil && unfinished {
		err = f.save()
	}
	return err
}
