package resources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
)

// Folder stores the sets and parts of all collections of a store, each a group of files named by epoch and by the tag
// of its site. It is safe for concurrent use, but only one goroutine per collection may make or remove groups.
// Processes that share the files see each other's groups, and two that make the same group do no harm.
type Folder struct {
	Store Store
	Sizes Sizes

	mu    sync.Mutex
	known map[string]*kept // by prefix of names: the groups
}

// Store has the methods of the store that a Folder needs.
type Store interface {
	Files() files.Store
	Scratch() string
	View(ctx context.Context, name string, f func(*store.View) error) error
	Extend(ctx context.Context, name string, f func(*store.View) error) error
	// Touch raises the version of the store, so that other processes read the groups again.
	Touch(ctx context.Context) error
}

// kept holds the groups of a collection.
type kept struct {
	version store.Version // of the state in which it was read
	sets    []*Set        // the newest first
	parts   map[uint64]*Part
	swept   bool // all other files are removed
}

// SetsKept is the number of sets that are kept. A reader of the previous one can continue.
const SetsKept = 2

// alone reports whether no other process has the files.
func (f *Folder) alone() bool {
	_, ok := f.Store.Files().(files.Folder)
	return ok
}

const root = files.Resources + "/"

func prefixOf(site *Site) string { return root + site.Epoch.String() + "/" + site.Tag() + "/" }

// files returns the groups for the site of a collection. The result is never changed, but replaced.
func (f *Folder) files(v *store.View, site *Site) (*kept, error) {
	prefix := prefixOf(site)
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.known[prefix]
	if before != nil && (f.alone() || before.version.Same(v.Version())) {
		return before, nil
	}
	k, err := read(v.Context(), v.Files(), prefix, before)
	if err != nil {
		return nil, err
	}
	k.version = v.Version()
	f.know(prefix, k)
	return k, nil
}

// know records the groups. The caller holds the mutex.
func (f *Folder) know(prefix string, k *kept) {
	if f.known == nil {
		f.known = map[string]*kept{}
	}
	f.known[prefix] = k
}

// Sets returns the sets for a site, the newest first.
func (f *Folder) Sets(v *store.View, site *Site) ([]*Set, error) {
	k, err := f.files(v, site)
	if err != nil {
		return nil, err
	}
	return k.sets, nil
}

// Part returns a part for a site, or nil.
func (f *Folder) Part(v *store.View, site *Site, number uint64) (*Part, error) {
	k, err := f.files(v, site)
	if err != nil {
		return nil, err
	}
	return k.parts[number], nil
}

// change replaces the groups of a site, and notifies other processes.
func (f *Folder) change(ctx context.Context, site *Site, k *kept, change func(*kept)) (*kept, error) {
	next := &kept{sets: slices.Clone(k.sets), parts: maps.Clone(k.parts)}
	change(next)
	f.mu.Lock()
	f.know(prefixOf(site), next)
	f.mu.Unlock()
	if f.alone() {
		return next, nil
	}
	return next, f.Store.Touch(ctx)
}

// draft begins a group.
func (f *Folder) draft(ctx context.Context, site *Site, kind string, number uint64) *draft {
	return &draft{ctx: ctx, files: f.Store.Files(), scratch: f.Store.Scratch(),
		name: newGroup(prefixOf(site), kind, number)}
}

// Build makes the set of a view unless it exists, and removes all sets but this and the previous one, and those for
// other sites, which an earlier process may have left.
func (f *Folder) Build(ctx context.Context, site *Site, v *store.View) (*Set, error) {
	k, err := f.files(v, site)
	if err != nil {
		return nil, err
	}
	for _, set := range k.sets {
		if set.Seq != v.Head {
			continue
		}
		if len(k.sets) > SetsKept {
			k, err = f.change(ctx, site, k, dropSets)
		}
		if err == nil && !k.swept {
			err = f.sweep(ctx, site, k)
		}
		return set, err
	}
	if err := f.sweep(ctx, site, k); err != nil {
		return nil, err
	}
	set, err := build(func() *draft { return f.draft(ctx, site, setPrefix, v.Head) }, site, v, f.Sizes)
	if err != nil {
		return nil, fmt.Errorf("the files of ResourceSync: %w", err)
	}
	k, err = f.change(ctx, site, k, func(k *kept) {
		k.sets = slices.Insert(k.sets, 0, set)
		dropSets(k)
	})
	if err != nil {
		return nil, err
	}
	return set, f.sweep(ctx, site, k)
}

// dropSets drops the sets that are not kept any more.
func dropSets(k *kept) { k.sets = k.sets[:min(len(k.sets), SetsKept)] }

// BuildPart makes the files of a closed change list, unless they are there. Damaged ones that were there stay until
// [Folder.DropParts].
func (f *Folder) BuildPart(ctx context.Context, site *Site, v *store.View, list ChangeList) (made bool, err error) {
	k, err := f.files(v, site)
	if err != nil || k.parts[list.Number] != nil {
		return false, err
	}
	part, err := buildPart(f.draft(ctx, site, partPrefix, list.Number), site, v, list)
	if err != nil {
		return false, fmt.Errorf("the files of ResourceSync: change list %d: %w", list.Number, err)
	}
	_, err = f.change(ctx, site, k, func(k *kept) { k.parts[list.Number] = part })
	return true, err
}

// DropParts removes the parts with numbers up to one, and all files that belong to no group.
func (f *Folder) DropParts(ctx context.Context, v *store.View, site *Site, upTo uint64) error {
	k, err := f.files(v, site)
	if err != nil {
		return err
	}
	next, err := f.change(ctx, site, k, func(k *kept) {
		maps.DeleteFunc(k.parts, func(n uint64, _ *Part) bool { return n <= upTo })
	})
	for n, part := range k.parts {
		if err == nil && n <= upTo {
			err = files.RemoveAll(ctx, f.Store.Files(), part.group.name)
		}
	}
	if err == nil {
		err = f.sweep(ctx, site, next)
	}
	return err
}

// sweep removes the files of a collection that belong to no group: those left by crashes, old ones, and those for other
// sites. Open files stay readable. It removes incomplete groups only when they are old, because other processes may be
// making them.
func (f *Folder) sweep(ctx context.Context, site *Site, k *kept) error {
	keep := map[string]bool{}
	for _, set := range k.sets {
		keep[set.group.name] = true
	}
	for _, part := range k.parts {
		keep[part.group.name] = true
	}
	own, swept := prefixOf(site), true
	all, err := groups(ctx, f.Store.Files(), root+site.Epoch.String()+"/")
	if err != nil {
		return err
	}
	for name, g := range all {
		ours := strings.HasPrefix(name, own)
		switch {
		case keep[name]:
		case (ours || len(k.sets) > 0) &&
			(f.alone() || ours && g.complete && isSuperseded(name, k) || time.Since(g.last) > files.Unfinished):
			if err := remove(ctx, f.Store.Files(), g); err != nil {
				return err
			}
		default:
			swept = false
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if swept && f.known[own] == k {
		f.known[own] = &kept{k.version, k.sets, k.parts, true}
	}
	if f.alone() && len(k.sets) > 0 {
		maps.DeleteFunc(f.known, func(other string, _ *kept) bool {
			return other != own && strings.HasPrefix(other, root+site.Epoch.String()+"/")
		})
	}
	return nil
}

// isSuperseded reports whether a complete group that is not kept is no longer of use: it is of an old set, or the group
// that is kept of its number has a name before its own. Where two processes have made the same, both keep the first by
// name in the end, and neither removes it. What another has made a moment ago stays.
func isSuperseded(name string, k *kept) bool {
	kind, n, ok := kindOf(name)
	if !ok {
		return false
	}
	if kind == partPrefix {
		return k.parts[n] != nil && k.parts[n].group.name < name
	}
	for _, set := range k.sets {
		if set.Seq == n {
			return set.group.name < name
		}
	}
	return len(k.sets) > 0 && n < k.sets[0].Seq
}

func remove(ctx context.Context, from files.Store, g *found) error {
	for _, name := range g.names {
		if err := from.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Sweep removes the files of collections without an epoch that live returns, and unfinished files of others when they
// are too old to be in work. It calls live after listing the files, so that it removes none of a collection created
// meanwhile.
func (f *Folder) Sweep(ctx context.Context, live func() ([]uuid.UUID, error)) error {
	all, err := groups(ctx, f.Store.Files(), root)
	if err != nil {
		return err
	}
	epochs, err := live()
	if err != nil {
		return err
	}
	is := map[string]bool{}
	for _, e := range epochs {
		is[e.String()] = true
	}
	epochOf := func(name string) string {
		epoch, _, _ := strings.Cut(strings.TrimPrefix(name, root), "/")
		return epoch
	}
	for name, g := range all {
		if !is[epochOf(name)] || !g.complete && time.Since(g.last) > files.Unfinished {
			if err := remove(ctx, f.Store.Files(), g); err != nil {
				return err
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.known, func(prefix string, _ *kept) bool { return !is[epochOf(prefix)] })
	return nil
}

// File is one of the files, with a flag for a gzipped copy.
type File struct {
	Name      string
	MediaType string
	Packed    bool

	group group
}

// ErrNotThere is the error for a file that was removed or is damaged.
var ErrNotThere = errors.New("resources: a file is not there as it was made")

// Open opens a file, or its gzipped copy. If it is missing, or has another length than recorded, the error is
// [ErrNotThere], and the next call reads the groups of the site again, without damaged ones.
func (f *Folder) Open(ctx context.Context, file File, packed bool) (files.File, error) {
	name := file.Name
	if packed {
		name += packedEnding
	}
	opened, err := f.Store.Files().Open(ctx, name)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err == nil && opened.Size() == file.group.made[path.Base(name)].Length:
		return opened, nil
	case err == nil:
		opened.Close()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	prefix, _ := path.Split(strings.TrimSuffix(file.group.name, "/"))
	delete(f.known, prefix)
	return nil, fmt.Errorf("%w: %s", ErrNotThere, name)
}

// The files of a set: the document under the URL of the Resource List, and of the Resource
// Dump; a part of the list; a package and the copy of its manifest. Numbers count from 1.
func (s *Set) ResourceList() File  { return s.group.xml(resourceListFile) }
func (s *Set) ResourceDump() File  { return s.group.xml(resourceDumpFile) }
func (s *Set) List(n int) File     { return s.group.xml(partFile(n)) }
func (s *Set) Package(n int) File  { return s.group.zipped(packageFile(n, packageEnding)) }
func (s *Set) Manifest(n int) File { return s.group.xml(packageFile(n, manifestEnding)) }

// The files of a part.
func (p *Part) ListFile() File     { return p.group.xml(changeListFile) }
func (p *Part) PackageFile() File  { return p.group.zipped(changePackageFile) }
func (p *Part) ManifestFile() File { return p.group.xml(changeManifestFile) }

func (g group) xml(name string) File { return File{g.name + name, resourcesync.MediaTypeXML, true, g} }

func (g group) zipped(name string) File {
	return File{g.name + name, resourcesync.MediaTypeZIP, false, g}
}
