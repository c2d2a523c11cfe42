package resources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
)

// The remedies for a damaged group.
const (
	repairRemedy = "\"check --repair\" removes it with the files that belong to it; they are made again when somebody " +
		"asks for them"
	repairedNow = "nothing: it was removed with the files that belong to it, and they are made again when somebody " +
		"asks for them"
)

// Check compares the files of all groups with their notes, and calls report with each damaged group. With repair, it
// removes these. It may run while others make and remove groups.
func Check(ctx context.Context, s *store.DB, repair bool, report func(store.Finding), progress func(string)) error {
	all, err := groups(ctx, s.Files(), root)
	if err != nil || len(all) == 0 {
		return err
	}
	collections, err := s.Collections(ctx)
	if err != nil && !errors.Is(err, store.ErrDamaged) { // which is found otherwise
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g := all[name]
		if !g.complete {
			continue
		}
		progress(strings.TrimSuffix(name, "/"))
		fault, err := g.compare(ctx, s.Files(), name)
		if err != nil {
			return err
		}
		if fault == "" || !isThere(ctx, s.Files(), name+notes) {
			continue
		}
		f := store.Finding{Where: "ResourceSync", What: fault, Remedy: repairRemedy, Repairable: true}
		for i := range collections {
			if strings.HasPrefix(name, root+collections[i].Epoch.String()+"/") {
				f.Where += " of collection " + collections[i].Name
			}
		}
		if repair {
			if err := remove(ctx, s.Files(), g); err != nil {
				return fmt.Errorf("removing %s: %w", name, err)
			}
			f.Repaired, f.Remedy = true, repairedNow
		}
		report(f)
	}
	return nil
}

// isThere reports whether a file is there. The notes of a group go before its other files.
func isThere(ctx context.Context, from files.Store, name string) bool {
	f, err := from.Open(ctx, name)
	if err == nil {
		f.Close()
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// compare returns the damage of a group; "" if there is none.
func (f *found) compare(ctx context.Context, from files.Store, group string) (fault string, err error) {
	var about struct{}
	all, err := readNotes(ctx, from, group, &about)
	if err != nil {
		return "", err
	}
	if all == nil {
		return group + notes + " is not as it was written", nil
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fault, err := all[name].compare(ctx, from, group+name)
		if fault != "" || err != nil {
			return fault, err
		}
	}
	return "", nil
}

// compare returns the difference between a file and its recorded content; "" if there is none.
func (c content) compare(ctx context.Context, from files.Store, name string) (fault string, err error) {
	f, err := from.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return name + " is missing", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if f.Size() != c.Length {
		return fmt.Sprintf("%s has %d bytes, not %d", name, f.Size(), c.Length), nil
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, store.ErrUnavailable):
		return "", err
	case err != nil:
		return fmt.Sprintf("%s cannot be read: %v", name, err), nil
	case hex.EncodeToString(sum.Sum(nil)) != c.SHA256:
		return name + " is not as it was written: its hash does not fit", nil
	}
	return "", nil
}
