package rendered

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Forms are the XTM versions in which fragments and snapshots are available.
var Forms = [...]xtm.Version{xtm.V10, xtm.V21}

// stored is the one of Forms in which fragments are stored. It has a place for all that a record says, so that the
// others are made of it.
const stored = xtm.V21

// Version is how the other forms are made of the stored one. Entries name it, since what has an address has the same
// bytes for good. Whoever changes these bytes gives the new way a new number, and keeps the old one.
const Version = 1

// Document is the fragment of an entry, or its record form, in one of Forms.
type Document struct {
	packed  []byte // gzipped, in the stored form or, where nothing is to be derived, in its own
	derived xtm.Version
	sp      string
}

// Read returns a document of what [Fragment.Pack] has put into one value: the fragment, or the record form that
// stands apart from it. version is the one of [Version] that the entry names, sp the source locator prefix.
func Read(value []byte, apart bool, form xtm.Version, version int, sp string) (Document, error) {
	n := 0
	if apart {
		n = 1
	}
	switch {
	case !slices.Contains(Forms[:], form):
		return Document{}, fmt.Errorf("no fragments are available as XTM %s: ask for one of %v", form, Forms)
	case version > Version:
		return Document{}, fmt.Errorf("a newer version of tmshare has stored a fragment (%d, this one reads %d): use that version", version, Version)
	}
	packed, err := unpack(value, n)
	d := Document{packed: packed, sp: sp}
	if form != stored {
		d.derived = form
	}
	return d, err
}

// Identity returns bytes that are others for each other document. To return them costs nothing.
func (d Document) Identity() []byte {
	if d.derived == "" {
		return d.packed
	}
	return fmt.Appendf(slices.Clip(d.packed), "XTM %s, %d", d.derived, Version)
}

// Plain returns the document as it is read.
func (d Document) Plain() ([]byte, error) {
	plain, err := gunzip(d.packed)
	if err != nil || d.derived == "" {
		return plain, err
	}
	return derive(plain, d.derived, d.sp)
}

// Gzipped returns the document, packed.
func (d Document) Gzipped() ([]byte, error) {
	if d.derived == "" {
		return d.packed, nil
	}
	plain, err := d.Plain()
	if err != nil {
		return nil, err
	}
	return compress(plain)
}

// RecordForm returns the record form in one of Forms.
func (f *Fragment) RecordForm(form xtm.Version, sp string) Document {
	d := Document{packed: f.record(), sp: sp}
	if form != stored {
		d.derived = form
	}
	return d
}

// derive returns what a document in the stored form says in another one. That has the same elements in the same
// order, and so the bytes that the records would have been written in.
func derive(plain []byte, as xtm.Version, sp string) ([]byte, error) {
	from := xtm.NewDecoder(bytes.NewReader(plain), xtm.Options{Base: tmdm.Locator(sp)})
	b := bytes.NewBuffer(make([]byte, 0, 2*len(plain)))
	to := xtm.NewEncoder(b, as, tmdm.Locator(sp))
	for {
		element, err := from.Next()
		switch e := element.(type) {
		case *xtm.Topic:
			err = to.Topic(e)
		case *xtm.Association:
			err = to.Association(e)
		}
		switch {
		case errors.Is(err, io.EOF):
			err = to.Close()
			return b.Bytes(), err
		case err != nil:
			return nil, fmt.Errorf("%w: a stored fragment cannot be read: %w. %s", kv.ErrDamaged, err, txn.DamageRemedy)
		}
	}
}

// digestsOf returns the digests of a document in the stored form, in each of Forms.
func digestsOf(plain []byte, sp string) ([]Digest, error) {
	digests := make([]Digest, len(Forms))
	for i, form := range Forms {
		in := plain
		if form != stored {
			var err error
			if in, err = derive(plain, form, sp); err != nil {
				return nil, err
			}
		}
		digests[i] = DigestOf(in)
	}
	return digests, nil
}
