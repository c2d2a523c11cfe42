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
// what the node says, of what the nodes say that it leads to, and of what leads to it. So a node that is
// unchanged keeps its label when the graph is published again. Nodes that look alike are numbered in the order
// of the statements.
func labelsOf(quads []rdf.Quad) map[string]string {
	n := newNodes(quads)
	groups := n.groups()
	for _, group := range groups {
		n.hashDown(group)
	}
	return n.number(n.hashUp(groups))
}

// nodes are the blank nodes of some statements.
type nodes struct {
	quads []rdf.Quad
	order []string         // the labels, as they come
	says  map[string][]int // the statements whose subject a node is
	led   map[string][]int // those whose object it is
	down  map[string]string
}

func newNodes(quads []rdf.Quad) *nodes {
	n := &nodes{quads: quads, says: map[string][]int{}, led: map[string][]int{}, down: map[string]string{}}
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

// hashUp hashes what leads to each node: from the nodes that nothing leads to downwards. What leads to a node in a circle
// counts as what it says.
func (n *nodes) hashUp(groups [][]string) map[string]string {
	up := make(map[string]string, len(n.order))
	for _, group := range slices.Backward(groups) {
		of := make([]string, len(group))
		for i, node := range group {
			lines := []string{n.down[node]}
			for _, at := range n.led[node] {
				q := n.quads[at]
				subject := key(q.Subject)
				if q.Subject.Kind == rdf.Blank {
					subject = "_" + n.down[q.Subject.Value]
					if above, ok := up[q.Subject.Value]; ok {
						subject = "^" + above
					}
				}
				lines = append(lines, hash(subject, q.Predicate.Value))
			}
			slices.Sort(lines[1:])
			of[i] = hash(lines...)
		}
		for i, node := range group {
			up[node] = of[i]
		}
	}
	return up
}

// number makes labels of hashes: those of nodes that look alike get a number.
func (n *nodes) number(of map[string]string) map[string]string {
	labels, used := make(map[string]string, len(of)), map[string]int{}
	for _, node := range n.order {
		label := "b" + of[node]
		if used[label]++; used[label] > 1 {
			label = fmt.Sprintf("%s-%d", label, used[label])
		}
		labels[node] = label
	}
	return labels
}
