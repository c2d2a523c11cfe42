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

// read looks at what there is. Groups that are not complete are passed over, and those that were known
// before are not read again.
func read(ctx context.Context, from files.Store, prefix string, before *kept) (*kept, error) {
	all, err := groups(ctx, from, prefix)
	if err != nil {
		return nil, err
	}
	k, known := &kept{parts: map[uint64]*Part{}}, map[string]any{}
	if before != nil {
		for _, s := range before.sets {
			known[s.group] = s
		}
		for _, p := range before.parts {
			known[p.group] = p
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !all[name].complete {
			continue
		}
		base := path.Base(name)
		switch number, _, _ := strings.Cut(strings.TrimPrefix(base, partPrefix), "-"); {
		case strings.HasPrefix(base, partPrefix):
			n, err := strconv.ParseUint(number, 10, 64)
			part, ok := known[name].(*Part)
			if !ok && err == nil {
				part = &Part{group: name}
				if ok, err = readNotes(ctx, from, name, part); err != nil {
					return nil, err
				}
			}
			if ok && k.parts[n] == nil { // the first of several
				k.parts[n] = part
			}
		case strings.HasPrefix(base, setPrefix):
			set, ok := known[name].(*Set)
			if !ok {
				set = &Set{group: name}
				if ok, err = readNotes(ctx, from, name, set); err != nil {
					return nil, err
				}
			}
			if ok && !slices.ContainsFunc(k.sets, func(other *Set) bool { return other.Seq == set.Seq }) {
				k.sets = append(k.sets, set)
			}
		}
	}
	slices.SortFunc(k.sets, func(a, b *Set) int { return cmp.Compare(b.Seq, a.Seq) })
	return k, nil
}

// group is what there is of a group of files.
type group struct {
	names    []string
	complete bool      // it has notes
	made     time.Time // the last of its files
}

// groups returns the groups whose names begin with a prefix, by name.
func groups(ctx context.Context, from files.Store, prefix string) (map[string]*group, error) {
	all := map[string]*group{}
	for f, err := range from.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		folder, file := path.Split(f.Name)
		g := all[folder]
		if g == nil {
			g = &group{}
			all[folder] = g
		}
		if g.names = append(g.names, f.Name); file == notes { // which goes first: without it, the others are of no use
			g.names, g.complete = slices.Insert(g.names[:len(g.names)-1], 0, f.Name), true
		}
		if f.Made.After(g.made) {
			g.made = f.Made
		}
	}
	return all, nil
}
