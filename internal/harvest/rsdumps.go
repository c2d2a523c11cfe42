package harvest

import (
	"context"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/feeds/resourcesync"
)

// A package of a dump holds what many requests would bring (Z39.99 §11, Packaging
// Resources; §13, Packaging Changes). What the lists say counts: packages only supply the
// content for it, and where one is no good, the resources are fetched one by one.

// requestCost is how many bytes of a package could come in the time of a request.
const requestCost = 100_000

// fewest is how many resources must be wanted of a package whose length nobody states.
const fewest = 10

// isWorth reports whether a package of a length costs less than n resources with so many bytes
// one by one.
func isWorth(n int, bytes, length int64) bool {
	if length == 0 {
		return n >= fewest
	}
	return int64(n)*requestCost+bytes > requestCost+length
}

// pack finds packages with what the news want to be fetched: of the Resource Dump where all is
// looked at, else of the Change Dump.
func (l *look) pack(ctx context.Context, c *capabilities, n *News, h Holder) error {
	ref := c.changeDump
	if n.Whole {
		ref = c.dump
	}
	if l.Temp == "" || h == nil || ref == "" || c.resources == "" && n.Whole {
		return nil
	}
	todo, err := n.Todo(h)
	if err != nil {
		return err
	}
	do := make(map[string]bool, len(todo))
	for i := range todo {
		if r := &todo[i]; !r.Deleted && match(h, r) != Same {
			do[r.ID] = true
		}
	}
	var all []wanted
	for i := range n.Records {
		if r := &n.Records[i]; do[r.ID] && len(r.Representations) > 0 {
			all = append(all, wanted{r, l.listed})
		}
	}
	if len(all) < 2 {
		return nil
	}
	if err := l.supply(ctx, ref, all, map[string]bool{}); err != nil {
		if ctx.Err() != nil {
			return err
		}
		l.report(fmt.Sprintf("%s: the dump cannot be used, resources are fetched one by one: %s", ref, err))
	}
	return nil
}

// supply looks into the packages of a dump for the content of what is wanted.
func (l *look) supply(ctx context.Context, ref string, all []wanted, seen map[string]bool) error {
	if seen[ref] {
		return fmt.Errorf("%s: the dumps lead in a circle", ref)
	}
	seen[ref] = true
	d, err := l.read(ctx, ref, "")
	if err != nil {
		return err
	}
	for i := range d.items {
		part := &d.items[i]
		within := slices.DeleteFunc(slices.Clone(all), func(w wanted) bool { return !mayHave(part, w) })
		switch {
		case len(within) == 0:
		case d.Index:
			if err := l.supply(ctx, part.Loc, within, seen); err != nil {
				return err
			}
		default:
			if err := l.supplyFrom(ctx, part, within, len(d.items)); err != nil {
				if ctx.Err() != nil {
					return err
				}
				l.packageAt(ctx, part).complain(l, err)
			}
		}
	}
	return nil
}

// mayHave reports whether a package, or a dump, may have a change.
func mayHave(part *resourcesync.Item, w wanted) bool {
	return (part.From.IsZero() || !w.Updated.Before(part.From)) && (part.Until.IsZero() || !w.Updated.After(part.Until))
}

// supplyFrom has a package supply what it has of what is wanted, if that is worth its while:
// as its manifest says, of which there may be a copy, or as is to be expected.
func (l *look) supplyFrom(ctx context.Context, part *resourcesync.Item, all []wanted, packages int) error {
	p := l.packageAt(ctx, part)
	var m manifest
	if copied, ok := part.Link(resourcesync.RelContents); ok {
		outer, err := l.read(ctx, copied.Href, "")
		if err != nil {
			return err
		}
		m = manifestOf(outer)
	} else {
		if !part.From.IsZero() {
			packages = 1
		}
		if !isWorth(len(all)/packages, stated(all)/int64(packages), part.Length) {
			return nil
		}
		here, err := p.open()
		if err != nil {
			return err
		}
		m = here.manifest
	}
	has := slices.DeleteFunc(slices.Clone(all), func(w wanted) bool { return m.find(w) == nil })
	if !isWorth(len(has), stated(has), part.Length) {
		return nil
	}
	for _, w := range has {
		p.supply(l, w, m.find(w))
	}
	return nil
}

// stated returns how many bytes the records have, as far as that is stated.
func stated(all []wanted) (bytes int64) {
	for _, w := range all {
		bytes += w.Representations[len(w.Representations)-1].Fixity.Length
	}
	return bytes
}

// dumped reads what is there from the manifests of a Resource Dump.
func (l *look) dumped(ctx context.Context, ref string) (*snapshot, error) {
	s := &snapshot{}
	return s, l.dumpedAt(ctx, ref, s, map[string]bool{})
}

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
			if err := l.dumpedAt(ctx, part.Loc, s, seen); err != nil {
				return err
			}
			continue
		}
		p := l.packageAt(ctx, part)
		var m *listing
		copied, ok := part.Link(resourcesync.RelContents)
		switch {
		case ok:
			m, err = l.read(ctx, copied.Href, "")
		case l.Temp == "":
			err = fmt.Errorf("%s: the Source has no Resource List, its Resource Dump has no copies of the manifests, and packages are not to be fetched", ref)
		default:
			var here *opened
			if here, err = p.open(); err == nil {
				m = &listing{items: here.items}
				m.At = here.at
			}
		}
		if err != nil {
			return err
		}
		s.begun(m.At)
		records := l.records(m)
		for i := range records {
			if r := &records[i]; l.Temp != "" && len(r.Representations) > 0 {
				p.supply(l, wanted{r, m.At}, &m.items[i])
			}
		}
		s.records = append(s.records, records...)
	}
	return nil
}
