package resources

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store/files"
)

const (
	setPrefix  = "set-"
	partPrefix = "changes-"
)

// newGroup returns the name of a new group: two processes never write to the same.
func newGroup(prefix, kind string, number uint64) string {
	return fmt.Sprintf("%s%s%d-%.8s/", prefix, kind, number, uuid.NewString())
}

// group is a group of files that belong together.
type group struct {
	name string // prefix of the names of the files
	made made   // their recorded content
}

// read reads the groups. It skips incomplete and damaged ones, and does not read known notes again. If a set is
// damaged, it also skips the sets before it, so that a new one is made.
func read(ctx context.Context, from files.Store, prefix string, before *kept) (*kept, error) {
	all, err := groups(ctx, from, prefix)
	if err != nil {
		return nil, err
	}
	k, knownSets, knownParts := &kept{parts: map[uint64]*Part{}}, map[string]*Set{}, map[string]*Part{}
	if before != nil {
		for _, s := range before.sets {
			knownSets[s.group.name] = s
		}
		for _, p := range before.parts {
			knownParts[p.group.name] = p
		}
	}
	var since uint64 // the least sequence of a set that is not before a damaged one
	for _, name := range slices.Sorted(maps.Keys(all)) {
		there := all[name]
		kind, number, ok := kindOf(name)
		if !there.complete || !ok {
			continue
		}
		switch kind {
		case partPrefix:
			part := knownParts[name]
			if part == nil {
				part = &Part{group: group{name: name}}
				if part.group.made, err = readNotes(ctx, from, name, part); err != nil {
					return nil, err
				}
			}
			if there.has(part.group.made) && k.parts[number] == nil { // the first of several
				k.parts[number] = part
			}
		case setPrefix:
			set := knownSets[name]
			if set == nil {
				set = &Set{group: group{name: name}}
				if set.group.made, err = readNotes(ctx, from, name, set); err != nil {
					return nil, err
				}
			}
			if !there.has(set.group.made) {
				since = max(since, number)
			} else if !slices.ContainsFunc(k.sets, func(other *Set) bool { return other.Seq == set.Seq }) {
				k.sets = append(k.sets, set)
			}
		}
	}
	k.sets = slices.DeleteFunc(k.sets, func(s *Set) bool { return s.Seq < since })
	slices.SortFunc(k.sets, func(a, b *Set) int { return cmp.Compare(b.Seq, a.Seq) })
	return k, nil
}

// kindOf returns the kind and the number of a group from its name.
func kindOf(name string) (kind string, number uint64, ok bool) {
	kind, rest, _ := strings.Cut(path.Base(name), "-")
	digits, _, _ := strings.Cut(rest, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return kind + "-", number, err == nil
}

// found is a group as listed.
type found struct {
	names    []string
	lengths  map[string]int64 // of the files, by their names in the group
	complete bool             // it has notes
	last     time.Time        // when the last of its files was made
}

// has reports whether all recorded files exist with their lengths. If the notes are damaged, all is empty.
func (f *found) has(all made) bool {
	for name, c := range all {
		if length, ok := f.lengths[name]; !ok || length != c.Length {
			return false
		}
	}
	return all != nil
}

// groups returns the groups whose names begin with a prefix, by name.
func groups(ctx context.Context, from files.Store, prefix string) (map[string]*found, error) {
	all := map[string]*found{}
	for f, err := range from.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		folder, file := path.Split(f.Name)
		g := all[folder]
		if g == nil {
			g = &found{lengths: map[string]int64{}}
			all[folder] = g
		}
		g.lengths[file] = f.Size
		if g.names = append(g.names, f.Name); file == notes { // remove notes first: other files need them
			g.names, g.complete = slices.Insert(g.names[:len(g.names)-1], 0, f.Name), true
		}
		if f.Made.After(g.last) {
			g.last = f.Made
		}
	}
	return all, nil
}
