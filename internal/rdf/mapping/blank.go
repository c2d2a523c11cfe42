package mapping

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
)

// labelsOf gives each blank node of statements a label that does not depend on its label in the document: a hash of
// what the node says, of what the nodes say that it leads to, and of the named resources and the properties that lead to it. So a
// node that is unchanged keeps its label when the graph is published again, and all nodes before a changed one get others:
// whoever has the statements of a named resource, and of the blank nodes that it leads to, learns of each change by a change of that resource.
// What is behind a change in a list is unchanged. Nodes that look alike are numbered.
func labelsOf(quads []rdf.Quad) map[string]string {
	n := newNodes(quads)
	groups := n.groups()
	for _, group := range groups {
		n.hashDown(group)
	}
	n.hashUp(groups)
	return n.number()
}

// nodes are the blank nodes of some statements.
type nodes struct {
	quads []rdf.Quad
	order []string         // the labels, as they come
	says  map[string][]int // the statements whose subject a node is
	led   map[string][]int // those whose object it is

	// Hashes, by label.
	down    map[string]string // of what a node says
	anchors map[string]string // of the named resources that lead to it, and by which properties
	up      map[string]string // of all that leads to it
}

func newNodes(quads []rdf.Quad) *nodes {
	n := &nodes{quads: quads, says: map[string][]int{}, led: map[string][]int{}, down: map[string]string{}, anchors: map[string]string{}, up: map[string]string{}}
	seen := map[string]bool{}
	for i, q := range quads {
		for _, t := range []rdf.Term{q.Subject, q.Object} {
			if t.Kind == rdf.Blank && !seen[t.Value] {
				seen[t.Value] = true
				n.order = append(n.order, t.Value)
			}
		}
		if q.Subject.Kind == rdf.Blank {
			n.says[q.Subject.Value] = append(n.says[q.Subject.Value], i)
		}
		if q.Object.Kind == rdf.Blank {
			n.led[q.Object.Value] = append(n.led[q.Object.Value], i)
		}
	}
	return n
}

// groups returns the nodes in an order in which each comes behind those that it leads to. Nodes that lead to each
// other in a circle are one group (Tarjan's strongly connected components, without recursion: lists are long).
func (n *nodes) groups() (all [][]string) {
	type visit struct {
		node string
		next int
	}
	index, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	for _, root := range n.order {
		if index[root] != 0 {
			continue
		}
		path := []visit{{node: root}}
		for len(path) > 0 {
			v := &path[len(path)-1]
			if v.next == 0 {
				index[v.node] = len(index) + 1
				low[v.node] = index[v.node]
				stack = append(stack, v.node)
				onStack[v.node] = true
			}
			deeper := false
			for v.next < len(n.says[v.node]) {
				o := n.quads[n.says[v.node][v.next]].Object
				v.next++
				if o.Kind != rdf.Blank {
					continue
				}
				if index[o.Value] == 0 {
					path = append(path, visit{node: o.Value})
					deeper = true
					break
				}
				if onStack[o.Value] {
					low[v.node] = min(low[v.node], index[o.Value])
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

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func key(t rdf.Term) string {
	return strings.Join([]string{string('0' + rune(t.Kind)), t.Value, strings.ToLower(t.Language), t.Datatype}, "\x00")
}

// hashDown hashes what the nodes of a group say. In a circle each round takes in one more step.
func (n *nodes) hashDown(group []string) {
	rounds := 1
	if len(group) > 1 || n.leadsToItself(group[0]) {
		rounds = min(len(group), maxRounds) + 1
	}
	for range rounds {
		next := make([]string, len(group))
		for i, node := range group {
			var lines []string
			for _, at := range n.says[node] {
				q := n.quads[at]
				object := key(q.Object)
				if q.Object.Kind == rdf.Blank {
					object = "_" + n.down[q.Object.Value]
				}
				lines = append(lines, hash(q.Predicate.Value, object))
			}
			slices.Sort(lines)
			next[i] = hash(slices.Compact(lines)...)
		}
		for i, node := range group {
			n.down[node] = next[i]
		}
	}
}

// maxRounds bounds the work for circles. Nodes that differ only farther away are numbered.
const maxRounds = 50

func (n *nodes) leadsToItself(node string) bool {
	return slices.ContainsFunc(n.says[node], func(i int) bool { return n.quads[i].Object == rdf.NewBlank(node) })
}

// hashUp hashes what leads to each node: from the nodes that nothing leads to downwards.
func (n *nodes) hashUp(groups [][]string) {
	for _, group := range slices.Backward(groups) {
		up, anchors := make([]string, len(group)), make([][]string, len(group))
		var outside []string
		for i, node := range group {
			up[i], anchors[i] = n.leading(node)
			outside = append(outside, anchors[i]...)
		}
		for i, node := range group {
			if len(group) > 1 {
				anchors[i] = append(anchors[i], joined(outside))
			}
			n.up[node], n.anchors[node] = up[i], joined(anchors[i])
		}
	}
}

// leading returns a hash of what leads to a node, and the anchors that it has of each statement that does. What leads to
// a node in a circle counts as what it says.
func (n *nodes) leading(node string) (up string, anchors []string) {
	lines := []string{n.down[node]}
	for _, at := range n.led[node] {
		q := n.quads[at]
		property := q.Predicate.Value
		if q.Subject.Kind != rdf.Blank {
			line := hash(key(q.Subject), property)
			lines, anchors = append(lines, line), append(anchors, line)
			continue
		}
		above, known := n.up[q.Subject.Value]
		if !known { // it is in the same circle
			lines = append(lines, hash("_"+n.down[q.Subject.Value], property))
			continue
		}
		lines = append(lines, hash("^"+above, property))
		anchor := n.anchors[q.Subject.Value]
		if property != rdf.Rest { // where in a list a node is does not matter
			anchor = hash(anchor, property)
		}
		anchors = append(anchors, anchor)
	}
	slices.Sort(lines[1:])
	return hash(lines...), anchors
}

// joined makes one hash of a set of them. That of one is the same.
func joined(hashes []string) string {
	hashes = slices.Clone(hashes)
	slices.Sort(hashes)
	if hashes = slices.Compact(hashes); len(hashes) == 1 {
		return hashes[0]
	}
	return hash(hashes...)
}

// number makes labels of the hashes. Nodes that look alike get numbers, in the order of what leads to them.
func (n *nodes) number() map[string]string {
	alike := map[string][]string{}
	for _, node := range n.order {
		of := hash(n.down[node], n.anchors[node])
		alike[of] = append(alike[of], node)
	}
	labels := make(map[string]string, len(n.order))
	for of, nodes := range alike {
		slices.SortStableFunc(nodes, func(a, b string) int { return strings.Compare(n.up[a], n.up[b]) })
		for i, node := range nodes {
			labels[node] = "b" + of
			if i > 0 {
				labels[node] += fmt.Sprintf("-%d", i+1)
			}
		}
	}
	return labels
}
