package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
)

// ErrLocked is the error for a folder that another process has open.
var ErrLocked = errors.New("another process is harvesting into it")

// Options are the options of a folder.
type Options struct {
	Fetcher *fetch.Fetcher // for the records
	// Formats are the wanted media types, the best first; "*/*" matches every remaining one. A record in none of them
	// counts as deleted. If empty, those of the last round are kept; the first round takes all.
	Formats  []string
	Parallel int   // records that are fetched from one host at a time; default 8
	MaxSize  int64 // bytes of a record; default 1 GiB

	// Mirror lays out the files as the ids of the records are, which are URIs
	// (tree.go). All representations of a record are then copies of one another.
	Mirror bool

	ConfirmAfter time.Duration // see [follow.Judge]; default 10 min
	Confirm      bool          // a person confirms the doubt of the last round
	// MaxLoss returns an error where so many of the records that are held are not to be removed without a word; may be
	// nil.
	MaxLoss func(lost, held int) error

	Progress func(done, total int) // called with the records of a round; may be nil
}

// Folder is a folder with a file for each record of one source, in one folder or in subfolders like their URIs, and a
// state file. At any Instant it holds what the state file lists, or will after the next opening. It leaves other files
// alone. It is not safe for concurrent use.
type Folder struct {
	Options
	*reading
	names   map[string]string // of files in lower case, after unfinished work is done: the record's id
	dirs    map[string]int    // subfolders in lower case: the number of files in each
	renamed map[string]bool   // folders in which names have changed since the last save
	durable bool              // writes survive a failure of the machine; tests do without
	every   time.Duration     // the least time between two saves in a round
	now     func() time.Time
	own     string // in names of temporary files

	journal *os.File // lists fetched records since the last save; nil: none

	temps atomic.Int64  // number of the last temporary file
	whole bool          // the last round was done to its end
	saved time.Time     // when the state was written last
	took  time.Duration // duration of the last save
}

// What the flags are by default.
const usualParallel, usualMaxSize = 8, 1 << 30

// Open opens the folder for this process alone, creates it if it is missing, and finishes the work of an interrupted
// round.
func Open(dir string, o Options) (_ *Folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	o.Parallel, o.MaxSize = cmp.Or(o.Parallel, usualParallel), cmp.Or(o.MaxSize, usualMaxSize)
	o.ConfirmAfter = cmp.Or(o.ConfirmAfter, 10*time.Minute)
	f := &Folder{Options: o, durable: true, every: 2 * time.Second, now: now, names: map[string]string{},
		dirs: map[string]int{}, own: fmt.Sprintf("%08x", rand.Uint32())}
	if f.reading, err = openToRead(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if f.state.URL != "" && f.state.Mirror != f.Mirror {
		return nil, fmt.Errorf("%s is %s: it goes on as that", dir,
			map[bool]string{true: "a mirror", false: "a folder of records that are harvested, no mirror"}[f.state.Mirror])
	}
	f.state.Mirror = f.Mirror
	for id, held := range f.state.Records {
		if held.File != "" {
			f.occupy(held.File, id)
		}
	}
	if err := f.finish(); err != nil {
		return nil, err
	}
	f.state.Unfinished = nil
	if err := f.replay(); err != nil {
		return nil, err
	}
	return f, f.look()
}

// look reads the names of the files. It removes the remains of an interrupted round, and notes files of records that
// were removed, to be fetched again.
func (f *Folder) look() error {
	there, err := f.there()
	if err != nil {
		return err
	}
	for file := range there {
		if strings.HasPrefix(file, follow.OwnPrefix) && strings.HasSuffix(file, follow.TempSuffix) {
			if err := f.root.Remove(file); err != nil {
				return err
			}
		}
	}
	for id, held := range f.state.Records {
		if held.File == "" || there[held.File] {
			continue
		}
		stated := follow.FixityOf(held.Stated...)
		if len(held.Stated) > 0 {
			stated.Length, stated.Empty = held.Length, held.Length == 0
		}
		missing := cmp.Or(held.Missing, &Missing{
			Updated: held.Updated, Since: f.now(), Reason: "somebody has removed its file from the folder",
			Representations: []follow.Representation{{URL: held.URL, Type: held.Type, Fixity: stated}},
		})
		f.vacate(held.File)
		f.state.Records[id] = &Held{Title: held.Title, Updated: held.Updated, Stale: held.Stale, Missing: missing}
	}
	return nil
}

// there returns the files that are in the folder itself, and in those in which files of
// records should be.
func (f *Folder) there() (map[string]bool, error) {
	dirs := map[string]bool{".": true}
	for _, held := range f.state.Records {
		if held.File != "" {
			dirs[path.Dir(held.File)] = true
		}
	}
	there := make(map[string]bool, len(f.state.Records))
	for dir := range dirs {
		entries, err := fs.ReadDir(f.root.FS(), dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// it is no folder any more
		if info, lost := f.root.Lstat(dir); err != nil && dir != "." && (lost != nil || !info.IsDir()) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type().IsRegular() { // other kinds of files of that name are not ours
				there[path.Join(dir, e.Name())] = true
			}
		}
	}
	return there, nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Close ends the use of the folder.
func (f *Folder) Close() error {
	var err error
	if f.whole {
		err = f.removeAll(follow.PackagePrefix + "*") // which an interrupted round would have gone on with
	}
	if f.journal != nil { // its records were not saved
		err = errors.Join(err, f.journal.Close())
	}
	return errors.Join(err, f.reading.Close())
}

// removeAll removes the files whose names match a pattern.
func (f *Folder) removeAll(pattern string) error {
	names, err := fs.Glob(f.root.FS(), pattern)
	for _, file := range names {
		err = errors.Join(err, f.root.Remove(file))
	}
	return err
}

// State returns the state of the folder. Callers must not change it.
func (f *Folder) State() *State { return f.state }

// Versions implements Inventory. It includes versions that could not be fetched, because they are retried without the
// feed.
func (f *Folder) Versions(_ context.Context, ids []string) (map[string]time.Time, error) {
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

// Each implements Inventory.
func (f *Folder) Each(_ context.Context, yield func(id string) error) error {
	for id := range f.state.Records {
		if err := yield(id); err != nil {
			return err
		}
	}
	return nil
}

// want sets the formats of the state to the wanted ones and reports whether they changed. If so, all records are
// examined again, so the whole feed is read.
func (f *Folder) want() bool {
	if len(f.Formats) == 0 {
		f.Formats = f.state.Formats
	}
	if slices.Equal(f.state.Formats, f.Formats) {
		return false
	}
	f.state.Formats = f.Formats
	f.state.Mark = follow.Mark{Feed: f.state.Mark.Feed, Complete: f.state.Mark.Complete, Begun: f.state.Mark.Begun}
	for _, held := range f.state.Records {
		held.Stale = true
	}
	return true
}

// put gives a temporary file the name of the record's file, from the next save on. It
// takes the place of the file that the record had before.
func (f *Folder) put(id string, held *Held, temp string) error {
	if err := f.place(id, held, temp); err != nil {
		return err
	}
	return f.enter(id, held, temp)
}

func (f *Folder) place(id string, held *Held, temp string) error {
	before := f.state.Records[id]
	f.state.Records[id] = held
	if f.keepsName(before, held) {
		held.File = before.File
	} else {
		if before != nil {
			f.drop(before.File)
		}
		for n := 0; held.File == ""; n++ {
			file := f.candidate(id, before, held, n)
			free, err := f.free(file)
			if err != nil {
				return err
			}
			if free {
				held.File = file
			}
		}
		f.occupy(held.File, id)
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

// keepsName reports whether a new version of a record stands under the name of that before.
func (f *Folder) keepsName(before, held *Held) bool {
	return before != nil && before.File != "" && (f.Mirror || endingOf(before.Type) == endingOf(held.Type))
}

// drop removes a record's file, from the next save on.
func (f *Folder) drop(file string) {
	if file != "" {
		f.discard(file)
		f.vacate(file)
		f.unfinished(file, "")
	}
}

// discard removes the temporary file of a name if it was not renamed yet.
func (f *Folder) discard(file string) {
	if temp := f.state.Unfinished[file]; temp != "" {
		_ = f.root.Remove(temp) // if that fails, the next Open removes it
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
	return fmt.Sprintf("%s-%s-%d%s", follow.OwnPrefix, f.own, f.temps.Add(1), follow.TempSuffix)
}

// saveNowAndThen saves the state at intervals that limit both the work lost by an interruption and the time spent
// saving.
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

// saveAll saves the state after all work is finished.
func (f *Folder) saveAll() error {
	unfinished := len(f.state.Unfinished) > 0
	err := f.save()
	if err == nil && unfinished {
		err = f.save()
	}
	return err
}
