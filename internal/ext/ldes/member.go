package ldes

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
)

// member is a member of a stream: a version of a resource, or a resource.
type member struct {
	follow.Record
	version     string // its IRI
	place       uint64 // of two members of one time the later place counts
	sum         uint64 // the digest of its statements
	transaction string
	final       bool // it is the last of its transaction
}

// member reads a member of a page.
func (w *walk) member(d *read, id rdf.Term, p *held, i int) (*member, error) {
	t := w.after.Terms
	m := &member{version: id.Value, place: p.N<<32 | uint64(i)}
	resource := id
	for _, term := range d.at(id, t.Of) {
		if term.Kind != rdf.IRI {
			continue
		}
		if resource != id && resource != term {
			return nil, fmt.Errorf("%s: the member %s is a version of two resources, %s and %s", d.URL, id.Value,
				resource.Value, term.Value)
		}
		resource = term
	}
	m.ID, m.TopicSI = resource.Value, []string{resource.Value}
	for _, at := range d.at(id, t.Time) {
		var zoned bool
		m.Updated, zoned = timeOf(at.Value)
		w.after.Local = w.after.Local || !zoned
	}
	for _, at := range d.at(id, t.Sequence) {
		if n, err := strconv.ParseInt(at.Value, 10, 64); err == nil {
			if m.place = uint64(n) ^ 1<<63; m.Updated.IsZero() {
				m.Updated = time.UnixMicro(n).UTC()
			}
		}
	}
	if m.Updated.IsZero() {
		m.Updated = w.arrival(p, id.Value)
	}
	m.Deleted = resource != id && slices.ContainsFunc(d.at(id, t.Type), func(c rdf.Term) bool {
		return slices.Contains(t.Deletes, c.Value)
	})
	for _, in := range d.at(id, t.Transaction) {
		m.transaction = in.Value
	}
	for _, f := range d.at(id, t.Final) {
		m.final = m.final || f.Value == t.Finals || t.Finals == "" && f.Value == "true"
	}
	text := d.textOf(id, resource, t)
	if text == "" && resource == id && !m.Deleted {
		return nil, fmt.Errorf("%s: the page names the member %s and says nothing of it: it is cut, or its members are "+
			"elsewhere, and are not read", d.URL, id.Value)
	}
	h := fnv.New64a()
	for _, part := range []string{id.Value, m.Updated.String(), strconv.FormatBool(m.Deleted), text} {
		_, _ = io.WriteString(h, part+"\n") // it never fails
	}
	m.sum = h.Sum64()
	if m.Deleted {
		return m, nil
	}
	var err error
	m.Pack, err = w.put(w.Temp, text)
	m.Representations = []follow.Representation{{URL: id.Value, Type: "application/n-triples"}}
	return m, err
}

// arrival returns when a member without a time was read first: later than those before, a microsecond at least.
func (w *walk) arrival(p *held, id string) time.Time {
	h := fnv.New64a()
	_, _ = io.WriteString(h, id) // it never fails
	if at, known := p.Arrived[h.Sum64()]; known {
		return time.UnixMicro(at).UTC()
	}
	if p.Arrived == nil {
		p.Arrived = map[uint64]int64{}
	}
	w.after.Arrived = max(w.after.Arrived+1, w.asOf.Truncate(time.Second).UnixMicro())
	p.Arrived[h.Sum64()] = w.after.Arrived
	return time.UnixMicro(w.after.Arrived).UTC()
}

// timeOf parses an xsd:dateTime or an xsd:date, and reports whether it has a time zone. Other texts give the zero time.
func timeOf(text string) (at time.Time, zoned bool) {
	text = strings.TrimSpace(text)
	for i, layout := range []string{time.RFC3339Nano, "2006-01-02Z07:00", "2006-01-02T15:04:05.999999999", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Truncate(time.Microsecond), i < 2
		}
	}
	return time.Time{}, false
}

// textOf returns the statements of a member about its resource, in N-Triples: the member's statements without those
// about the stream, the statements of its graph, and those of their blank nodes (LDES §3.4 "Emitting members").
func (d *read) textOf(id, resource rdf.Term, t *terms) string {
	var b strings.Builder
	version := resource != id
	say := func(q rdf.Quad) {
		if q.Subject == id {
			q.Subject = resource
		}
		q.Graph = rdf.Term{}
		b.WriteString(turtle.Line(q))
	}
	seen, queue := map[rdf.Term]bool{id: true}, []rdf.Term{id}
	follow := func(q rdf.Quad) {
		if say(q); q.Object.Kind == rdf.Blank && !seen[q.Object] {
			seen[q.Object] = true
			queue = append(queue, q.Object)
		}
	}
	for _, at := range d.named[id.Value] {
		if q := d.statements[at]; q.Subject != id { // otherwise added below
			follow(q)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, at := range d.by[queue[0]] {
			if q := d.statements[at]; !version || q.Subject != id || !t.spends(&q) {
				follow(q)
			}
		}
	}
	return b.String()
}

// contents is a file with the statements of members.
type contents struct {
	file *os.File
	out  *bufio.Writer
	ends []int64 // end of the statements of each member
}

// put adds the statements of a member, and returns its number, counted from 1.
func (c *contents) put(folder, text string) (n uint32, err error) {
	if c.file == nil {
		if c.file, err = os.CreateTemp(folder, "members-*"+follow.TempSuffix); err != nil {
			return 0, err
		}
		c.out, c.ends = bufio.NewWriterSize(c.file, 1<<16), []int64{0}
	}
	_, err = c.out.WriteString(text)
	c.ends = append(c.ends, c.ends[len(c.ends)-1]+int64(len(text)))
	return uint32(len(c.ends) - 1), err
}

func (c *contents) flush() error {
	if c.out == nil {
		return nil
	}
	return c.out.Flush()
}

// attach has the content of a record opened in the file.
func (c *contents) attach(r *follow.Record) {
	if r.Pack == 0 || len(r.Representations) == 0 {
		return
	}
	from, to := c.ends[r.Pack-1], c.ends[r.Pack]
	r.Representations[0].Open = func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(c.file, from, to-from)), nil
	}
}

// Close removes the file.
func (c *contents) Close() error {
	if c.file == nil {
		return nil
	}
	return errors.Join(c.file.Close(), os.Remove(c.file.Name()))
}
