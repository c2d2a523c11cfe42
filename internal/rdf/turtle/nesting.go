package turtle

import "github.com/tmshare/tmshare/internal/rdf"

// nesting decides which blank nodes are written in place of their references: those with exactly one reference, in
// brackets, or in parentheses if they are lists.
type nesting struct {
	all    []rdf.Quad     // sorted
	begin  map[string]int // where the statements about a node begin
	parent map[string]int // the only statement with a node as object; -1: several
	alone  map[string]bool
	list   map[string]bool // a node that is a list, or the rest of one
}

// maxNesting is how deep brackets may be that are written.
const maxNesting = 20

func nest(all []rdf.Quad) *nesting {
	n := &nesting{all: all, begin: map[string]int{}, parent: map[string]int{}, alone: map[string]bool{},
		list: map[string]bool{}}
	for i, q := range all {
		if q.Subject.Kind == rdf.Blank && (i == 0 || all[i-1].Subject != q.Subject) {
			n.begin[q.Subject.Value] = i
		}
		if q.Object.Kind == rdf.Blank {
			if _, again := n.parent[q.Object.Value]; again {
				i = -1
			}
			n.parent[q.Object.Value] = i
		}
	}
	n.breakCircles()
	n.findLists()
	n.limitDepth()
	return n
}

// nested reports whether a node is written where it is an object.
func (n *nesting) nested(label string) bool {
	parent, ok := n.parent[label]
	return ok && parent >= 0 && !n.alone[label]
}

// above returns the subject of the reference to a nested node, if that subject is a blank node.
func (n *nesting) above(label string) (string, bool) {
	if !n.nested(label) {
		return "", false
	}
	s := n.all[n.parent[label]].Subject
	return s.Value, s.Kind == rdf.Blank
}

// breakCircles excludes one node of each cycle from nesting. It goes through the statements in order, so the choice is
// deterministic.
func (n *nesting) breakCircles() {
	seen := map[string]int{} // in which walk
	for i, q := range n.all {
		if q.Object.Kind != rdf.Blank {
			continue
		}
		for label, ok := q.Object.Value, true; ok && seen[label] != -1; label, ok = n.above(label) {
			if seen[label] == i+1 {
				n.alone[label] = true
				break
			}
			if seen[label] != 0 {
				break // an earlier walk has been here
			}
			seen[label] = i + 1
		}
	}
}

// findLists finds the lists from their ends.
func (n *nesting) findLists() {
	for _, q := range n.all {
		if q.Predicate.Value != rdf.Rest || q.Object != rdf.NewIRI(rdf.Nil) || q.Subject.Kind != rdf.Blank {
			continue
		}
		for label := q.Subject.Value; n.nested(label) && n.isLink(label); {
			n.list[label] = true
			from := n.all[n.parent[label]]
			if from.Predicate.Value != rdf.Rest || from.Subject.Kind != rdf.Blank {
				break
			}
			label = from.Subject.Value
		}
	}
}

// isLink reports whether a node has exactly a first and a rest.
func (n *nesting) isLink(label string) bool {
	i, ok := n.begin[label]
	statements := about(n.all, i)
	return ok && len(statements) == 2 && statements[0].Predicate.Value == rdf.First &&
		statements[1].Predicate.Value == rdf.Rest
}

// about returns the statements of the subject at i.
func about(all []rdf.Quad, i int) []rdf.Quad {
	end := i
	for end < len(all) && all[end].Subject == all[i].Subject {
		end++
	}
	return all[i:end]
}

// limitDepth excludes nodes from nesting that would be too deep.
func (n *nesting) limitDepth() {
	depth := map[string]int{}
	for _, q := range n.all {
		if q.Object.Kind != rdf.Blank {
			continue
		}
		var path []string
		for label, ok := q.Object.Value, true; ok && depth[label] == 0; label, ok = n.above(label) {
			path = append(path, label)
		}
		for i := len(path) - 1; i >= 0; i-- {
			label := path[i]
			above, ok := n.above(label)
			switch {
			case !ok:
				depth[label] = 1
			// both are in the same parentheses
			case n.list[label] && n.list[above] && n.all[n.parent[label]].Predicate.Value == rdf.Rest:
				depth[label] = depth[above]
			default:
				depth[label] = depth[above] + 1
			}
			if depth[label] > maxNesting {
				n.alone[label], depth[label] = true, 1
			}
		}
	}
}
