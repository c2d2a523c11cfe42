package resources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store"
)

// Folder keeps the sets and parts of all collections of a server, each collection's in a
// folder of its own: by epoch, and by the tag of the site for which they are made. It may be
// used by several goroutines, but for each collection only one at a time may make or remove
// something.
type Folder struct {
	Path  string
	Sizes Sizes

	mu    sync.Mutex
	known map[string]*kept // by path: what is there
}

// kept is what there is of a collection.
type kept struct {
	sets  []*Set // the newest first
	parts map[uint64]*Part
}

// SetsKept is how many sets are kept: whoever is about to read the one before the newest
// can go on.
const SetsKept = 2

func (f *Folder) path(site *Site) string {
	return filepath.Join(f.Path, site.Epoch.String(), site.Tag())
}

// of returns what there is for a site. It is not changed, but replaced.
func (f *Folder) of(site *Site) (*kept, error) {
	path := f.path(site)
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.known[path]; k != nil {
		return k, nil
	}
	k, err := read(path)
	if err != nil {
		return nil, err
	}
	if f.known == nil {
		f.known = map[string]*kept{}
	}
	f.known[path] = k
	return k, nil
}

const (
	setPrefix  = "set-"
	partPrefix = "changes-"
)

// read looks at what is on disk. What is not complete is passed over.
func read(path string) (*kept, error) {
	k := &kept{parts: map[uint64]*Part{}}
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if isDraft(e.Name()) {
			continue
		}
		folder := filepath.Join(path, e.Name())
		if number, ok := strings.CutPrefix(e.Name(), partPrefix); ok {
			n, err := strconv.ParseUint(number, 10, 64)
			part := new(Part)
			if err == nil && readNotes(folder, part) == nil {
				k.parts[n] = part
			}
		} else if strings.HasPrefix(e.Name(), setPrefix) {
			set := &Set{folder: folder}
			if readNotes(folder, set) == nil {
				k.sets = append(k.sets, set)
			}
		}
	}
	slices.SortFunc(k.sets, func(a, b *Set) int { return int(int64(b.Seq) - int64(a.Seq)) })
	return k, nil
}

// change replaces what is known of a site.
func (f *Folder) change(site *Site, change func(*kept)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.known[f.path(site)]
	next := &kept{slices.Clone(k.sets), maps.Clone(k.parts)}
	change(next)
	f.known[f.path(site)] = next
}

// Sets returns the sets for a site, the newest first.
func (f *Folder) Sets(site *Site) ([]*Set, error) {
	k, err := f.of(site)
	if err != nil {
		return nil, err
	}
	return k.sets, nil
}

// Part returns a part for a site, or nil.
func (f *Folder) Part(site *Site, number uint64) (*Part, error) {
	k, err := f.of(site)
	if err != nil {
		return nil, err
	}
	return k.parts[number], nil
}

// Build makes the set of a view, unless it is there, and removes what is older than the one
// before, or was made for other sites.
func (f *Folder) Build(ctx context.Context, site *Site, v *store.View) (*Set, error) {
	k, err := f.of(site)
	if err != nil {
		return nil, err
	}
	for _, set := range k.sets {
		if set.Seq == v.Head {
			return set, nil
		}
	}
	path := f.path(site)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f.sweep(site, k)
	set, err := build(ctx, filepath.Join(path, fmt.Sprint(setPrefix, v.Head)), site, v, f.Sizes)
	if err != nil {
		return nil, fmt.Errorf("the files of ResourceSync: %w", err)
	}
	f.change(site, func(k *kept) {
		k.sets = slices.Insert(k.sets, 0, set)
		k.sets = k.sets[:min(len(k.sets), SetsKept)]
	})
	k, _ = f.of(site)
	f.sweep(site, k)
	return set, nil
}

// BuildPart makes the files of a closed change list, unless they are there.
func (f *Folder) BuildPart(ctx context.Context, site *Site, v *store.View, list store.ChangeList) error {
	if p, err := f.Part(site, list.Number); err != nil || p != nil {
		return err
	}
	path := f.path(site)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	part, err := buildPart(ctx, filepath.Join(path, fmt.Sprint(partPrefix, list.Number)), site, v, list)
	if err != nil {
		return fmt.Errorf("the files of ResourceSync: change list %d: %w", list.Number, err)
	}
	f.change(site, func(k *kept) { k.parts[list.Number] = part })
	return nil
}

// DropParts removes the parts with numbers up to one.
func (f *Folder) DropParts(site *Site, upTo uint64) error {
	if _, err := f.of(site); err != nil {
		return err
	}
	f.change(site, func(k *kept) {
		maps.DeleteFunc(k.parts, func(n uint64, _ *Part) bool { return n <= upTo })
	})
	k, err := f.of(site)
	if err == nil {
		f.sweep(site, k)
	}
	return err
}

// sweep removes what is not among what is kept of a collection: what crashes have left, what
// is old, what was made for other sites. What is open stays readable.
func (f *Folder) sweep(site *Site, k *kept) {
	path := f.path(site)
	names := map[string]bool{}
	for _, set := range k.sets {
		names[filepath.Base(set.folder)] = true
	}
	for n := range k.parts {
		names[fmt.Sprint(partPrefix, n)] = true
	}
	removeOthers(path, names)
	if len(k.sets) > 0 {
		removeOthers(filepath.Dir(path), map[string]bool{filepath.Base(path): true})
		f.mu.Lock()
		maps.DeleteFunc(f.known, func(other string, _ *kept) bool { return other != path && filepath.Dir(other) == filepath.Dir(path) })
		f.mu.Unlock()
	}
}

// Sweep removes what is there of collections that are not among those with the epochs that
// live returns. That is asked after it is seen what there is: so nothing goes of a collection
// that is created meanwhile.
func (f *Folder) Sweep(live func() ([]uuid.UUID, error)) error {
	there, _ := os.ReadDir(f.Path)
	epochs, err := live()
	if err != nil || len(there) == 0 {
		return err
	}
	names := map[string]bool{}
	for _, e := range epochs {
		names[e.String()] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range there {
		if !names[e.Name()] {
			os.RemoveAll(filepath.Join(f.Path, e.Name()))
		}
	}
	maps.DeleteFunc(f.known, func(path string, _ *kept) bool { return !names[filepath.Base(filepath.Dir(path))] })
	return nil
}

func removeOthers(path string, names map[string]bool) {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if !names[e.Name()] {
			os.RemoveAll(filepath.Join(path, e.Name()))
		}
	}
}

// File is one of the files, and whether there is a gzipped copy of it at Path + ".gz".
type File struct {
	Path      string
	MediaType string
	Packed    bool
}

// Open opens the file, or its gzipped copy.
func (f File) Open(packed bool) (*OpenFile, error) {
	path := f.Path
	if packed {
		path += packedEnding
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &OpenFile{file, info.Size()}, nil
}

// OpenFile is a file that is open.
type OpenFile struct {
	*os.File
	size int64
}

// Size returns the size of the file in bytes.
func (f *OpenFile) Size() int64 { return f.size }

// The files of a set: the document under the URL of the Resource List, and of the Resource
// Dump; a part of the list; a package and the copy of its manifest. Numbers count from 1.
func (s *Set) ResourceList() File  { return xml(s.folder, resourceListFile) }
func (s *Set) ResourceDump() File  { return xml(s.folder, resourceDumpFile) }
func (s *Set) List(n int) File     { return xml(s.folder, partFile(n)) }
func (s *Set) Package(n int) File  { return zipped(s.folder, packageFile(n, packageEnding)) }
func (s *Set) Manifest(n int) File { return xml(s.folder, packageFile(n, manifestEnding)) }
func (f *Folder) partPath(site *Site, n uint64) string {
	return filepath.Join(f.path(site), fmt.Sprint(partPrefix, n))
}

// The files of a part.
func (f *Folder) ChangeList(site *Site, n uint64) File {
	return xml(f.partPath(site, n), changeListFile)
}
func (f *Folder) ChangePackage(site *Site, n uint64) File {
	return zipped(f.partPath(site, n), changePackageFile)
}
func (f *Folder) ChangeManifest(site *Site, n uint64) File {
	return xml(f.partPath(site, n), changeManifestFile)
}

func xml(folder, name string) File {
	return File{filepath.Join(folder, name), resourcesync.MediaTypeXML, true}
}

func zipped(folder, name string) File {
	return File{filepath.Join(folder, name), resourcesync.MediaTypeZIP, false}
}
