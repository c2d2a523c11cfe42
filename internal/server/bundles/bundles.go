// Package bundles puts fragments into the feed documents that list them: who follows a server needs one request for all changes of
// a document, in place of one for each.
package bundles

import (
	"bytes"
	"errors"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server/replicas"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/xtm"
)

// Most is how many bytes the fragments of one document have together. What is beyond that is available by its link alone.
const Most = 4 << 20

// Fill puts fragments into the entries of a document of the fragments feed (RFC 4287 §4.1.3, The "atom:content" Element), the
// newest first. Those that were not stored when they were published, as the first ones of a collection, and those that are too large,
// are left out: what is put in is the same for ever.
func Fill(v *store.View, feed *feeds.Feed) error {
	left := Most
	for i := range feed.Entries {
		e := &feed.Entries[i]
		id, err := uuid.Parse(e.ID)
		if err != nil {
			return err
		}
		inline, err := stored(v, id)
		if err != nil {
			return err
		}
		if n := len(inline); n > 0 && n <= min(left, feeds.MaxInline) {
			e.Fragment = inline
			left -= n
		}
	}
	return nil
}

// stored returns the root element of a fragment that is stored, nil where it is not.
func stored(v *store.View, id uuid.UUID) ([]byte, error) {
	e, err := v.EntryOf(id)
	if err != nil || !e.Stored || e.Late || replicas.Available(v, e) != nil {
		return nil, err
	}
	packed, err := v.StoredFragment(e, xtm.V21)
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := rendered.Gunzip(packed)
	if err != nil {
		return nil, err
	}
	if begin := []byte("<?xml "); bytes.HasPrefix(plain, begin) {
		_, plain, _ = bytes.Cut(plain, []byte("?>"))
	}
	return bytes.TrimSpace(plain), nil
}
