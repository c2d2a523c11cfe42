package destination

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/follow"
)

// A package of a dump replaces many requests (Z39.99 §11, Packaging Resources; §13, Packaging Changes). Only the lists
// determine the state: packages supply content for it, and if one is invalid, the resources are fetched singly.

// requestCost is the number of bytes of a package that cost as much time as a request.
const requestCost = 100_000

// fewest is the number of wanted resources that make a package of unstated length worth fetching.
const fewest = 10

// isWorth reports whether a package of a length costs less than n resources with so many bytes
// one by one.
func isWorth(n int, bytes, length int64) bool {
	if length == 0 {
		return n >= fewest
	}
	return int64(n)*requestCost+bytes > requestCost+length
}

// hasPackages reports whether packages may supply the content of a look's result.
func (l *look) hasPackages(c *capabilities, n *follow.Delta, h follow.Inventory) bool {
	l.dumpOnly = c.resources == ""
	return l.Temp != "" && h != nil && l.dumpOf(c, n) != "" && !(l.dumpOnly && n.Whole)
}

// dumpOf returns the dump for the result of a look: the Resource Dump if all resources were read, else the Change Dump.
func (l *look) dumpOf(c *capabilities, n *follow.Delta) string {
	if n.Whole {
		return c.dump
	}
	return c.changeDump
}

// want is a record whose content a package may have.
type want struct {
	at    time.Time // when the record was changed
	bytes int64     // that it has, as far as that is stated
}

// packing finds packages for wanted records.
type packing struct {
	*look
	wants []want
	items *extsort.Sorter // items of the manifests of the packages, by record
	seen  map[string]bool // dumps that were read, by URI
}

// pack puts the wanted records into the plan, each with the package that supplies its content, if that costs less than
// single requests.
func (l *look) pack(ctx context.Context, c *capabilities, n *follow.Delta, p *follow.Planning) (err error) {
	k := &packing{look: l, items: l.Scratch.Sorter(), seen: map[string]bool{}}
	defer func() { err = errors.Join(err, k.items.Close()) }()
	if most := p.Wanted.Count(); most > 1 || l.dumpOnly && most > 0 {
		for row, err := range p.Wanted.Sorted() {
			var r follow.Record
			if err == nil {
				one := follow.ReadByID(row)
				r, err = one.Record()
			}
			if err != nil {
				return err
			}
			k.wants = append(k.wants, want{r.Updated, statedLength(&r)})
		}
		ref := l.dumpOf(c, n)
		if err := k.readDump(ctx, ref); err != nil {
			if ctx.Err() != nil {
				return err
			}
			l.report(fmt.Sprintf("%s: the dump cannot be used, resources are fetched one by one: %s", ref, err))
		}
	}
	worth, err := k.worth(ctx, p)
	if err != nil {
		return err
	}
	return k.match(ctx, p, func(one *follow.Statement, r *follow.Record, from []*packedItem) error {
		for _, i := range from {
			if worth[i.pack] && l.supply(r, i) {
				packed, err := one.With(r)
				if err != nil {
					return err
				}
				return p.Fetch(&packed)
			}
		}
		return p.Fetch(one)
	})
}

// readDump reads the manifests of the packages of a dump that may have wanted records.
func (k *packing) readDump(ctx context.Context, ref string) error {
	if k.seen[ref] {
		return fmt.Errorf("%s: the dumps lead in a circle", ref)
	}
	k.seen[ref] = true
	d, err := k.read(ctx, ref, "")
	if err != nil {
		return err
	}
	for i := range d.items {
		part := &d.items[i]
		n, bytes := k.within(part)
		switch {
		case n == 0:
		case d.Index:
			if err := k.readDump(ctx, part.Loc); err != nil {
				return err
			}
		default:
			if err := k.list(ctx, part, n, bytes, len(d.items)); err != nil {
				if ctx.Err() != nil {
					return err
				}
				k.packageAt(ctx, part).complain(k.look, err)
			}
		}
	}
	return nil
}

// within returns the number and the bytes of the wanted records that a package, or a dump, may have.
func (k *packing) within(part *resourcesync.Item) (n int, bytes int64) {
	for _, w := range k.wants {
		if mayHave(part, w.at) {
			n++
			bytes += w.bytes
		}
	}
	return n, bytes
}

// mayHave reports whether a package, or a dump, may have a change of a time.
func mayHave(part *resourcesync.Item, at time.Time) bool {
	return (part.From.IsZero() || !at.Before(part.From)) && (part.Until.IsZero() || !at.After(part.Until))
}

// list records the content of a package from its manifest or a copy of that. Without a copy it fetches the package if
// that is likely to cost less than single requests.
func (k *packing) list(ctx context.Context, part *resourcesync.Item, n int, bytes int64, packages int) error {
	p := k.packageAt(ctx, part)
	if copied, ok := part.Link(resourcesync.RelContents); ok {
		outer, err := k.read(ctx, copied.Href, "")
		if err != nil {
			return err
		}
		return k.add(p, outer.At, outer.Until, outer.items)
	}
	if !part.From.IsZero() {
		packages = 1
	}
	if !k.dumpOnly && !isWorth(n/packages, bytes/int64(packages), part.Length) {
		return nil
	}
	here, err := k.packages.borrow(p)
	if err != nil {
		return err
	}
	defer k.packages.giveBack(p)
	return k.add(p, here.at, here.until, here.items)
}

// add adds the items of a manifest.
func (k *packing) add(p *pack, at, until time.Time, items []resourcesync.Item) error {
	p.at, p.until = at, until
	for n := range items {
		i := packedItemOf(&items[n])
		if i == nil {
			continue
		}
		if err := k.Scratch.Admit(k.url, k.items.Count()); err != nil {
			return err
		}
		value, err := json.Marshal(i)
		if err != nil {
			return err
		}
		key := binary.BigEndian.AppendUint32(append([]byte(i.URIs[0]), 0), p.number)
		if err := k.items.Add(binary.BigEndian.AppendUint32(key, ^uint32(n)), value); err != nil { // the last one first
			return err
		}
	}
	return nil
}

// match calls f with each wanted record and the items that may supply it: at most one of each package.
func (k *packing) match(ctx context.Context, p *follow.Planning,
	f func(*follow.Statement, *follow.Record, []*packedItem) error) error {
	next, stop := iter.Pull2(k.items.Sorted())
	defer stop()
	item, err, more := next()
	for row, failed := range p.Wanted.Sorted() {
		if failed != nil || ctx.Err() != nil {
			return cmp.Or(failed, ctx.Err())
		}
		one := follow.ReadByID(row)
		r, failed := one.Record()
		if failed != nil {
			return failed
		}
		id := append([]byte(one.ID), 0)
		var from []*packedItem
		for ; more && err == nil; item, err, more = next() {
			order := bytes.Compare(item.Key[:min(len(id), len(item.Key))], id)
			if order > 0 {
				break
			}
			if order < 0 {
				continue
			}
			i := &packedItem{pack: binary.BigEndian.Uint32(item.Key[len(id):])}
			if err = json.Unmarshal(item.Value, i); err != nil {
				break
			}
			has := k.packages.all[i.pack-1]
			if (len(from) == 0 || from[len(from)-1].pack != i.pack) && i.has(&r, k.listed, has.at, has.until) {
				from = append(from, i)
			}
		}
		if err != nil {
			return err
		}
		if err := f(&one, &r, from); err != nil {
			return err
		}
	}
	return nil
}

// worth returns the numbers of the packages that cost less than single requests for the wanted records in them.
func (k *packing) worth(ctx context.Context, p *follow.Planning) (map[uint32]bool, error) {
	records, bytes := map[uint32]int{}, map[uint32]int64{}
	err := k.match(ctx, p, func(_ *follow.Statement, r *follow.Record, from []*packedItem) error {
		for _, i := range from {
			records[i.pack]++
			bytes[i.pack] += statedLength(r)
		}
		return nil
	})
	worth := map[uint32]bool{}
	for number, n := range records {
		worth[number] = k.dumpOnly || isWorth(n, bytes[number], k.packages.all[number-1].length)
	}
	return worth, err
}

// statedLength returns the stated length of a record in bytes; 0 if none.
func statedLength(r *follow.Record) int64 {
	if n := len(r.Representations); n > 0 {
		return r.Representations[n-1].Fixity.Length
	}
	return 0
}

// dumpedAt reads the resources from the manifests of a Resource Dump.
func (l *look) dumpedAt(ctx context.Context, ref string, s *snapshot, seen map[string]bool) error {
	if seen[ref] {
		return fmt.Errorf("%s: the dumps lead in a circle", ref)
	}
	seen[ref] = true
	d, err := l.read(ctx, ref, "")
	if err != nil {
		return err
	}
	s.begun(d.At)
	s.indexes = append(s.indexes, d)
	for i := range d.items {
		part := &d.items[i]
		if d.Index {
			err = l.dumpedAt(ctx, part.Loc, s, seen)
		} else {
			err = l.unpackedOf(ctx, part, ref, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unpackedOf reads the content of a package from its manifest or a copy of that.
func (l *look) unpackedOf(ctx context.Context, part *resourcesync.Item, ref string, s *snapshot) error {
	p := l.packageAt(ctx, part)
	var at time.Time
	var items []resourcesync.Item
	switch copied, ok := part.Link(resourcesync.RelContents); {
	case ok:
		m, err := l.read(ctx, copied.Href, "")
		if err != nil {
			return err
		}
		at, items = m.At, m.items
	case l.Temp == "":
		return fmt.Errorf(
			"%s: the Source has no Resource List, its Resource Dump has no copies of the manifests, and packages are not to "+
				"be fetched: allow them (mirror: leave out --no-dumps)", ref)
	default:
		here, err := l.packages.borrow(p)
		if err != nil {
			return err
		}
		defer l.packages.giveBack(p)
		at, items = here.at, here.items
	}
	s.begun(at)
	for i := range items {
		r := l.record(&items[i])
		if has := packedItemOf(&items[i]); has != nil && l.Temp != "" {
			has.pack, r.Alone = p.number, true
			l.supply(&r, has)
		}
		if err := s.add(l, &r); err != nil {
			return err
		}
	}
	return nil
}
