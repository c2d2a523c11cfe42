package collections

import (
	"iter"
	"slices"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Appender appends entries to the log of a collection, in one commit. All entries come through it: published, loaded
// and republished ones, and those of replicas. So each entry has its position, its time, its run, the state digest of
// its commit, the marks of the entries that it supersedes, and its leaf in the tree of a signed log.
type Appender struct {
	C      *Collection
	T      *txn.Tx // nil if the log is empty and not visible yet: then nothing is superseded
	Put    func(key, value []byte) error
	Signed bool // the log has a tree

	// The properties of new entries.
	Now          func() time.Time
	Run          func() uint32
	Digest       func() (string, error) // of the state after the commit
	Author, Note string

	tree       LogWriter
	superseded []uint64 // first entries that were kept for the sake of their topics
}

// Append appends entries about some topics. last states that the commit ends with them: its last entry has the digest.
func (a *Appender) Append(some []fragment.Entry, last bool) error {
	for i := range some {
		if i%expectedAtOnce == 0 {
			if err := a.expect(some[i:min(i+expectedAtOnce, len(some))]); err != nil {
				return err
			}
		}
		e := a.C.next(a.Now(), a.Run(), some[i])
		e.Author, e.Note = a.Author, a.Note
		if last && i == len(some)-1 {
			var err error
			if e.Digest, err = a.Digest(); err != nil {
				return err
			}
		}
		if err := a.AppendEntry(&e); err != nil {
			return err
		}
	}
	slices.Sort(a.superseded)
	err := remove(a.T, a.C, a.superseded)
	a.superseded = a.superseded[:0]
	return err
}

// AppendEntry appends an entry that has its place already: an origin has given it.
func (a *Appender) AppendEntry(e *Entry) error {
	if a.T != nil {
		if err := a.supersede(e); err != nil {
			return err
		}
	}
	if err := putLast(a.C, e, a.Put); err != nil {
		return err
	}
	return a.sign(e)
}

// sign adds the leaf of an entry to the tree of a log that has one.
func (a *Appender) sign(e *Entry) error {
	if !a.Signed {
		return nil
	}
	if lacking := e.Seq - 1 - a.C.Hashed; lacking > 0 { // it begins to be signed
		if err := CompleteTree(a.T, a.C, lacking); err != nil {
			return err
		}
	}
	a.tree.LogTree, a.tree.Put = LogTree{Tx: a.T, Log: a.C.Log()}, a.Put
	err := a.tree.Append(a.C.Hashed, e.Leaf())
	a.C.Hashed++
	return err
}

// supersede links a new entry to the previous entry of its key, and removes that if it was kept only for the key.
func (a *Appender) supersede(e *Entry) error {
	last, err := LastOf(a.T, a.C, e.TopicSI)
	if last == 0 || err != nil {
		return err
	}
	e.Prior, e.Modified = last, true
	if !a.C.isFirst(last) { // those live
		before, err := there(a.T, a.C, last)
		if err != nil {
			return err
		}
		e.Modified = before.Lives()
	}
	switch {
	case last > a.C.Horizon:
		return nil
	case a.C.isFirst(last): // there may be others in the block
		a.superseded = append(a.superseded, last)
		return nil
	}
	return remove(a.T, a.C, []uint64{last})
}

// At returns the entry with a sequence, nil where it is not there.
func At(t *txn.Tx, c *Collection, seq uint64) (*Entry, error) {
	switch {
	case seq == 0 || seq > c.Head:
		return nil, nil
	case c.isFirst(seq):
		return first(t, c, seq)
	}
	var e Entry
	ok, err := t.GetJSON(c.Log().Numbered(keys.TableLog, seq), &e)
	if !ok || err != nil {
		return nil, err
	}
	return &e, nil
}

// there is At for an entry that must exist.
func there(t *txn.Tx, c *Collection, seq uint64) (*Entry, error) {
	e, err := At(t, c, seq)
	if e == nil && err == nil {
		err = noEntry(c, seq)
	}
	return e, err
}

// Last returns the last entry of a topic key, nil for none.
func Last(t *txn.Tx, c *Collection, key string) (*Entry, error) {
	h, ok := fragment.ParseKey(key)
	if !ok {
		return nil, nil
	}
	seq, err := lastIn(t, hashKey(c, h))
	if seq == 0 || err != nil {
		return nil, err
	}
	return there(t, c, seq)
}

// LastEntry returns the last entry of a TopicSI, nil for none.
func LastEntry(t *txn.Tx, c *Collection, topicSI fragment.Ref) (*Entry, error) {
	seq, err := LastOf(t, c, topicSI)
	switch {
	case seq == 0 || err != nil:
		return nil, err
	case c.isFirst(seq): // its block has no more data
		e := c.Beginning.entry(seq, topicSI)
		return &e, nil
	}
	return there(t, c, seq)
}

// Before returns the sequence of the last existing entry before seq, 0 for none.
func Before(t *txn.Tx, c *Collection, seq uint64) (uint64, error) {
	if !c.isFirst(seq - 1) {
		for r, err := range t.Descend(c.Log().Key(keys.TableLog), c.Log().Numbered(keys.TableLog, seq-1)) {
			if err != nil {
				return 0, err
			}
			return keys.NumberIn(r.Key), nil
		}
	}
	return lastFirstBefore(t, c, seq)
}

// Kept iterates over the entries from a sequence on that are there, those included that are kept for the sake of their
// topics.
func Kept(t *txn.Tx, c *Collection, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if !keptFirst(t, c, from, yield) {
			return
		}
		rows := t.ScanInPlace(c.Log().Key(keys.TableLog), c.Log().Numbered(keys.TableLog, from))
		seq.Map(txn.Values[Entry](rows), func(e Entry) (Entry, error) {
			if e.Seq > c.Head {
				return e, seq.ErrStop
			}
			return e, nil
		})(yield)
	}
}

// CompleteTree adds missing leaves to the tree, for most entries at a time.
func CompleteTree(t *txn.Tx, c *Collection, most uint64) error {
	w := LogWriter{LogTree: LogTree{Tx: t, Log: c.Log()}, Put: t.Put}
	last := min(c.Head, c.Hashed+most)
	add := func(leaf []byte) error {
		err := w.Append(c.Hashed, leaf)
		c.Hashed++
		return err
	}
	for e, err := range Kept(t, c, c.Hashed+1) {
		if err != nil {
			return err
		}
		for c.Hashed+1 < min(e.Seq, last+1) { // those before it are pruned
			if err := add(nil); err != nil {
				return err
			}
		}
		if e.Seq > last {
			return nil
		}
		if err := add(e.Leaf()); err != nil {
			return err
		}
	}
	for c.Hashed < last { // of a log without its beginning
		if err := add(nil); err != nil {
			return err
		}
	}
	return nil
}
