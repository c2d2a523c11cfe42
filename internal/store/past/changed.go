package past

import (
	"iter"
	"math"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// CommitOf returns the number of the first commit at or after a sequence, which contains the entry with the sequence; 0
// if there is none.
func CommitOf(now kv.Reader, id keys.Source, seq uint64) (uint64, error) {
	p, err := first(now, id, id.Changed(seq, 0), false)
	return p.Commit, err
}

// CommitBefore returns the number of the last commit before another one; 0 if there is none.
func CommitBefore(now kv.Reader, id keys.Source, commit uint64) (uint64, error) {
	if commit == 0 {
		return 0, nil
	}
	p, err := first(now, id, id.Changed(commit-1, math.MaxUint32), true)
	return p.Commit, err
}

// Last returns the position of the last part of the commits' changes; zero if there is none.
func Last(now kv.Reader, id keys.Source) (Position, error) { return first(now, id, nil, true) }

// first returns the position of the first part from a key on.
func first(now kv.Reader, id keys.Source, from []byte, reverse bool) (p Position, err error) {
	for row, err := range now.Range(id.Key(keys.TableChanged), from, reverse) {
		if err == nil {
			p, err = positionOf(row)
		}
		return p, err
	}
	return p, nil
}

func positionOf(row kv.Row) (p Position, err error) {
	var ok bool
	if p.Commit, p.Part, ok = keys.OfChanged(row.Key); !ok {
		err = corrupt(row.Key)
	}
	return p, err
}

// Position is a position in the changes of commits. Positions have the order of the parts.
type Position struct {
	Commit uint64
	Part   uint32
}

// IsBefore reports whether a position precedes another one.
func (p Position) IsBefore(other Position) bool {
	return p.Commit < other.Commit || p.Commit == other.Commit && p.Part < other.Part
}

// Cursor is the position up to which a consumer has read the changes of a source. It is in a row of the consumer, which
// moves it in the commit of its results. So a crash loses nothing, and commits of the source write nothing for the
// consumer.
type Cursor struct {
	Generation uint32
	Position
}

// Head returns the cursor after all changes of a source, whose former rows are kept from the commit since on.
func Head(now kv.Reader, id keys.Source, since uint64) (Cursor, error) {
	last, err := Last(now, id)
	if least := (Position{Commit: since}); last.IsBefore(least) {
		last = least
	}
	return Cursor{id.Generation, last}, err
}

// GoesOn reports whether a consumer can continue from c: all changes since then are stored, and the source has all that
// it has read. Otherwise it starts again: it reads the whole source, and continues from its head.
func (c Cursor) GoesOn(since uint64, head Cursor) bool {
	return c.Generation == head.Generation && c.Commit >= since && !head.IsBefore(c.Position)
}

// Part is a part of the changes of a commit.
type Part struct {
	Position
	Keys [][]byte // of the rows, in their order
}

// Again reports whether other commits with the same number preceded the one of the part. Then the rows before it are
// not known, only those before all of these commits.
func (p *Part) Again() bool { return p.Position.Part >= again }

// again is the number of the first part of a commit that has the number of the one before.
const again = 1 << 31

// Parts iterates over the changes of commits, after a position.
func Parts(now kv.Reader, id keys.Source, after Position) iter.Seq2[Part, error] {
	return partsOf(id, now.Range(id.Key(keys.TableChanged), append(id.Changed(after.Commit, after.Part), 0), false))
}

func partsOf(id keys.Source, rows iter.Seq2[kv.Row, error]) iter.Seq2[Part, error] {
	return seq.Map(rows, func(row kv.Row) (Part, error) { return partOf(id, row) })
}

func partOf(id keys.Source, row kv.Row) (p Part, err error) {
	if p.Position, err = positionOf(row); err != nil {
		return p, err
	}
	var relative []byte
	for list := row.Value; len(list) > 0; {
		var ok bool
		if relative, list, ok = keys.NextShared(list, relative); !ok {
			return p, corrupt(row.Key)
		}
		p.Keys = append(p.Keys, id.Record(relative))
	}
	return p, nil
}

// Changed iterates over the keys of the rows that commits have changed, from the first number to the last: in the order
// of commits, and of each in that of keys.
func Changed(now kv.Reader, id keys.Source, first, last uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		parts := Parts(now, id, Position{first - 1, math.MaxUint32})
		if first == last { // prefetched together with others, see [kv.Single]
			parts = partsOf(id, now.Range(id.ChangedBy(first), nil, false))
		}
		for p, err := range parts {
			if err != nil {
				yield(nil, err)
				return
			}
			if p.Commit > last {
				return
			}
			for _, key := range p.Keys {
				if !yield(key, nil) {
					return
				}
			}
		}
	}
}

// ForgetSome removes some of the stored past of commits from a number on, up to another one. It reports whether more
// remains, and the commit to continue with, because starting from the first would pass all removed rows.
func ForgetSome(t *txn.Tx, id keys.Source, from, upTo uint64) (next uint64, more bool, err error) {
	parts := 0
	for row, err := range t.Scan(id.Key(keys.TableChanged), id.Changed(from, 0)) {
		if err != nil {
			return 0, false, err
		}
		commit, _, ok := keys.OfChanged(row.Key)
		switch {
		case !ok:
			return 0, false, corrupt(row.Key)
		case commit > upTo:
			return 0, false, nil
		case parts == partsAtOnce:
			return commit, true, nil
		}
		parts++
		p, err := partOf(id, row)
		for i := range p.Keys {
			if err == nil {
				err = t.Delete(id.Before(p.Keys[i], commit))
			}
		}
		if err == nil {
			err = t.Delete(row.Key)
		}
		if err != nil {
			return 0, false, err
		}
	}
	return 0, false, nil
}

// partsAtOnce is the number of parts that one commit removes.
const partsAtOnce = 200
