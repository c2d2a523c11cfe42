package store

import (
	"errors"
	"fmt"

	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/xtm"
)

// Where a little of a large topic has changed, a patch leads from its record before to the one
// after (Z39.99 §14.4, Patch Content). The log keeps what the patch is, so that lists can
// state it, but not its bytes: they are made again when somebody wants them.

// leastPatched is the length of a record from which on a patch may pay, and patchShare the
// part of it that the patch has at most.
const (
	leastPatched = 4 << 10
	patchShare   = 2
)

// patches returns the digests of the patches that lead from the record form of last to that of e,
// which is in data, in those forms in which it pays. Nobody needs them where the collection has
// no change lists.
func (v *View) patches(last, e *Entry, data *rendered.Fragment) ([]rendered.Digest, error) {
	if data == nil || v.Changes == nil || v.NoResourceSync || !last.RecordStored() || !last.Lives() || !e.Lives() || last.Seq <= v.Horizon {
		return nil, nil
	}
	var digests []rendered.Digest
	for i, version := range Forms {
		if data.Digests[i].Length < leastPatched || i < len(last.Digests) && last.Digests[i] == data.Digests[i] {
			continue
		}
		before, err := v.StoredRecord(last, version)
		if errors.Is(err, ErrGone) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		patch, err := rendered.Patch(before, data.RecordForm(version, v.SP))
		if err != nil || int64(len(patch)) > data.Digests[i].Length/patchShare {
			continue // whatever it is: patches are a convenience
		}
		if digests == nil {
			digests = make([]rendered.Digest, len(Forms))
		}
		digests[i] = rendered.DigestOf(patch)
	}
	return digests, nil
}

// Patch returns the patch (see internal/xml/patch) that makes the record form of e, in a form, of
// that of the entry before. It is ErrNotFound where there has never been one, and ErrGone where
// what it leads from is not kept any more.
func (v *View) Patch(e *Entry, version xtm.Version) ([]byte, error) {
	stated := e.PatchOf(version)
	if stated == nil {
		return nil, fmt.Errorf("%w: patch to entry %d of collection %q", ErrNotFound, e.Seq, v.Name)
	}
	prior, err := v.Entry(e.Prior)
	if err != nil {
		return nil, err
	}
	before, err := v.StoredRecord(prior, version)
	if err != nil {
		return nil, err
	}
	after, err := v.StoredRecord(e, version)
	if err != nil {
		return nil, err
	}
	patch, err := rendered.Patch(before, after)
	if err != nil || rendered.DigestOf(patch) != *stated { // another version of the program has made it
		return nil, fmt.Errorf("%w: patch to entry %d of collection %q", ErrGone, e.Seq, v.Name)
	}
	return patch, nil
}
