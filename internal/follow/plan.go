package follow

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tmshare/tmshare/internal/extsort"
)

// Inventory knows which records are held.
type Inventory interface {
	// Versions returns the last modified times of the held records, and of those known to be available in no wanted
	// format. The map has no others.
	Versions(ctx context.Context, ids []string) (map[string]time.Time, error)
	// Each calls f with the id of every record that is held, until that fails.
	Each(ctx context.Context, f func(id string) error) error
}

// Comparer is an [Inventory] that knows the bytes of its records.
type Comparer interface {
	// Compare compares a record known to Versions with the source's statement.
	Compare(id string, stated Fixity) Match
}

// Plan is the work to make an inventory equal to the source: records to remove, and then those to fetch. It may be
// larger than memory.
type Plan struct {
	Removals int // records to remove
	Total    int // all records of the plan

	asked   map[string]Asked
	rows    *extsort.Sorter
	scratch *Scratch
	open    func(*Record) // see Delta

	log *Log // in place of rows: its changes are done one after the other

	// If the whole source was read: the number of held records, and the records that the source lacks or has in older
	// versions. Only [Plan.Settle] plans these.
	held    int
	lacking []string // their ids, MaxAbsent at most
	lacks   *extsort.Sorter
}

// Asked is the result of a look for a requested record.
type Asked struct {
	Record
	News    bool // otherwise the statement is from before the mark
	Planned bool // it is in the plan
}

// About returns the source's statement about a record that was requested for the plan; nil if it was not read or does
// not exist. The plan may be nil: then nothing has changed.
func (p *Plan) About(id string) *Asked {
	if p == nil {
		return nil
	}
	if a, ok := p.asked[id]; ok {
		return &a
	}
	return nil
}

// Again returns the work for a requested record whose fetch failed: the source's present statement, if it was read,
// unless it is about an earlier version. The record may be deleted now, or have other representations.
func (p *Plan) Again(r Record) Record {
	switch now := p.About(r.ID); {
	case now == nil || now.Updated.Before(r.Updated):
	case now.Updated.After(r.Updated):
		return now.Record
	case !now.Deleted && len(now.Representations) > 0:
		r.Representations = now.Representations
	}
	return r
}

// Close removes the files of the plan.
func (p *Plan) Close() error {
	if p.log != nil { // it is the look's
		return nil
	}
	return errors.Join(p.rows.Close(), p.lacks.Close())
}

// Planning makes a plan.
type Planning struct {
	*Plan
	*Delta
	h      Inventory
	Wanted *extsort.Sorter // by id, the records to fetch that a package may have; nil: none
}

// maxLookups is the number of records per query of an inventory.
const maxLookups = 1000

// Plan returns the work to make h equal to the source, and the source's statements about the requested records. It can
// be called once, and the result must be closed. The inventory has no effect on the changes of a log.
func (n *Delta) Plan(ctx context.Context, h Inventory, asked map[string]time.Time) (*Plan, error) {
	if n.Log != nil {
		return &Plan{Total: n.Log.Total(), log: n.Log}, nil
	}
	if n.Scratch == nil {
		n.Scratch = &Scratch{}
	}
	p := &Planning{Plan: &Plan{asked: map[string]Asked{}, rows: n.Scratch.Sorter(), lacks: n.Scratch.Sorter(),
		scratch: n.Scratch, open: n.Open}, Delta: n, h: h}
	if n.Supply != nil {
		p.Wanted = n.Scratch.Sorter()
		defer p.Wanted.Close()
	}
	err := p.fill(ctx, asked)
	if err == nil && p.Wanted != nil {
		err = n.Supply(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, p.Plan.Close())
	}
	return p.Plan, nil
}

func (p *Planning) fill(ctx context.Context, asked map[string]time.Time) error {
	if p.Whole && p.Delta.Stated != nil {
		isHeld := func(id string) error {
			p.held++
			one := Statement{ID: id, Kind: kindHeld}
			return p.Delta.Stated.rows.Add(one.byID(), one.value())
		}
		if err := p.h.Each(ctx, isHeld); err != nil {
			return err
		}
		for id := range asked { // a record to retry is to be removed, too, if it no longer exists
			if err := isHeld(id); err != nil {
				return err
			}
		}
	}
	var some []*state
	for one, err := range p.Delta.Stated.states(ctx) {
		if err != nil {
			return err
		}
		if _, ok := asked[one.ID]; ok {
			if err := p.note(one); err != nil {
				return err
			}
		}
		if some = append(some, one); len(some) == maxLookups {
			if err := p.decideAll(ctx, some); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return p.decideAll(ctx, some)
}

// note notes the source's statement about a requested record.
func (p *Planning) note(one *state) error {
	last := one.Statement
	switch {
	case one.news:
	case one.held:
		last = p.removal(one.ID)
	case one.older != nil:
		last = *one.older
	default:
		return nil
	}
	r, err := last.Record()
	if p.Plan.open != nil {
		p.Plan.open(&r)
	}
	p.asked[one.ID] = Asked{Record: r, News: one.news}
	return err
}

// removal returns the statement that a record is missing from a complete list.
func (p *Planning) removal(id string) Statement {
	return Statement{ID: id, Updated: p.Mark.Updated, Deleted: true, rest: []byte("{}")}
}

func (p *Planning) decideAll(ctx context.Context, some []*state) error {
	ids := make([]string, len(some))
	for i, one := range some {
		ids[i] = one.ID
	}
	versions, err := p.h.Versions(ctx, ids)
	for _, one := range some {
		version, isHeld := versions[one.ID]
		if err == nil {
			err = p.decide(one, version, isHeld)
		}
	}
	return err
}

// decide puts a record into the plan, if it is to be removed or fetched.
func (p *Planning) decide(one *state, version time.Time, isHeld bool) error {
	switch {
	case !one.news && one.held:
		last := p.removal(one.ID)
		return p.lack(&last)
	case !one.news:
		return nil
	case one.Deleted && isHeld && (p.Whole || !version.After(one.Updated) || p.isFuture(version)):
		return p.remove(&one.Statement)
	case one.Deleted:
		return nil
	}
	one.Unsure = one.Unsure || one.disputed && !isHeld
	match := Unknown
	if isHeld { // otherwise unpacking the record is not needed
		var err error
		if match, err = p.match(&one.Statement); err != nil {
			return err
		}
	}
	if isHeld && !p.Anew && !one.Anew && !one.Unsure && one.Updated.Equal(version) && match != Different {
		return nil
	}
	if p.Whole && isHeld && one.Updated.Before(version) {
		return p.lack(&one.Statement)
	}
	if p.Wanted != nil && match != Same && one.Pack == 0 {
		return p.Wanted.Add(one.byID(), one.value())
	}
	return p.Fetch(&one.Statement)
}

// isFuture reports whether a time is later than the source's clock, so that it cannot be compared with later ones.
func (p *Planning) isFuture(at time.Time) bool { return !p.AsOf.IsZero() && at.After(p.AsOf) }

// match compares a held record with the statement about its best representation.
func (p *Planning) match(one *Statement) (Match, error) {
	c, ok := p.h.(Comparer)
	if !ok {
		return Unknown, nil
	}
	r, err := one.Record()
	if err != nil || len(r.Representations) == 0 {
		return Unknown, err
	}
	return c.Compare(r.ID, r.Representations[0].Fixity), nil
}

// lack notes a record that the source lacks, or has in an older version than the held one.
func (p *Planning) lack(one *Statement) error {
	if len(p.lacking) <= MaxAbsent {
		p.lacking = append(p.lacking, one.ID)
	}
	row := one.InOrder([]byte(one.ID))
	return p.lacks.Add(row.Key, row.Value)
}

// Settle plans the removal of records that are believed to be deleted. It is called once.
func (p *Plan) Settle(believed func(id string) bool) error {
	if p.log != nil {
		return nil
	}
	for row, err := range p.lacks.Sorted() {
		if err != nil {
			return err
		}
		one := ReadInOrder(row)
		switch {
		case !believed(one.ID):
			continue
		case one.Deleted:
			err = p.remove(&one)
		default:
			err = p.put(1, &one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) remove(one *Statement) error {
	p.Removals++
	return p.put(0, one)
}

// Fetch puts a record to fetch into the plan.
func (p *Planning) Fetch(one *Statement) error { return p.put(1, one) }

// put puts a record into the order of the plan: removals first, records of one package together, then by time.
func (p *Plan) put(order byte, one *Statement) error {
	p.Total++
	if a, ok := p.asked[one.ID]; ok {
		a.Planned = true
		p.asked[one.ID] = a
	}
	if p.Total%10_000 == 0 && p.scratch.CheckSpace != nil {
		if err := p.scratch.CheckSpace(); err != nil {
			return err
		}
	}
	key := binary.BigEndian.AppendUint32([]byte{order}, one.Pack)
	key = binary.BigEndian.AppendUint64(extsort.AppendTime(key, one.Updated), one.Place)
	row := one.InOrder(key)
	return p.rows.Add(row.Key, row.Value)
}

// A chunk has so many records, and about so many bytes, at most.
const (
	maxChunk      = 4000
	maxChunkBytes = 4 << 20
)

// Chunks iterates over the records of the plan, some at a time. A chunk has either records to
// remove, or records to fetch, or changes in the order of time.
func (p *Plan) Chunks() iter.Seq2[[]Record, error] {
	if p.log != nil {
		return p.log.chunks()
	}
	return p.scratch.chunks(p.rows, func(row extsort.Row) (Record, error) {
		one := ReadInOrder(row)
		r, err := one.Record()
		if p.open != nil {
			p.open(&r)
		}
		return r, err
	})
}

// chunks iterates over the records in sorted rows in chunks. The records of a chunk are all deleted, or all exist.
func (s *Scratch) chunks(rows *extsort.Sorter, read func(extsort.Row) (Record, error)) iter.Seq2[[]Record, error] {
	most := cmp.Or(s.Chunk, maxChunk)
	return func(yield func([]Record, error) bool) {
		var chunk []Record
		size := 0
		for row, err := range rows.Sorted() {
			var r Record
			if err == nil {
				r, err = read(row)
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading the plan of the round back: %w", err))
				return
			}
			if n := len(chunk); n == most || n > 0 && (size > maxChunkBytes || chunk[0].Deleted != r.Deleted) {
				if !yield(chunk, nil) {
					return
				}
				chunk, size = nil, 0
			}
			chunk = append(chunk, r)
			size += len(row.Value)
		}
		if len(chunk) > 0 {
			yield(chunk, nil)
		}
	}
}
