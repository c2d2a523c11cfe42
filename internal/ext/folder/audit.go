package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
)

// Audit is the result of comparing a mirror with its Source (Z39.99 §5.2, Audit).
type Audit struct {
	URL      string `json:"url"`
	Compared int    `json:"compared"` // resources that the Source lists
	// Unstated is the number of these without a stated digest: they were compared with that of the last fetch
	Unstated  int `json:"unstated"`
	Documents int `json:"documents"` // of the Source that were read

	// Gap is the reason why the Source cannot be compared now; "" if it can.
	Gap string `json:"gap,omitempty"`

	Missing     []Difference `json:"missing"`     // the Source has them, the folder has not
	Different   []Difference `json:"different"`   // the folder has other bytes
	Superfluous []Difference `json:"superfluous"` // the folder has them, the Source has not
	Unsure      []Difference `json:"unsure"`      // they may have been changed since: the Source states the day alone

	// Others are files in the folder that are of no resource, and were put there by others.
	Others []string `json:"others"`
}

// Difference is a resource that is not the same in both places.
type Difference struct {
	ID     string `json:"id"`
	File   string `json:"file,omitempty"`
	Reason string `json:"reason"`
}

// Equal reports whether the folder equals the Source, and the Source is complete.
func (a *Audit) Equal() bool {
	return a.Gap == "" && len(a.Missing)+len(a.Different)+len(a.Superfluous)+len(a.Unsure) == 0
}

// AuditMirror compares the files of a mirror with the present state of the Source at the URL, or at that of the last
// round: with the Resource List and the changes since. It computes the digests of the files and changes nothing.
// progress may be nil.
func AuditMirror(ctx context.Context, dir string, s follow.Source, ref string,
	progress func(done, total int)) (*Audit, error) {
	f, err := openToRead(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case f.state.URL == "":
		return nil, fmt.Errorf("%s is no mirror yet", dir)
	case !f.state.Mirror:
		return nil, fmt.Errorf("%s is no mirror, but a folder of records that are harvested", dir)
	case ref == "":
		ref = f.state.URL
	case !iri.SameDocument(ref, f.state.URL):
		return nil, fmt.Errorf("%s is a mirror of %s, not of %s", dir, f.state.URL, ref)
	}
	news, err := s.Delta(ctx, ref, follow.Look{}, nil)
	if err != nil {
		return nil, err
	}
	defer news.Close()
	newer, err := f.newer(ctx, s, ref, news)
	if err != nil {
		return nil, err
	}
	a := &Audit{URL: ref, Documents: news.Documents, Gap: news.Gap, Missing: []Difference{}, Different: []Difference{},
		Superfluous: []Difference{}, Unsure: []Difference{}, Others: []string{}}
	listed := map[string]bool{}
	for r, err := range news.Records(ctx) {
		if err != nil {
			return nil, err
		}
		if r.Deleted {
			continue
		}
		listed[r.ID] = true
		if err := f.compareTo(a, &r, newer, news.Mark); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(a.Compared, len(f.state.Records))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.state.Records)) {
		held := f.state.Records[id]
		if listed[id] || held.File == "" {
			continue
		}
		if _, err := f.root.Lstat(f.at(held.File)); err == nil {
			a.Superfluous = append(a.Superfluous, Difference{id, held.File, "the Source does not have it"})
		}
	}
	return a, f.others(a)
}

// URLOf returns the URL of the source of a folder; "" before the first round.
func URLOf(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	s, err := readState(root)
	if err != nil {
		return "", err
	}
	return s.URL, nil
}

// reading is a folder as it is found, for this process alone.
type reading struct {
	root  *os.Root
	dir   *os.File // for the lock
	state *State
}

func openToRead(dir string) (_ *reading, err error) {
	f := &reading{}
	if f.dir, err = os.Open(dir); err != nil {
		return nil, err
	}
	held, err := durable.Lock(f.dir, false)
	if held {
		err = fmt.Errorf("%s: %w", dir, ErrLocked)
	}
	if err == nil {
		f.root, err = os.OpenRoot(dir)
	}
	if err == nil {
		f.state, err = readState(f.root)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close ends the use of the folder, and with it the lock.
func (f *reading) Close() error {
	err := f.dir.Close()
	if f.root != nil {
		err = errors.Join(err, f.root.Close())
	}
	return err
}

// at returns where a file is at this moment: an interrupted round may have left it under
// another name.
func (f *reading) at(file string) string {
	if temp := f.state.Unfinished[file]; temp != "" {
		if _, err := f.root.Lstat(temp); err == nil {
			return temp
		}
	}
	return file
}

// newer returns the records with changes that the Source lists without their times, and that no
// round has handled.
func (f *reading) newer(ctx context.Context, s follow.Source, ref string, news *follow.Delta) (map[string]bool, error) {
	newer := map[string]bool{}
	if !news.Placed {
		return newer, nil
	}
	since, err := s.Delta(ctx, ref, follow.Look{Mark: f.state.Mark}, nil)
	if err != nil {
		return nil, err
	}
	defer since.Close()
	for r, err := range since.Records(ctx) {
		if err != nil {
			return nil, err
		}
		if r.Placed && (r.Anew || r.Updated.After(f.state.Mark.Updated)) {
			newer[r.ID] = true
		}
	}
	return newer, nil
}

// compareTo compares a file with the record of the resource at the Source, up to the time of now.
func (f *reading) compareTo(a *Audit, r *follow.Record, newer map[string]bool, now follow.Mark) error {
	a.Compared++
	held := f.state.Records[r.ID]
	if held == nil || held.File == "" {
		reason := "it was not fetched yet"
		if held != nil && held.Missing != nil {
			reason = held.Missing.Reason
		}
		a.Missing = append(a.Missing, Difference{r.ID, "", reason})
		return nil
	}
	var stated follow.Fixity
	if n := len(r.Representations); n > 0 {
		stated = r.Representations[n-1].Fixity
	}
	sum, err := f.digest(held.File, stated)
	var mismatch *resourcesync.MismatchError
	different := func(reason string) {
		a.Different = append(a.Different, Difference{r.ID, held.File, reason})
	}
	tampered := err == nil && sum != held.SHA256
	switch {
	case isMissing(err):
		a.Missing = append(a.Missing, Difference{r.ID, held.File, "its file is not there"})
	case errors.As(err, &mismatch):
		different(fmt.Sprintf("its %s is %s, the Source says %s", mismatch.Property, mismatch.Got, mismatch.Want))
	case err != nil:
		return err
	case tampered:
		different("the file is not what was fetched: somebody has changed it")
	case held.Missing != nil:
		different("the last version could not be had: " + held.Missing.Reason)
	case len(stated.Hashes) == 0 && (newer[r.ID] || !r.Placed && r.Updated.After(held.Updated)):
		different("the Source has changed it since the last round")
	case len(stated.Hashes) == 0 && now.Complete && !r.Before.IsZero() && f.state.Mark.Updated.Before(r.Before) &&
		f.state.Mark.Updated.Before(now.Updated):
		a.Unsure = append(a.Unsure,
			Difference{r.ID, held.File, "the Source states only the day of its last change, and the last round was on that day"})
	}
	if stated.IsZero() {
		a.Unstated++
	}
	return nil
}

// digest returns the SHA-256 of a file, if stated has one.
func (f *reading) digest(name string, stated follow.Fixity) (string, error) {
	file, err := f.root.Open(f.at(name))
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrNotExist)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, stated.Verify(name, file))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// others finds the files that are of no resource.
func (f *reading) others(a *Audit) error {
	ours := map[string]bool{}
	for _, held := range f.state.Records {
		ours[held.File] = true
	}
	for file := range f.state.Unfinished {
		ours[file] = true
	}
	return fs.WalkDir(f.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !ours[name] && !strings.HasPrefix(name, follow.OwnPrefix) {
			a.Others = append(a.Others, name)
		}
		return err
	})
}
