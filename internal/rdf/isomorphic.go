package rdf

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
)

// Isomorphic reports whether two sets of statements are the same but for the labels of their blank nodes
// (RDF 1.1 Concepts §3.6, Graph Comparison). Statements that are there twice count once. The time grows
// with the size, but without a bound where very many blank nodes look alike.
func Isomorphic(a, b []Quad) bool {
	left, right := newColoring(a), newColoring(b)
	if len(left.quads) != len(right.quads) || len(left.colors) != len(right.colors) {
		return false
	}
	return match(left, right)
}

// color is a hash of the statements about a blank node, as far as they are known.
type color = [sha256.Size]byte

// coloring gives blank nodes that differ different colors.
type coloring struct {
	quads  []Quad
	colors map[string]color // by label
}

func newColoring(all []Quad) *coloring {
	c := &coloring{colors: map[string]color{}}
	seen := map[Quad]bool{}
	for _, q := range all {
		q.Object.Language = strings.ToLower(q.Object.Language)
		if seen[q] {
			continue
		}
		seen[q] = true
		c.quads = append(c.quads, q)
		for _, t := range []Term{q.Subject, q.Object, q.Graph} {
			if t.Kind == Blank {
				c.colors[t.Value] = color{}
			}
		}
	}
	c.refine()
	return c
}

// key is a term as it counts: a blank node by its color, and whether it is the node that is looked at.
func (c *coloring) key(b *strings.Builder, t Term, self string) {
	b.WriteByte(byte('0' + t.Kind))
	if t.Kind == Blank {
		if t.Value == self {
			b.WriteByte('*')
		}
		kind := c.colors[t.Value]
		b.Write(kind[:])
		return
	}
	for _, part := range []string{t.Value, t.Language, t.Datatype} {
		b.WriteString(part)
		b.WriteByte(0)
	}
}

func (c *coloring) line(q Quad, self string) string {
	var b strings.Builder
	for _, t := range []Term{q.Subject, q.Predicate, q.Object, q.Graph} {
		c.key(&b, t, self)
	}
	return b.String()
}

// refine mixes the statements about each node into its color, until no more nodes differ.
func (c *coloring) refine() {
	numbers := map[string][]int{} // the statements of each node
	for i, q := range c.quads {
		for label := range labels(q) {
			numbers[label] = append(numbers[label], i)
		}
	}
	for kinds := c.kinds(); ; {
		next := make(map[string]color, len(c.colors))
		for label, old := range c.colors {
			lines := make([]string, 0, len(numbers[label]))
			for _, i := range numbers[label] {
				lines = append(lines, c.line(c.quads[i], label))
			}
			slices.Sort(lines)
			next[label] = sha256.Sum256([]byte(string(old[:]) + strings.Join(lines, "\x01")))
		}
		c.colors = next
		now := c.kinds()
		if now == kinds {
			return
		}
		kinds = now
	}
}

func labels(q Quad) map[string]bool {
	all := map[string]bool{}
	for _, t := range []Term{q.Subject, q.Object, q.Graph} {
		if t.Kind == Blank {
			all[t.Value] = true
		}
	}
	return all
}

func (c *coloring) kinds() int {
	all := map[color]bool{}
	for _, kind := range c.colors {
		all[kind] = true
	}
	return len(all)
}

// classes returns the labels with each color, the smallest class of several first.
func (c *coloring) classes() map[color][]string {
	all := map[color][]string{}
	for label, kind := range c.colors {
		all[kind] = append(all[kind], label)
	}
	return all
}

// match compares two sets after refining their colors as far as possible. If nodes still have equal colors, it
// distinguishes one of them, and tries each possible counterpart.
func match(a, b *coloring) bool {
	left, right := a.classes(), b.classes()
	if len(left) != len(right) {
		return false
	}
	var alike []color
	for kind, labels := range left {
		if len(labels) != len(right[kind]) {
			return false
		}
		if len(labels) > 1 {
			alike = append(alike, kind)
		}
	}
	if len(alike) == 0 {
		return slices.Equal(a.lines(), b.lines())
	}
	first := slices.MinFunc(alike, func(x, y color) int {
		return cmp.Or(cmp.Compare(len(left[x]), len(left[y])), slices.Compare(x[:], y[:]))
	})
	one := a.mark(slices.Min(left[first]))
	return slices.ContainsFunc(right[first], func(label string) bool { return match(one, b.mark(label)) })
}

// mark returns a coloring in which one node differs from all others.
func (c *coloring) mark(label string) *coloring {
	marked := &coloring{c.quads, maps.Clone(c.colors)}
	old := c.colors[label]
	marked.colors[label] = sha256.Sum256(append(old[:], '!'))
	marked.refine()
	return marked
}

func (c *coloring) lines() []string {
	all := make([]string, 0, len(c.quads))
	for _, q := range c.quads {
		all = append(all, c.line(q, ""))
	}
	slices.Sort(all)
	return all
}
