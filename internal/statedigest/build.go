package statedigest

import "iter"

// Build makes the tree of entries in the order of their items, and calls put with each row. It holds few of them in
// memory.
func Build(entries iter.Seq2[Entry, error], put func(path, row []byte) error) error {
	next, stop := iter.Pull2(entries)
	defer stop()
	b := builder{next: next, put: put}
	if err := b.fill(); err != nil || len(b.ahead) == 0 {
		return err
	}
	_, err := b.build(nil)
	return err
}

// builder makes nodes from the next entries.
type builder struct {
	next  func() (Entry, error, bool)
	put   func(path, row []byte) error
	ahead []Entry // as many as one leaf may have, and one more
	done  bool
}

// fill reads ahead.
func (b *builder) fill() error {
	for !b.done && len(b.ahead) <= MaxItems {
		e, err, ok := b.next()
		switch {
		case !ok:
			b.done = true
		case err != nil:
			return err
		case len(b.ahead) > 0 && e.Item == b.ahead[len(b.ahead)-1].Item: // it is the same record
		default:
			b.ahead = append(b.ahead, e)
		}
	}
	return nil
}

// build makes the node at a path, to which at least the next entry belongs.
func (b *builder) build(path []byte) (Child, error) {
	n := &Node{}
	if below := b.below(path); below <= MaxItems {
		n.Items = append(n.Items, b.ahead[:below]...)
		b.ahead = append(b.ahead[:0], b.ahead[below:]...)
		if err := b.fill(); err != nil {
			return Child{}, err
		}
	} else {
		n.Children = &[Fanout]Child{}
		for b.below(path) > 0 {
			at := b.ahead[0].nibble(len(path))
			var err error
			if n.Children[at], err = b.build(step(path, at)); err != nil {
				return Child{}, err
			}
		}
	}
	return Child{n.Digest(), uint32(n.count())}, b.put(path, n.marshal())
}

// below returns the number of the entries read ahead that are below a path.
func (b *builder) below(path []byte) int {
	for i := range b.ahead {
		for depth, nibble := range path {
			if b.ahead[i].nibble(depth) != nibble {
				return i
			}
		}
	}
	return len(b.ahead)
}
