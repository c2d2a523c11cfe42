package store

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/agree"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// logDerived are the tables of rows derived from the log. For stored fragments, only their presence is derived.
const logDerived = string(keys.TableFragment) + string(keys.TableKey) + string(keys.TableLogHash)

// log returns the comparison of the rows derived from the log of a collection.
func (c *checker) log(v *View) *derivation {
	return &derivation{
		where: "collection " + v.Name,
		compare: func(t *txn.Tx, file string, tell telling, f func(agree.Difference) error) error {
			l := &logRows{View: v, rows: agree.New(file, c.db.sortMemory, lastOfKey), tell: tell}
			defer l.rows.Close()
			if err := l.follow(); err != nil {
				return err
			}
			reported := !l.treeIsLost
			err := l.rows.Compare(l.stored, func(d agree.Difference) error {
				if !l.treeIsLost || keys.Table(d.Key) != keys.TableLogHash {
					return f(d)
				}
				if !reported {
					level, n := tlog.SplitStoredHashIndex(int64(keys.NumberIn(d.Key)))
					reported = l.tellOfTree(uint64(n+1) << level)
				}
				return nil
			})
			if !reported {
				l.tellOfTree(l.hashed + 1)
			}
			return err
		},
		mend: v.again(func(now *View) error { return c.write(now.tx, c.log(now)) }),
	}
}

// lastOfKey takes the row of the later one of two entries of a topic key.
func lastOfKey(_, a, b []byte) []byte {
	one, err := collections.InLastRow(row{Value: a})
	other, failed := collections.InLastRow(row{Value: b})
	if err == nil && failed == nil && one > other {
		return a
	}
	return b
}

// logRows derives the rows from the log of a collection.
type logRows struct {
	*View
	rows *agree.Rows
	tell telling

	writer     collections.LogWriter
	hashed     uint64    // leaves of the tree so far
	unproven   bool      // no entry confirms a leaf
	treeIsLost bool      // it is not known which it was
	expected   uint64    // sequence of the next entry
	time       time.Time // of the entry before
}

// follow derives all rows, and reports damage of the log itself.
func (l *logRows) follow() error {
	l.writer = collections.LogWriter{LogTree: collections.LogTree{Tx: l.tx, Log: l.Log()}, Put: l.rows.Add}
	l.expected, l.time = l.Horizon+1, l.HorizonTime
	for r, err := range l.tx.Scan(l.Log().Key(keys.TableFirst), l.Log().Numbered(keys.TableFirst, 0)) {
		if err == nil {
			err = l.Context().Err()
		}
		if err != nil {
			return err
		}
		if keys.NumberIn(r.Key) > l.loaded() {
			break
		}
		for e, err := range collections.InBlock(&l.Collection, r) {
			if err != nil {
				l.tell.lost(restoreRemedy, "the first entries of the log from %d on cannot be read",
					max(keys.NumberIn(r.Key), l.expected))
				break
			}
			if err := l.entry(&e); err != nil {
				return err
			}
		}
	}
	for r, err := range l.tx.Scan(l.Log().Key(keys.TableLog), l.Log().Numbered(keys.TableLog, l.loaded()+1)) {
		if err == nil {
			err = l.Context().Err()
		}
		if err != nil {
			return err
		}
		var e Entry
		seq := keys.NumberIn(r.Key)
		if seq > l.Head {
			break
		}
		if err := txn.Decode(r, &e); err != nil || e.Seq != seq {
			l.tell.lost(restoreRemedy, "entry %d of the log cannot be read", seq)
			e = Entry{Seq: seq, Updated: l.time.Add(1)}
		}
		if err := l.entry(&e); err != nil {
			return err
		}
	}
	switch {
	case l.expected <= l.Head:
		l.tell.lost(restoreRemedy, "the log lacks the entries %d to %d", l.expected, l.Head)
	case l.Head > l.Horizon && !l.time.Equal(l.Updated):
		l.tell.wrong(restoreRemedy, "the last entry of the log is of another time than the last change")
	}
	return l.tree()
}

// loaded returns the number of entries without a row of their own.
func (l *logRows) loaded() uint64 {
	if l.Beginning == nil {
		return 0
	}
	return l.Beginning.Entries
}

// entry derives the rows of an entry. Of an unreadable one only the sequence is known.
func (l *logRows) entry(e *Entry) error {
	if e.Seq > l.Horizon {
		if e.Seq != l.expected {
			l.tell.lost(restoreRemedy, "the log lacks the entries %d to %d", l.expected, e.Seq-1)
		}
		if !e.Updated.After(l.time) && e.Seq > 1 {
			l.tell.wrong(restoreRemedy, "entry %d of the log is not later than the one before", e.Seq)
		}
		l.expected, l.time = e.Seq+1, e.Updated
	}
	if err := l.leaves(e.Seq - 1); err != nil {
		return err
	}
	if e.TopicSI == "" {
		return l.leaves(e.Seq)
	}
	err := l.rows.Add(collections.TopicKey(&l.Collection, e.TopicSI), collections.LastRow(e.Seq))
	if err == nil && l.hashed < l.Hashed {
		err = l.leaf(tlog.RecordHash(e.Leaf()))
	}
	if err != nil || e.Seq <= l.Horizon {
		return err
	}
	if e.Kept {
		if _, _, err := l.Shown(e); err != nil {
			l.tell.wrong(restoreRemedy, "the fragment of entry %d is not there, or cannot be read: %v", e.Seq, err)
		}
		err = l.rows.Add(l.Log().Numbered(keys.TableFragment, e.Seq), []byte{})
	}
	return err
}

// leaves takes the stored leaves of entries up to one, which are pruned or unreadable.
func (l *logRows) leaves(upTo uint64) error {
	for l.hashed < min(upTo, l.Hashed) && !l.treeIsLost {
		hash, err := l.storedLeaf()
		l.unproven = true
		if l.treeIsLost = errors.Is(err, collections.ErrHashMissing); l.treeIsLost {
			return nil
		}
		if err == nil {
			err = l.leaf(hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaf makes the hashes that the leaf of the next entry gives the tree.
func (l *logRows) leaf(hash tlog.Hash) error {
	if l.treeIsLost {
		return nil
	}
	stored, err := l.storedLeaf()
	if err != nil && !errors.Is(err, collections.ErrHashMissing) {
		return err
	}
	l.unproven = l.unproven || stored != hash
	err = l.writer.AppendHash(l.hashed, hash)
	l.hashed++
	return err
}

func (l *logRows) storedLeaf() (tlog.Hash, error) {
	hashes, err := l.writer.LogTree.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(l.hashed))})
	return append(hashes, tlog.Hash{})[0], err
}

// tree completes the tree. If no entry confirms a leaf, the hash of the whole tree does, or nothing.
func (l *logRows) tree() error {
	if err := l.leaves(l.Hashed); err != nil || !l.unproven || l.treeIsLost {
		return err
	}
	follows, err := tlog.TreeHash(int64(l.hashed), &l.writer)
	if err != nil {
		return err
	}
	stored, err := tlog.TreeHash(int64(l.hashed), l.writer.LogTree)
	if errors.Is(err, collections.ErrHashMissing) {
		err = nil
	}
	l.treeIsLost = stored != follows
	return err
}

// tellOfTree reports that the tree is lost, from the leaf of an entry on.
func (l *logRows) tellOfTree(entry uint64) bool {
	remedy := treeRemedy
	if l.Replica != nil {
		remedy = fmt.Sprintf("\"tmshare-client replace %s\" makes it again", l.Name)
	}
	l.tell.wrong(remedy,
		"the tree of the log is another one than that of the entries, at entry %d: no checkpoint that is signed will "+
			"be accepted", entry)
	return true
}

// stored iterates over the stored rows that are derived from the log: superfluous entries, and all rows of the other
// tables.
func (l *logRows) stored(yield func(kv.Row, error) bool) {
	behind := func(table byte, seq uint64) iter.Seq2[kv.Row, error] {
		return l.tx.ScanInPlace(l.Log().Key(table), l.Log().Numbered(table, seq+1))
	}
	all := []iter.Seq2[kv.Row, error]{behind(keys.TableFirst, l.loaded()), l.beforeLog, behind(keys.TableLog, l.Head)}
	for _, table := range []byte(logDerived) {
		all = append(all, l.tx.ScanInPlace(l.Log().Key(table), nil))
	}
	for _, rows := range all {
		for r, err := range rows {
			if err == nil && keys.Table(r.Key) == keys.TableFragment {
				r.Value = nil
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// beforeLog iterates over rows of entries that stand in blocks.
func (l *logRows) beforeLog(yield func(kv.Row, error) bool) {
	for r, err := range l.tx.ScanInPlace(l.Log().Key(keys.TableLog), nil) {
		if err == nil && keys.NumberIn(r.Key) > l.loaded() || !yield(r, err) {
			return
		}
	}
}
