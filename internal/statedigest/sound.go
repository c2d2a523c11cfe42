package statedigest

import (
	"bytes"
	"iter"
)

// Row is a row of a tree, with the path to its node.
type Row struct{ Path, Row []byte }

// Sound reports whether rows, in the order of their paths, are those of a tree, and calls f with each of its items. A row need be
// valid only until the next one. It holds as many nodes as the tree is deep.
func Sound(rows iter.Seq2[Row, error], f func(*Entry)) (bool, error) {
	var above []inner
	first := true
	for r, err := range rows {
		if err != nil {
			return false, err
		}
		n, ok := unmarshal(r.Row)
		if !ok || !bytes.Equal(n.marshal(), r.Row) || !n.fits(r.Path) {
			return false, nil
		}
		for len(above) > 0 && len(above) >= len(r.Path)+1 {
			if !above[len(above)-1].complete() {
				return false, nil
			}
			above = above[:len(above)-1]
		}
		if len(r.Path) != len(above) || first != (len(r.Path) == 0) || !first && !above[len(above)-1].has(r.Path, n) {
			return false, nil
		}
		first = false
		for i := range n.Items {
			f(&n.Items[i])
		}
		if n.Children != nil {
			above = append(above, inner{path: bytes.Clone(r.Path), node: n})
		}
	}
	for i := range above {
		if !above[i].complete() {
			return false, nil
		}
	}
	return true, nil
}

// inner is an inner node whose children come next.
type inner struct {
	path []byte
	node *Node
	seen [Fanout]bool
}

// has reports whether a node is the child at a path, and notes that it was there.
func (i *inner) has(path []byte, n *Node) bool {
	last := len(path) - 1
	if !bytes.Equal(path[:last], i.path) || path[last] >= Fanout {
		return false
	}
	i.seen[path[last]] = true
	return i.node.Children[path[last]] == Child{n.Digest(), uint32(n.count())}
}

// complete reports whether all children were there of which the node says something.
func (i *inner) complete() bool {
	for at := range i.node.Children {
		if i.seen[at] != (i.node.Children[at] != Child{}) {
			return false
		}
	}
	return true
}

// fits reports whether the node is one that may stand at a path: only as many items as a leaf may have are in a leaf, each where its
// digits lead to, and in order.
func (n *Node) fits(path []byte) bool {
	if n.Children != nil {
		return n.count() > MaxItems && len(path) < 2*len(Item{})
	}
	for i := range n.Items {
		e := &n.Items[i]
		for depth, nibble := range path {
			if depth >= 2*len(e.Item) || e.nibble(depth) != nibble {
				return false
			}
		}
		if i > 0 && n.Items[i-1].compare(e) >= 0 {
			return false
		}
	}
	return len(n.Items) > 0
}
