package harvest

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/xmlpatch"
)

// Patch is what makes a representation of that which the record had before (Z39.99 §14.4, Patch
// Content).
type Patch struct {
	URL    string
	Fixity Fixity
}

// mostPatched is the length in bytes up to which a file is patched: that is done in memory.
const mostPatched = 4 << 20

// strong are the algorithms whose digests tell that what a patch has made is what it should be.
var strong = []string{resourcesync.SHA256, "sha-512"}

// patchTo returns the patch to the representation of an item, or nil where there is none that
// is known, that says what it is, and that leads to something which can be told to be right; or
// where it spares little.
func patchTo(i *resourcesync.Item) *Patch {
	isStrong := func(h resourcesync.Hash) bool { return slices.Contains(strong, h.Algorithm) }
	if i.Length > mostPatched || i.Encoding != "" || !slices.ContainsFunc(i.Hashes, isStrong) {
		return nil
	}
	for _, l := range i.Find(resourcesync.RelPatch) {
		if l.Type == xmlpatch.MediaType && l.Length > 0 && l.Length < i.Length/2 && l.Encoding == "" {
			return &Patch{l.Href, Fixity{l.Representation}}
		}
	}
	return nil
}

// dropPatches forgets the patch to a record. It leads from a version that nobody may have.
func (r *Record) dropPatches() {
	for i := range r.Representations {
		r.Representations[i].Patch = nil
	}
}

// patched makes a representation of a record by its patch, of what is held of the record. It
// reports false where that does not lead to what the source states of the representation, or
// where it cannot be tried: all of it is to be fetched then, which is always right.
func (r *round) patched(ctx context.Context, record Record, from Representation, before Held) (taken, bool) {
	p := from.Patch
	if p == nil || !r.Mirror || r.anew || from.Open != nil || before.File == "" || before.Missing != nil || before.Stale || before.Length > mostPatched {
		return taken{}, false
	}
	patch, err := r.fetchPatch(ctx, p)
	if err != nil {
		return taken{}, false
	}
	old, err := r.readHeld(before.File)
	if err != nil {
		return taken{}, false
	}
	content, err := xmlpatch.Apply(old, patch)
	if err != nil {
		return taken{}, false
	}
	t := taken{record: record, from: from, temp: r.temp()}
	if t.held, err = r.receive(t.temp, from, bytes.NewReader(content), from.Type); err != nil {
		_ = r.root.Remove(t.temp)
		return taken{}, false
	}
	t.describe()
	return t, true
}

// fetchPatch fetches a patch, held to what the source states of it.
func (r *round) fetchPatch(ctx context.Context, p *Patch) ([]byte, error) {
	done, err := r.hosts.begin(ctx, p.URL)
	if err != nil {
		return nil, err
	}
	q := fetch.Request{URL: p.URL, Accept: xmlpatch.MediaType, Max: p.Fixity.Length, Home: r.home, Within: r.Fetcher.MaxTime}
	patch, _, err := fetch.Do(ctx, r.Fetcher, q, func(a *fetch.Answer) ([]byte, error) {
		b, err := io.ReadAll(p.Fixity.Verify(p.URL, a.Body))
		if OutOfDate(err) {
			err = fetch.Permanent(err)
		}
		return b, err
	})
	done(err)
	return patch, err
}

// readHeld reads a file of a record, though somebody else may have made it larger than it was.
func (r *round) readHeld(name string) ([]byte, error) {
	file, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, mostPatched))
}
