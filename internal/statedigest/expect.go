package statedigest

import "slices"

// Expect calls ask with the paths of the nodes that [Update] will read for changes. It reads nodes only after that, so
// that a store with costly reads can fetch them together. The nodes below one are known only after it was read. But the
// number of items indicates the depth, so ask is called few times.
func Expect(get func(path []byte) ([]byte, error), changes []Change, ask func(paths [][]byte) error) error {
	sortChanges(changes)
	known := map[string]bool{}
	for w := (walk{front: []place{{nil, changes}}}); len(w.front)+len(w.joined) > 0; {
		paths := map[string]bool{}
		for _, path := range w.joined {
			paths[string(path)] = true
		}
		for _, p := range w.front {
			paths[string(p.path)] = true
			for i := range p.changes {
				for depth := len(p.path); depth <= min(len(p.path)+w.below, 2*len(Item{})); depth++ {
					paths[string(p.changes[i].path(depth))] = true
				}
			}
		}
		var asked [][]byte
		for path := range paths {
			if !known[path] {
				known[path] = true
				asked = append(asked, []byte(path))
			}
		}
		if err := ask(asked); err != nil {
			return err
		}
		next := walk{get: get, known: known}
		for _, p := range w.front {
			if err := next.down(p); err != nil {
				return err
			}
		}
		w = next
	}
	return nil
}

// place is a node, and the changes below it.
type place struct {
	path    []byte
	changes []Change
}

// walk descends from nodes as far as they are known.
type walk struct {
	get    func(path []byte) ([]byte, error)
	known  map[string]bool // paths
	front  []place         // unknown ones
	below  int             // the most levels that are likely below these
	joined [][]byte        // leaves that may become one
}

func (w *walk) down(p place) error {
	n, err := Read(w.get, p.path)
	if err != nil || n.Children == nil {
		return err
	}
	gone := 0
	for i := range p.changes {
		if p.changes[i].Gone {
			gone++
		}
	}
	for i := range n.Children {
		if path := step(p.path, byte(i)); n.count() <= MaxItems+gone && n.Children[i].Items > 0 && !w.known[string(path)] {
			w.joined = append(w.joined, path)
		}
	}
	for depth, changes := len(p.path), p.changes; len(changes) > 0; {
		some := changes[:run(changes, depth, func(c *Change, depth int) byte { return c.nibble(depth) })]
		changes = changes[len(some):]
		at := some[0].nibble(depth)
		child := place{step(p.path, at), some}
		if !w.known[string(child.path)] {
			w.front = append(w.front, child)
			w.below = max(w.below, n.below(at, depth+1))
		} else if err := w.down(child); err != nil {
			return err
		}
	}
	return nil
}

// below returns the number of levels that are likely below a child, which is at a depth.
func (n *Node) below(child byte, depth int) (levels int) {
	items := int(n.Children[child].Items)
	if items > MaxItems && 2*items > n.count() { // those of one owner, which differ only after its place
		levels = max(0, 2*placeSize-depth)
	}
	for ; items > MaxItems; items /= Fanout / 2 { // children do not all have as many
		levels++
	}
	return levels
}

// path returns the path that leads to an item, so many steps of it.
func (e *Entry) path(depth int) []byte {
	path := make([]byte, depth)
	for i := range path {
		path[i] = e.nibble(i)
	}
	return path
}

func sortChanges(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int { return a.compare(&b.Entry) })
}
