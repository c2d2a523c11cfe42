package sparql

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
)

// A graph in a store has the statements of the server's RDF documents (docs/targets.md), with two differences. Blank
// nodes have IRIs, which are stable. Statements are left out that only state that a topic exists, or that a property
// makes names. So each statement follows from one record, and the difference of two states follows from the changed
// records.

// statements returns the statements that records have. It is not safe for concurrent use.
type statements struct {
	records *mapping.Records
	found   []rdf.Quad
}

func newStatements(sp string) *statements {
	s := &statements{}
	s.records = mapping.NewRecords(sp, func(q rdf.Quad) error {
		q.Object.Language = strings.ToLower(q.Object.Language)
		s.found = append(s.found, q)
		return nil
	})
	s.records.Skolem = true
	return s
}

// ofRecord returns the statements of a record. They are valid until the next call.
func (s *statements) ofRecord(r *fragment.Record) ([]rdf.Quad, error) {
	s.found = s.found[:0]
	err := s.records.Record(r)
	return s.found, err
}

// line writes a statement as N-Triples does, which is how updates have it, too.
func line(q rdf.Quad) string { return turtle.Line(q) }

// difference is the change from one state of a graph to another: lines to delete, then lines to insert.
type difference struct{ rows extsort.Sorter }

// The values of rows of a difference.
var (
	goes  = []byte("-")
	comes = []byte("+")
)

// sortedMemory is the memory for sorting, in bytes.
const sortedMemory = 16 << 20

func newSorter(folder, name string) extsort.Sorter {
	return extsort.Sorter{Path: filepath.Join(folder, name), Most: sortedMemory, Unnamed: true}
}

// keysAtOnce is the number of rows per read.
const keysAtOnce = 500

// differ returns the difference between the states of a source after two commits, in files below a folder where it is
// large. Its cost follows the changes.
func differ(ctx context.Context, folder string, c *store.Consumed, from, to uint64) (*difference, error) {
	before, err := c.State(from)
	if err != nil {
		return nil, err
	}
	after, err := c.State(to)
	if err != nil {
		return nil, err
	}
	d := &difference{rows: newSorter(folder, "target-difference")}
	changed := newSorter(folder, "target-changed")
	defer changed.Close()
	for key, err := range c.Changed(from, to) {
		if err == nil {
			_, isTopic := records.TopicOf(key)
			if _, _, plays := records.Playing(key); isTopic || plays {
				err = changed.Add(bytes.Clone(key), nil)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	w := &differing{d: d, was: newStatements(c.SP), is: newStatements(c.SP), before: before, after: after}
	err = w.rows(ctx, chunked(changed.Sorted()))
	if err != nil {
		_ = d.rows.Close() // the first error counts
		return nil, err
	}
	return d, nil
}

// chunked returns the different keys of rows, some at a time.
func chunked(rows iter.Seq2[extsort.Row, error]) iter.Seq2[[][]byte, error] {
	return func(yield func([][]byte, error) bool) {
		var some [][]byte
		for row, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			if n := len(some); n > 0 && bytes.Equal(some[n-1], row.Key) {
				continue
			}
			if len(some) == keysAtOnce {
				if !yield(some, nil) {
					return
				}
				some = nil
			}
			some = append(some, bytes.Clone(row.Key))
		}
		if len(some) > 0 {
			yield(some, nil)
		}
	}
}

// differing compares the records of two states.
type differing struct {
	d             *difference
	was, is       *statements
	before, after records.State
}

func (w *differing) rows(ctx context.Context, chunks iter.Seq2[[][]byte, error]) error {
	for keys, err := range chunks {
		if err == nil {
			err = ctx.Err()
		}
		for _, s := range []records.State{w.before, w.after} {
			if err == nil {
				err = s.Tx().Expect(keys, nil)
			}
		}
		for _, key := range keys {
			if err == nil {
				err = w.row(key)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *differing) row(key []byte) error {
	old, err := w.before.RecordAt(key)
	if err != nil {
		return err
	}
	next, err := w.after.RecordAt(key)
	if err != nil {
		return err
	}
	was, err := w.was.ofRecord(&old)
	if err != nil {
		return err
	}
	is, err := w.is.ofRecord(&next)
	if err != nil {
		return err
	}
	now := map[rdf.Quad]bool{}
	for _, q := range is {
		now[q] = true
	}
	for _, q := range was {
		if now[q] {
			now[q] = false // it stays
			continue
		}
		stated, err := w.stated(q)
		if err != nil {
			return err
		}
		if !stated {
			err = w.d.rows.Add([]byte(line(q)), goes)
		}
		if err == nil {
			err = w.keepEqual(q, is)
		}
		if err != nil {
			return err
		}
	}
	for q, new := range now {
		if new {
			if err := w.d.rows.Add([]byte(line(q)), comes); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepEqual inserts those statements of a record again that a store may equate with a deleted one, because stores that
// hold 1 and 1.0 as one value lose both.
func (w *differing) keepEqual(goes rdf.Quad, is []rdf.Quad) error {
	if goes.Object.Kind != rdf.Literal {
		return nil
	}
	value := canonical(goes.Object)
	for _, q := range is {
		if q.Predicate == goes.Predicate && q.Object.Kind == rdf.Literal && canonical(q.Object) == value {
			if err := w.d.rows.Add([]byte(line(q)), comes); err != nil {
				return err
			}
		}
	}
	return nil
}

// stated reports whether another record of the later state has the same statement: an association with another scope.
// It reads the associations of the subject and of the object, and stops at the end of the shorter list.
func (w *differing) stated(q rdf.Quad) (found bool, err error) {
	if q.Object.Kind == rdf.Literal {
		return false, nil
	}
	s := newStatements("") // the caller goes on with what the others have found
	var pulls []func() (*fragment.Association, error, bool)
	for _, term := range []rdf.Term{q.Subject, q.Object} {
		next, stop := iter.Pull2(fragment.PlayedBy(w.after, mapping.RefOf(term)))
		defer stop()
		pulls = append(pulls, next)
	}
	for {
		for _, next := range pulls {
			a, err, more := next()
			if !more || err != nil {
				return false, err
			}
			all, err := s.ofRecord(&fragment.Record{Association: a})
			if err != nil {
				return false, err
			}
			for _, other := range all {
				if other == q {
					return true, nil
				}
			}
		}
	}
}

// lines iterates over the lines to delete, then over those to insert, each sorted and once. A line in both is now
// stated by another record: it is inserted.
func (d *difference) lines(value []byte) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var last []byte
		goesOnly, isComing := false, false
		flush := func() bool {
			take := goesOnly && !isComing
			if bytes.Equal(value, comes) {
				take = isComing
			}
			return last == nil || !take || yield(string(last), nil)
		}
		for row, err := range d.rows.Sorted() {
			if err != nil {
				yield("", err)
				return
			}
			if !bytes.Equal(row.Key, last) {
				if !flush() {
					return
				}
				last, goesOnly, isComing = bytes.Clone(row.Key), false, false
			}
			goesOnly = goesOnly || bytes.Equal(row.Value, goes)
			isComing = isComing || bytes.Equal(row.Value, comes)
		}
		flush()
	}
}

// size returns the number of lines at most.
func (d *difference) size() int { return d.rows.Count() }

// Close removes the files.
func (d *difference) Close() error { return d.rows.Close() }

// whole sorts the statements of a state by their places, for a comparison with those of a store.
func whole(ctx context.Context, folder string, sp string, state records.State) (*extsort.Sorter, error) {
	rows := newSorter(folder, "target-whole")
	s := newStatements(sp)
	for record, err := range fragment.Records(state) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			_, err = s.ofRecord(&record)
		}
		for _, q := range s.found {
			if err == nil {
				err = rows.Add(placeOf(q).key(line(q)), nil)
			}
		}
		if err != nil {
			_ = rows.Close() // the first error counts
			return nil, err
		}
	}
	return &rows, nil
}

// place is where a statement stands among those of a graph: by subject, property, and object. Literals, which stores
// may change, stand before all IRIs of a property, without an order.
type place struct {
	subject, property string
	object            string // of an IRI; "": the object is a literal
}

func placeOf(q rdf.Quad) place {
	p := place{subject: q.Subject.Value, property: q.Predicate.Value}
	if q.Object.Kind != rdf.Literal {
		p.object = q.Object.Value
	}
	return p
}

// cut returns the end of a range after the statement last. ok is false if no range may end there.
func (p place) cut(last place) (at place, ok bool) {
	switch {
	case p.subject != last.subject:
		return place{subject: p.subject}, true
	case p.property != last.property:
		return place{subject: p.subject, property: p.property}, true
	}
	return p, p.object != last.object && p.object != ""
}

func (p place) compare(other place) int {
	return cmp.Or(strings.Compare(p.subject, other.subject), strings.Compare(p.property, other.property),
		strings.Compare(p.object, other.object))
}

// No IRI has a zero byte.
func (p place) key(line string) []byte {
	return []byte(p.subject + "\x00" + p.property + "\x00" + p.object + "\x00" + line)
}

// ofKey takes a key of a place apart.
func ofKey(key []byte) (p place, line string, err error) {
	parts := strings.SplitN(string(key), "\x00", 4)
	if len(parts) != 4 {
		return p, "", fmt.Errorf("%q is no key of a statement", key)
	}
	return place{parts[0], parts[1], parts[2]}, parts[3], nil
}
