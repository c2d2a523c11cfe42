package statedigest

import (
	"encoding/binary"
	"math"
)

// The row of a leaf has its items, and with each the length of its owner and the owner; no owner where it is that of
// the item before. The row of an inner node has the digests of its children, and then the number of items below each.

const digestsSize = Fanout * len(Digest{})

// marshal returns the row of the node.
func (n *Node) marshal() []byte {
	if n.Children == nil {
		b := []byte{leafNode}
		owner := ""
		for i := range n.Items {
			e := &n.Items[i]
			b = append(b, e.Item[:]...)
			if e.Owner == owner {
				b = append(b, 0)
				continue
			}
			owner = e.Owner
			b = append(binary.AppendUvarint(b, uint64(len(owner))), owner...)
		}
		return b
	}
	b := make([]byte, 1, 1+digestsSize+2*Fanout)
	b[0] = innerNode
	for i := range n.Children {
		b = append(b, n.Children[i].Digest[:]...)
	}
	for i := range n.Children {
		b = binary.AppendUvarint(b, uint64(n.Children[i].Items))
	}
	return b
}

// unmarshal reads the row of a node. ok is false for an invalid one.
func unmarshal(row []byte) (n *Node, ok bool) {
	n = &Node{}
	switch {
	case len(row) == 0:
		return nil, false
	case row[0] == innerNode:
		if len(row) <= digestsSize {
			return nil, false
		}
		n.Children = &[Fanout]Child{}
		counts := row[1+digestsSize:]
		for i := range n.Children {
			copy(n.Children[i].Digest[:], row[1+i*len(Digest{}):])
			count, size := binary.Uvarint(counts)
			if size <= 0 || count > math.MaxUint32 {
				return nil, false
			}
			n.Children[i].Items, counts = uint32(count), counts[size:]
		}
		return n, len(counts) == 0
	case row[0] != leafNode:
		return nil, false
	}
	owner := ""
	for rest := row[1:]; len(rest) > 0; {
		var e Entry
		if len(rest) <= len(e.Item) || len(n.Items) == MaxItems {
			return nil, false
		}
		rest = rest[copy(e.Item[:], rest):]
		length, size := binary.Uvarint(rest)
		if size <= 0 || length > uint64(len(rest)-size) {
			return nil, false
		}
		if rest = rest[size:]; length > 0 {
			owner, rest = string(rest[:length]), rest[length:]
		}
		e.Owner = owner
		n.Items = append(n.Items, e)
	}
	return n, true
}
