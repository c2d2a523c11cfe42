package past

import (
	"bytes"
	"errors"
	"iter"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/agree"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Change is the change of a row by a commit. A value is nil if there was no row, or is none.
type Change struct {
	Key           []byte
	Commit        uint64
	Before, After []byte
}

// Idle reports whether the row is as before: parts of a commit have changed it back.
func (c *Change) Idle() bool {
	return (c.Before == nil) == (c.After == nil) && bytes.Equal(c.Before, c.After)
}

// Row returns the row that remembers the change.
func (c *Change) Row(id keys.Source) kv.Row {
	return kv.Row{Key: id.Before(c.Key, c.Commit), Value: remembering(c.Before)}
}

// Changes iterates over the stored changes of rows by commits from one on, by key and commit.
func Changes(t *txn.Tx, id keys.Source, from uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		var held Change
		// give yields the held change, and holds the next.
		give := func(next Change) (more bool) {
			var err error
			if held.After = next.Before; held.Key != nil && !bytes.Equal(held.Key, next.Key) {
				held.After, err = t.Get(held.Key)
			}
			more = (held.Key == nil || yield(held, err)) && err == nil
			held = next
			return more
		}
		for r, err := range Stored(t, id, keys.TableBefore, from) {
			if err != nil {
				yield(Change{}, err)
				return
			}
			if key, commit, ok := id.OfBefore(r.Key); ok && !give(Change{Key: key, Commit: commit, Before: was(r.Value)}) {
				return
			}
		}
		give(Change{})
	}
}

// ChangeIn returns the change in a row, if it is one of [keys.TableBefore].
func ChangeIn(t *txn.Tx, id keys.Source, r kv.Row) (c Change, ok bool, err error) {
	if c.Key, c.Commit, ok = id.OfBefore(r.Key); ok {
		c.Before = was(r.Value)
		c.After, err = AsOf(t.Reader(), id, c.Commit).Get(c.Key)
	}
	return c, ok, err
}

// Listed returns the key by which the entry of a row in a commit's list is compared; nil for key: the existence of the
// list.
func Listed(id keys.Source, commit uint64, key []byte) []byte {
	listed := id.Numbered(keys.TableChanged, commit)
	if key != nil {
		listed = append(listed, keys.Relative(key)...)
	}
	return listed
}

// ofListed takes a key of [Listed] apart.
func ofListed(key []byte) (commit uint64, relative []byte) {
	end := keys.SourceSize + 8
	return keys.NumberIn(key[:end]), key[end:]
}

// CompareLists calls f with each wrong row of the lists of changes by commits from one on. want has the required
// entries, and the required lists. once states that commits have distinct numbers, and that want has all commits. It
// calls lost with listed records whose former version is not stored. If a commit's list has an error, its whole list is
// made again.
func CompareLists(t *txn.Tx, id keys.Source, from uint64, once bool, want *agree.Rows,
	lost func(key []byte, commit uint64), f func(agree.Difference) error) error {
	have, wrong := agree.New(want.Path+"-listed", want.Most, nil), map[uint64]bool{}
	defer have.Close()
	for r, err := range Stored(t, id, keys.TableChanged, from) {
		if at, failed := positionOf(r); err == nil && failed == nil {
			p, unreadable := partOf(id, r)
			wrong[at.Commit] = wrong[at.Commit] || unreadable != nil
			for _, key := range append(p.Keys, nil) {
				err = errors.Join(err, have.Add(Listed(id, at.Commit, key), []byte{}))
			}
		}
		if err != nil {
			return err
		}
	}
	var more [][]byte // that are listed, and not remembered
	var none uint64   // no commit has this number
	err := want.Compare(have.All(), func(d agree.Difference) error {
		switch commit, relative := ofListed(d.Key); {
		case d.Want != nil:
			wrong[commit] = true
		case len(relative) == 0 && once:
			wrong[commit], none = true, commit
		case len(relative) > 0 && commit != none:
			more = append(more, d.Key)
		}
		return nil
	})
	for _, key := range more {
		commit, relative := ofListed(key)
		now, failed := t.Get(id.Record(relative))
		err = errors.Join(err, failed)
		if (!wrong[commit] || now != nil) && relative[0] != keys.TableIdentifier && relative[0] != keys.TableLocator {
			lost(id.Record(relative), commit)
		}
		wrong[commit] = true
	}
	if err != nil {
		return err
	}
	anew := agree.New(want.Path+"-anew", want.Most, nil)
	defer anew.Close()
	if err := listAnew(id, wrong, once, want, anew.Add); err != nil {
		return err
	}
	return anew.Compare(seq.Map(Stored(t, id, keys.TableChanged, from), func(r kv.Row) (kv.Row, error) {
		if at, err := positionOf(r); err == nil && !wrong[at.Commit] {
			return r, seq.ErrSkip
		}
		return r, nil
	}), f)
}

// listAnew makes the lists of some commits, as a [Recorder] does. If several commits may have had the number, it makes
// that of the last one, which readers of the others read, too.
func listAnew(id keys.Source, some map[uint64]bool, once bool, want *agree.Rows,
	put func(key, value []byte) error) error {
	var p parts
	var commit uint64
	ends := func() error {
		if !some[commit] || len(p.keys) == 0 && p.part%again > 0 {
			return nil
		}
		return p.end(id, commit, put)
	}
	for r, err := range want.All() {
		if err != nil {
			return err
		}
		next, relative := ofListed(r.Key)
		switch {
		case len(relative) == 0:
			err = ends()
			if p, commit = (parts{}), next; !once {
				p.part = again
			}
		case some[commit] && p.add(relative):
			err = p.end(id, commit, put)
		}
		if err != nil {
			return err
		}
	}
	return ends()
}

// Stored iterates over the rows of a table of commits from one on, and over invalid rows.
func Stored(t *txn.Tx, id keys.Source, table byte, from uint64) iter.Seq2[kv.Row, error] {
	return seq.Map(t.Scan(id.Key(table), nil), func(r kv.Row) (kv.Row, error) {
		_, commit, ok := id.OfBefore(r.Key)
		if table == keys.TableChanged {
			commit, _, ok = keys.OfChanged(r.Key)
		}
		if ok && commit < from {
			return r, seq.ErrSkip
		}
		return r, t.Context().Err()
	})
}
