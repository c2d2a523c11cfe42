package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/xtm"
)

// View is one state of a collection: later writes do not show in it.
type View struct {
	Collection
	db *DB
	tx *txn.Tx

	shown   *records.Cached // the records in the state of the last requested entry; nil: none
	shownOf uint64          // the commit of that

	commits []uint64 // consecutive commits known from entries
}

// View calls f with the current state of a collection. It is valid until f
// returns.
func (db *DB) View(ctx context.Context, name string, f func(*View) error) error {
	return db.rows.View(ctx, func(t *txn.Tx) error {
		c, err := db.decoded(t, name)
		if err != nil {
			return err
		}
		return f(&View{Collection: *c, db: db, tx: t})
	})
}

// Extend calls f with a collection in a commit, for an extension to change its own rows of the collection: those with
// the key prefix of [View.Extension]. They are opaque to the store, and removed with the collection. f must change
// nothing else.
func (db *DB) Extend(ctx context.Context, name string, f func(*View) error) error {
	_, err := db.updateOf(ctx, name, func(t *txn.Tx, c *Collection) error {
		return f(&View{Collection: *c, db: db, tx: t})
	})
	return err
}

// Extension begins the keys of the rows that an extension keeps of the collection.
func (v *View) Extension(name string) []byte { return v.Log().Extension(name) }

// Tx reads the state. What changes the rows of an extension is called with one that can change them, see [DB.Extend].
func (v *View) Tx() *txn.Tx { return v.tx }

// Together calls f for n tasks that read the state, each with the view to read with: see [txn.Tx.Together].
func (v *View) Together(n int, f func(i int, v *View) error) error {
	if c := v.commits; v.tx.Distant() && len(c) > 0 && c[0] > 0 { // tasks look for the states before
		before, err := v.CommitBefore(c[0])
		if err != nil {
			return err
		}
		v.commits = slices.Insert(c, 0, before)
	}
	return v.tx.Together(n, func(i int, t *txn.Tx) error {
		if t == v.tx {
			return f(i, v)
		}
		own := *v
		own.tx, own.shown = t, nil
		return f(i, &own)
	})
}

// Context returns the context with which all reading ends.
func (v *View) Context() context.Context { return v.tx.Context() }

// Version returns the version of the state.
func (v *View) Version() Version { return v.tx.Version() }

// Checked returns a time, by the clock of the publisher. The view has all that was published up to then; zero where
// that is not known.
func (v *View) Checked() (time.Time, error) {
	if v.Replica == nil {
		return v.tx.At(), nil
	}
	s, err := sources.Get(v.tx, v.Name)
	return s.Checked, err
}

// Opened returns the last openings of the publisher's database, the newest first.
func (v *View) Opened() ([]string, error) {
	if v.Replica == nil {
		s, err := readOpenings(v.tx)
		return s.Newest, err
	}
	s, err := sources.Get(v.tx, v.Name)
	return s.Openings, err
}

// Openings returns all openings of the database that are kept, the newest first.
func (v *View) Openings() ([]Opening, error) {
	all, err := txn.List[Opening](v.tx, openingsKey, openingKey(0))
	slices.Reverse(all)
	return all, err
}

// Files returns the files of the node, as they were in the state where they are rows.
func (v *View) Files() files.Store { return files.In(v.db.files, v.tx.Reader()) }

// decoded is getCollection for readers: it reads nothing if [DB.Latest] has.
func (db *DB) decoded(t *txn.Tx, name string) (*Collection, error) {
	if known := db.latestAt(name, t.Version()); known != nil {
		return new(known.Collection), nil
	}
	return collections.Get(t, name)
}

// DigestNode returns the node at a path of the tree of the state digest. The one at the empty path has the digest
// of the state.
func (v *View) DigestNode(path []byte) (*statedigest.Node, error) {
	return records.In(v.tx, v.SourceKey()).DigestNode(path)
}

// Source returns the records of the published map.
func (v *View) Source() fragment.Source { return v.State() }

// State is Source as a [records.State].
func (v *View) State() records.State { return records.In(v.tx, v.SourceKey()) }

// Entries iterates over the entries from a sequence on, ascending, without pruned ones. They have titles, unlike those
// that other methods return singly: see [View.SetTitle].
func (v *View) Entries(from uint64) iter.Seq2[Entry, error] {
	return v.titled(v.Kept(max(from, v.Horizon+1)))
}

// Kept is Entries with those too that are pruned, but for being the last of a key. Titles that are not stored are not
// set.
func (v *View) Kept(from uint64) iter.Seq2[Entry, error] {
	return collections.Kept(v.tx, &v.Collection, from)
}

// Entry returns the entry with a sequence. The error is ErrGone for a pruned entry, ErrNotFound if there was none.
func (v *View) Entry(seq uint64) (*Entry, error) {
	if seq > 0 && seq <= v.Horizon {
		return nil, fmt.Errorf("%w: entry %d of collection %q", ErrGone, seq, v.Name)
	}
	return v.entry(seq)
}

// entry is Entry for those too that are kept for the sake of their topics.
func (v *View) entry(seq uint64) (*Entry, error) {
	e, err := collections.At(v.tx, &v.Collection, seq)
	if err == nil && e == nil {
		err = fmt.Errorf("%w: entry %d of collection %q", ErrNotFound, seq, v.Name)
	}
	return e, err
}

// Last returns the last entry of a topic key, or nil.
func (v *View) Last(key string) (*Entry, error) {
	return collections.Last(v.tx, &v.Collection, key)
}

// LastOf is Last for the key of a TopicSI.
func (v *View) LastOf(topicSI fragment.Ref) (*Entry, error) {
	return collections.LastEntry(v.tx, &v.Collection, topicSI)
}

// Quarantined reports whether a replica lacks an entry of a topic that could not be applied.
func (v *View) Quarantined(topicSI fragment.Ref) (bool, error) {
	row, err := v.tx.Get(v.SourceKey().LocatorKey(keys.TableQuarantine, topicSI))
	return row != nil, err
}

// WriteSnapshot writes the map of the view.
func (v *View) WriteSnapshot(w io.Writer, version xtm.Version) error {
	return fragment.WriteSnapshot(w, v.Source(), fragment.Form{Version: version, SP: v.SP})
}

// Snapshots returns the snapshots that are kept, the newest first.
func (v *View) Snapshots() ([]Snapshot, error) {
	all, err := txn.List[Snapshot](v.tx, v.Log().Key(keys.TableSnapshot), nil)
	slices.Reverse(all)
	return all, err
}

// OpenSnapshot opens the gzipped file of a snapshot. It stays readable when the
// snapshot is superseded meanwhile. It is ErrLost where the file is missing, as
// it is when the snapshot is not listed any more, or another one than was written.
func (v *View) OpenSnapshot(s *Snapshot) (files.File, error) {
	snapshots := v.db.snapshotFiles(&v.Collection)
	snapshots.Store = files.In(snapshots.Store, v.tx.Reader())
	return snapshots.Open(v.tx.Context(), s)
}

// Since iterates over the last entry of each topic, among those not before a time and after the sequence after,
// ascending. If such entries were pruned, the error is ErrGone.
func (v *View) Since(since time.Time, after uint64) iter.Seq2[Entry, error] {
	return v.titled(v.since(since, after))
}

func (v *View) since(since time.Time, after uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if v.Horizon > 0 && !since.After(v.HorizonTime) {
			yield(Entry{}, fmt.Errorf("%w: the entries of collection %q up to %s", ErrGone, v.Name,
				v.HorizonTime.Format(time.RFC3339Nano)))
			return
		}
		first, err := v.firstSince(since)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		seq.Map(v.Kept(max(first, after+1, v.Horizon+1)), func(e Entry) (Entry, error) {
			last, err := collections.LastOf(v.tx, &v.Collection, e.TopicSI)
			if err == nil && last != e.Seq {
				err = seq.ErrSkip
			}
			return e, err
		})(yield)
	}
}

// EntryOf returns the entry with an identifier. The error is ErrGone for a pruned entry, ErrNotFound if there was none.
func (v *View) EntryOf(id uuid.UUID) (*Entry, error) {
	_, seq, ok := v.SequenceOf(id)
	none := fmt.Errorf("%w: entry %s of collection %q", ErrNotFound, id, v.Name)
	if !ok || seq > v.Head {
		return nil, none
	}
	e, err := v.Entry(seq)
	if err == nil && v.ID(e) != id { // of a history that was given up
		return nil, none
	}
	return e, err
}

// WrittenIn reports whether document n of the log has an entry of a run.
func (v *View) WrittenIn(n uint64, run uint32) (bool, error) {
	first, size := v.Document(n)
	for e, err := range v.Kept(first) {
		if err != nil || e.Seq >= first+size {
			return false, err
		}
		if e.Run == run {
			return true, nil
		}
	}
	return false, nil
}

// DocumentRun returns the run of the last entry of document n of the log. ok is false
// where the entry is pruned and its run is not known any more.
func (v *View) DocumentRun(n uint64) (run uint32, ok bool, err error) {
	first, size := v.Document(n)
	last := min(first+size-1, v.Head)
	switch last {
	case v.Head:
		return v.Run, true, nil
	case v.Horizon:
		return v.HorizonRun, true, nil
	}
	e, err := v.entry(last)
	if errors.Is(err, ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return e.Run, true, nil
}
