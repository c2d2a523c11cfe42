package statedigest

// Rows keeps the rows of a tree, each under the path to its node: a byte below 16 for each step from the root.
type Rows interface {
	Get(path []byte) ([]byte, error) // nil: no row
	Put(path, row []byte) error
	Delete(path []byte) error
}

// Change is the addition or removal of an item.
type Change struct {
	Entry
	Gone bool
}

// Update changes a tree. Each item is changed at most once: an added item may exist already, and a removed one may be
// missing.
func Update(rows Rows, changes []Change) error {
	sortChanges(changes)
	_, err := tree{rows}.update(nil, changes)
	return err
}

// Read returns the node at a path, or an empty leaf.
func Read(get func(path []byte) ([]byte, error), path []byte) (*Node, error) {
	row, err := get(path)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return &Node{}, nil
	}
	n, ok := unmarshal(row)
	if !ok {
		return nil, errRow(path)
	}
	return n, nil
}

type tree struct{ Rows }

// update changes the items below a node, and returns its data for its parent.
func (t tree) update(path []byte, changes []Change) (Child, error) {
	n, err := Read(t.Get, path)
	if err != nil {
		return Child{}, err
	}
	if n.Children == nil {
		return t.put(path, &Node{Items: merge(n.Items, changes)})
	}
	for depth := len(path); len(changes) > 0; {
		some := changes[:run(changes, depth, func(c *Change, depth int) byte { return c.nibble(depth) })]
		changes = changes[len(some):]
		at := some[0].nibble(depth)
		if n.Children[at], err = t.update(step(path, at), some); err != nil {
			return Child{}, err
		}
	}
	if n.count() > MaxItems {
		return t.put(path, n)
	}
	joined := &Node{} // few items fit in one leaf
	for i := range n.Children {
		if n.Children[i].Items == 0 {
			continue
		}
		below, err := Read(t.Get, step(path, byte(i)))
		if err == nil {
			joined.Items = append(joined.Items, below.Items...)
			err = t.Delete(step(path, byte(i)))
		}
		if err != nil {
			return Child{}, err
		}
	}
	return t.put(path, joined)
}

// put writes a node, replacing the present one. A leaf that is too large becomes an inner node.
func (t tree) put(path []byte, n *Node) (Child, error) {
	if len(n.Items) > MaxItems {
		inner := &Node{Children: &[Fanout]Child{}}
		for depth, left := len(path), n.Items; len(left) > 0; {
			some := left[:run(left, depth, (*Entry).nibble)]
			left = left[len(some):]
			at := some[0].nibble(depth)
			var err error
			if inner.Children[at], err = t.put(step(path, at), &Node{Items: some}); err != nil {
				return Child{}, err
			}
		}
		n = inner
	}
	count := n.count()
	if count == 0 {
		return Child{}, t.Delete(path)
	}
	return Child{n.Digest(), uint32(count)}, t.Put(path, n.marshal())
}

func step(path []byte, nibble byte) []byte { return append(path[:len(path):len(path)], nibble) }

// run returns the number of first entries for the same child of a node at a depth.
func run[E any](all []E, depth int, nibble func(*E, int) byte) int {
	n := 1
	for n < len(all) && nibble(&all[n], depth) == nibble(&all[0], depth) {
		n++
	}
	return n
}

// merge returns the items of a leaf after some changes.
func merge(items []Entry, changes []Change) []Entry {
	merged := make([]Entry, 0, len(items)+len(changes))
	for i, j := 0, 0; i < len(items) || j < len(changes); {
		order := 0
		switch {
		case i == len(items):
			order = 1
		case j == len(changes):
			order = -1
		default:
			order = items[i].compare(&changes[j].Entry)
		}
		switch {
		case order < 0:
			merged = append(merged, items[i])
		case !changes[j].Gone:
			merged = append(merged, changes[j].Entry)
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
	}
	return merged
}
