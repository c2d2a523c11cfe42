package mapping

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
)

// labelsOf gives each blank node a label that does not depend on its label in the document: a hash of its statements,
// of those of the nodes that it refers to, and of the named resources and properties that refer to it. So an unchanged
// node keeps its label when the graph is published again, and all nodes before a changed one get new labels. So each
// change shows as a change of a named resource with its blank nodes, and the part of a list after a change is
// unchanged. Nodes with equal hashes are numbered.
func labelsOf(quads *statements) map[string]string {
	n := newNodes(quads)
	groups := n.groups()
	for _, group := range groups {
		n.hashDown(group)
	}
	n.hashUp(groups)
	return n.number()
}

// digest is the digest of a node.
type digest [16]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// nodes are the blank nodes of some statements, numbered in document order.
type nodes struct {
	quads   *statements
	labels  []string // in the document
	numbers map[string]int32
	says    [][]int32 // by node: the statements with it as subject
	led     [][]int32 // by node: those with it as object

	down    []digest // of the statements of a node
	anchors []digest // of the named resources that lead to it, and by which properties
	up      []digest // of all that leads to it

	lines []digest // of the node that is looked at
	buf   []byte
}

func newNodes(quads *statements) *nodes {
	n := &nodes{quads: quads, numbers: map[string]int32{}}
	number := func(t rdf.Term) int32 {
		known, ok := n.numbers[t.Value]
		if !ok {
			known = int32(len(n.labels))
			n.numbers[t.Value] = known
			n.labels, n.says, n.led = append(n.labels, t.Value), append(n.says, nil), append(n.led, nil)
		}
		return known
	}
	for i, q := range quads.each() {
		if q.Subject.Kind == rdf.Blank {
			s := number(q.Subject)
			n.says[s] = append(n.says[s], int32(i))
		}
		if q.Object.Kind == rdf.Blank {
			o := number(q.Object)
			n.led[o] = append(n.led[o], int32(i))
		}
	}
	n.down, n.anchors, n.up = make([]digest, len(n.labels)), make([]digest, len(n.labels)), make([]digest, len(n.labels))
	return n
}

// groups returns the nodes so that each comes after those that it refers to. Nodes of a cycle are one group (Tarjan's
// strongly connected components, without recursion, because lists are long).
func (n *nodes) groups() (all [][]int32) {
	type visit struct {
		node int32
		next int
	}
	index, low, onStack := make([]int32, len(n.labels)), make([]int32, len(n.labels)), make([]bool, len(n.labels))
	var seen int32
	var stack []int32
	for root := range int32(len(n.labels)) {
		if index[root] != 0 {
			continue
		}
		path := []visit{{node: root}}
		for len(path) > 0 {
			v := &path[len(path)-1]
			if v.next == 0 {
				seen++
				index[v.node], low[v.node] = seen, seen
				stack = append(stack, v.node)
				onStack[v.node] = true
			}
			deeper := false
			for v.next < len(n.says[v.node]) {
				o := n.quads.at(int(n.says[v.node][v.next])).Object
				v.next++
				if o.Kind != rdf.Blank {
					continue
				}
				to := n.numbers[o.Value]
				if index[to] == 0 {
					path = append(path, visit{node: to})
					deeper = true
					break
				}
				if onStack[to] {
					low[v.node] = min(low[v.node], index[to])
				}
			}
			if deeper {
				continue
			}
			done := path[len(path)-1].node
			path = path[:len(path)-1]
			if len(path) > 0 {
				above := path[len(path)-1].node
				low[above] = min(low[above], low[done])
			}
			if low[done] == index[done] {
				at := len(stack) - 1
				for stack[at] != done {
					at--
				}
				group := slices.Clone(stack[at:])
				stack = stack[:at]
				for _, node := range group {
					onStack[node] = false
				}
				all = append(all, group)
			}
		}
	}
	return all
}

// term appends a term as it counts to the buffer.
func (n *nodes) term(t rdf.Term) {
	n.buf = append(n.buf, byte('0'+t.Kind))
	for _, part := range []string{t.Value, strings.ToLower(t.Language), t.Datatype} {
		n.text(part)
	}
}

func (n *nodes) text(s string) {
	n.buf = binary.AppendUvarint(n.buf, uint64(len(s)))
	n.buf = append(n.buf, s...)
}

// line ends a line of the node that is looked at, which is in the buffer.
func (n *nodes) line() {
	n.lines = append(n.lines, sum(n.buf))
	n.buf = n.buf[:0]
}

func sum(data []byte) digest {
	all := sha256.Sum256(data)
	return digest(all[:len(digest{})])
}

// together returns the digest of the set of lines, independent of their order, and of the given digests before them.
func (n *nodes) together(front ...digest) digest {
	slices.SortFunc(n.lines, compareDigests)
	n.lines = slices.Compact(n.lines)
	for _, d := range append(front, n.lines...) {
		n.buf = append(n.buf, d[:]...)
	}
	hash := sum(n.buf)
	n.buf, n.lines = n.buf[:0], n.lines[:0]
	return hash
}

// hashDown hashes the statements of the nodes of a group. In a cycle, each round includes one more step, until the
// number of different digests stays the same.
func (n *nodes) hashDown(group []int32) {
	rounds := 1
	if len(group) > 1 || n.leadsToItself(group[0]) {
		rounds = max(2, min(len(group)+1, maxRounds, maxWork/len(group)))
	}
	next := make([]digest, len(group))
	for kinds := 0; rounds > 0; rounds-- {
		for i, node := range group {
			for _, at := range n.says[node] {
				q := n.quads.at(int(at))
				n.text(q.Predicate.Value)
				if q.Object.Kind == rdf.Blank {
					hash := n.down[n.numbers[q.Object.Value]]
					n.buf = append(append(n.buf, '_'), hash[:]...)
				} else {
					n.term(q.Object)
				}
				n.line()
			}
			next[i] = n.together()
		}
		for i, node := range group {
			n.down[node] = next[i]
		}
		if len(group) == 1 {
			continue
		}
		now := different(next)
		if now == kinds {
			return
		}
		kinds = now
	}
}

// These bound the work for circles. Nodes that differ only farther away are numbered.
const (
	maxRounds = 50
	maxWork   = 5_000_000 // rounds × nodes
)

// different returns the number of different digests. It sorts them.
func different(all []digest) int {
	slices.SortFunc(all, compareDigests)
	return len(slices.Compact(all))
}

func (n *nodes) leadsToItself(node int32) bool {
	return slices.ContainsFunc(n.says[node], func(i int32) bool {
		return n.quads.at(int(i)).Object == rdf.NewBlank(n.labels[node])
	})
}

// hashUp hashes the references to each node, beginning with nodes without references to them.
func (n *nodes) hashUp(groups [][]int32) {
	known := make([]bool, len(n.labels))
	for _, group := range slices.Backward(groups) {
		anchors := make([][]digest, len(group))
		var outside []digest
		for i, node := range group {
			anchors[i] = n.leading(node, known)
			outside = append(outside, anchors[i]...)
		}
		all := joined(outside)
		for i, node := range group {
			if len(group) > 1 {
				anchors[i] = append(anchors[i], all)
			}
			n.anchors[node], known[node] = joined(anchors[i]), true
		}
	}
}

// leading hashes the references to a node, and returns the anchors of each such statement. References within a cycle
// are part of the node's own hash.
func (n *nodes) leading(node int32, known []bool) (anchors []digest) {
	for _, at := range n.led[node] {
		q := n.quads.at(int(at))
		property := q.Predicate.Value
		n.text(property)
		if q.Subject.Kind != rdf.Blank {
			n.term(q.Subject)
			anchors = append(anchors, sum(n.buf))
			n.line()
			continue
		}
		above := n.numbers[q.Subject.Value]
		if !known[above] { // it is in the same circle
			n.buf = append(append(n.buf, '_'), n.down[above][:]...)
			n.line()
			continue
		}
		n.buf = append(append(n.buf, '^'), n.up[above][:]...)
		n.line()
		anchor := n.anchors[above]
		if property != rdf.Rest { // where in a list a node is does not matter
			n.text(property)
			n.buf = append(n.buf, anchor[:]...)
			anchor = sum(n.buf)
			n.buf = n.buf[:0]
		}
		anchors = append(anchors, anchor)
	}
	n.up[node] = n.together(n.down[node])
	return anchors
}

// joined makes one digest of a set of them. That of one is the same.
func joined(set []digest) digest {
	slices.SortFunc(set, compareDigests)
	if set = slices.Compact(set); len(set) == 1 {
		return set[0]
	}
	data := make([]byte, 0, len(set)*len(digest{}))
	for _, d := range set {
		data = append(data, d[:]...)
	}
	return sum(data)
}

func compareDigests(a, b digest) int { return bytes.Compare(a[:], b[:]) }

// number makes labels of the digests. Nodes with equal digests are numbered in the order of the references to them.
func (n *nodes) number() map[string]string {
	alike := map[digest][]int32{}
	for node := range int32(len(n.labels)) {
		hash := sum(slices.Concat(n.down[node][:], n.anchors[node][:]))
		alike[hash] = append(alike[hash], node)
	}
	labels := make(map[string]string, len(n.labels))
	for hash, nodes := range alike {
		slices.SortStableFunc(nodes, func(a, b int32) int { return compareDigests(n.up[a], n.up[b]) })
		for i, node := range nodes {
			label := "b" + hash.String()
			if i > 0 {
				label += fmt.Sprintf("-%d", i+1)
			}
			labels[n.labels[node]] = label
		}
	}
	return labels
}
