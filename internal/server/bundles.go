package server

import (
	"bytes"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/xtm"
)

// bundleMost is the maximum total length of the fragments of one document, in bytes. Further ones are available by
// their links only.
const bundleMost = 4 << 20

// fillBundle adds fragments to the entries of a document of the fragments feed (RFC 4287 §4.1.3, The "atom:content"
// Element), the newest first. It leaves out large ones, covered ones, and those that may change, because bundles never
// change.
func fillBundle(v *store.View, feed *feeds.Feed) error {
	entries, err := entriesOf(v, feed)
	if err != nil {
		return err
	}
	left, together := bundleMost, 1
	if v.Tx().Distant() {
		together = txn.SideBySide
	}
	for some := range slices.Chunk(feed.Entries, together) {
		if left <= 0 {
			break
		}
		roots := make([][]byte, len(some))
		if err := v.Together(len(some), func(i int, v *store.View) (err error) {
			roots[i], err = inline(v, entries[some[i].ID])
			return err
		}); err != nil {
			return err
		}
		for i, root := range roots {
			if n := len(root); n > 0 && n <= min(left, feeds.MaxInline) {
				some[i].Fragment = root
				left -= n
			}
		}
	}
	return nil
}

// entriesOf returns the entries of the log that are in a document, which follow each other there, by their Atom ids.
func entriesOf(v *store.View, feed *feeds.Feed) (map[string]*store.Entry, error) {
	if len(feed.Entries) == 0 {
		return nil, nil
	}
	id, err := uuid.Parse(feed.Entries[len(feed.Entries)-1].ID)
	if err != nil {
		return nil, err
	}
	oldest, err := v.EntryOf(id)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*store.Entry, len(feed.Entries))
	for e, err := range v.Entries(oldest.Seq) {
		if err != nil {
			return nil, err
		}
		if all[v.ID(&e).URN()] = &e; len(all) == len(feed.Entries) {
			break
		}
	}
	return all, nil
}

// inline returns the root element of the fragment of an entry, nil if that is too large, or may change.
func inline(v *store.View, e *store.Entry) ([]byte, error) {
	if e == nil || e.Covered || v.ShowsNow(e) || canWrite(v, e) != nil || available(v, e) != nil {
		return nil, nil
	}
	var b rendered.Small
	err := v.WriteFragment(&b, e, xtm.V21)
	if errors.Is(err, store.ErrGone) || errors.Is(err, rendered.ErrLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plain := b.Bytes()
	if begin := []byte("<?xml "); bytes.HasPrefix(plain, begin) {
		_, plain, _ = bytes.Cut(plain, []byte("?>"))
	}
	return bytes.TrimSpace(plain), nil
}
