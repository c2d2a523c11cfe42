package past

import (
	"iter"
	"math"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// CommitOf returns the number of the first commit that is not before a sequence: the one to which the entry with the
// sequence belongs. It is 0 where there is none.
func CommitOf(now kv.Reader, id keys.Source, seq uint64) (uint64, error) {
	p, err := first(now, id, id.Changed(seq, 0), false)
	return p.Commit, err
}

// CommitBefore returns the number of the last commit before another one, 0 where there is none.
func CommitBefore(now kv.Reader, id keys.Source, commit uint64) (uint64, error) {
	if commit == 0 {
		return 0, nil
	}
	p, err := first(now, id, id.Changed(commit-1, math.MaxUint32), true)
	return p.Commit, err
}

// Last returns the position of the last part of what commits have changed; the zero one where there is none.
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

// Position is a place in what commits have changed. Positions follow one another as the parts do.
type Position struct {
	Commit uint64
	Part   uint32
}

// IsBefore reports whether a position comes before another one.
func (p Position) IsBefore(other Position) bool {
	return p.Commit < other.Commit || p.Commit == other.Commit && p.Part < other.Part
}

// Cursor is how far a consumer has read what the commits of a source have changed. It lies in a row of the consumer,
// which moves it in the commit that keeps what follows from what was read. So nothing is lost by a crash, and the
// commits of the source write nothing for the consumer.
type Cursor struct {
	Generation uint32
	Position
}

// Head returns the cursor behind all that the commits of a source have changed, of which it is remembered what those
// behind since have.
func Head(now kv.Reader, id keys.Source, since uint64) (Cursor, error) {
	last, err := Last(now, id)
	if least := (Position{Commit: since}); last.IsBefore(least) {
		last = least
	}
	return Cursor{id.Generation, last}, err
}

// GoesOn reports whether a consumer can go on where it is: it lacks nothing that is forgotten, and has read nothing
// that the source does not have. Else it starts afresh: it reads the source as a whole, and goes on behind its head.
func (c Cursor) GoesOn(since uint64, head Cursor) bool {
	return c.Generation == head.Generation && c.Commit >= since && !head.IsBefore(c.Position)
}

// Part is some of what a commit has changed.
type Part struct {
	Position
	Keys [][]byte // of the rows, in their order
}

// Again reports whether other commits with the same number came before the one that the part is of. What its rows were
// before it is not known then, but only what they were before all of these.
func (p *Part) Again() bool { return p.Position.Part >= again }

// again is the number of the first part of a commit that has the number of the one before.
const again = 1 << 31

// Parts iterates over what commits have changed, behind a position.
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
		if first == last { // asked for together with others, see [kv.Single]
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

// ForgetSome removes some of what is remembered of commits from a number on, up to another one. It reports whether
// there is more, and with which commit to go on: a walk from the first one would pass all that was removed.
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

// partsAtOnce is how many parts go in one commit.
const partsAtOnce = 200
