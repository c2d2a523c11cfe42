package statedigest

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/fetch"
)

// Document has a source's data of a node of its tree, so that other nodes can find the differences of their states. It
// has only prefixes of hashes, because they need not prove anything.
type Document struct {
	// Children are the digests of the children of an inner node, one after the other; dots for a child that
	// is not there.
	Children string `json:"children,omitempty"`
	// Topics are the items of a leaf: the TopicSI of an owner, and then the hashes of its records.
	Topics [][]string `json:"topics,omitempty"`
}

// shortSize is the number of bytes of a hash in a document, textSize the number of characters for it.
const (
	shortSize = 6
	textSize  = 8
)

var noChild = strings.Repeat(".", textSize)

func short(hash []byte) string { return base64.RawURLEncoding.EncodeToString(hash[:shortSize]) }

// Document returns the document about the node.
func (n *Node) Document() *Document {
	d := &Document{}
	if n.Children != nil {
		for i := range n.Children {
			text := noChild
			if c := &n.Children[i]; c.Items > 0 {
				text = short(c.Digest[:])
			}
			d.Children += text
		}
		return d
	}
	for i := range n.Items {
		e := &n.Items[i]
		if last := len(d.Topics) - 1; last < 0 || d.Topics[last][0] != e.Owner {
			d.Topics = append(d.Topics, []string{e.Owner})
		}
		last := &d.Topics[len(d.Topics)-1]
		*last = append(*last, short(e.Item[placeSize:]))
	}
	return d
}

// size returns the number of characters for the children.
func (d *Document) size() int {
	if d == nil {
		return 0
	}
	return len(d.Children)
}

// Comparison finds the topics whose records differ in two states.
type Comparison struct {
	Local func(path []byte) (*Node, error) // reads a node of the own tree
	// fetches a node of the other one; several at a time
	Remote   func(ctx context.Context, path string) (*Document, error)
	Parallel int // nodes that are fetched at a time
	Most     int // topics that may differ
}

// TooManyError is the error if more topics differ than the limit.
type TooManyError struct{ Most int }

func (e *TooManyError) Error() string { return fmt.Sprintf("more than %d topics differ", e.Most) }

// pair is a node in both trees. The own one may stand in a leaf higher up.
type pair struct {
	path []byte
	own  *Node
}

// Differences returns the TopicSIs of the topics whose records differ in the two states, in order.
func (c *Comparison) Differences(ctx context.Context) ([]string, error) {
	root, err := c.Local(nil)
	if err != nil {
		return nil, err
	}
	differ := map[string]bool{}
	for level := []pair{{nil, root}}; len(level) > 0; {
		documents, err := c.fetch(ctx, level)
		if err != nil {
			return nil, err
		}
		var next []pair
		for i := range level {
			below, err := c.compare(&level[i], documents[i], differ)
			if err != nil {
				return nil, err
			}
			next = append(next, below...)
			if len(differ) > c.Most || len(next) > c.Most {
				return nil, &TooManyError{c.Most}
			}
		}
		level = next
	}
	return slices.Sorted(maps.Keys(differ)), nil
}

// fetch fetches the documents of nodes, several at a time.
func (c *Comparison) fetch(ctx context.Context, level []pair) ([]*Document, error) {
	type fetched struct {
		*Document
		err error
	}
	documents := make([]*Document, 0, len(level))
	for f := range fetch.Ahead(ctx, max(c.Parallel, 1), len(level), func(ctx context.Context, i int) (fetched, int64) {
		d, err := c.Remote(ctx, Path(level[i].path))
		if n := d.size(); err == nil && n != 0 && (n != Fanout*textSize || len(level[i].path) == 2*len(Item{})) {
			err = fmt.Errorf("the document of the node %q of the state digest is none: it has %d characters for its children",
				Path(level[i].path), n)
		}
		return fetched{d, err}, 0
	}) {
		if f.err != nil {
			return nil, f.err
		}
		documents = append(documents, f.Document)
	}
	return documents, context.Cause(ctx)
}

// compare compares a node of both trees. It notes the topics that differ, and returns the nodes below that do.
func (c *Comparison) compare(p *pair, d *Document, differ map[string]bool) (below []pair, err error) {
	if len(d.Children) == 0 {
		return nil, c.compareLeaf(p, d, differ)
	}
	for i := range Fanout {
		stated := strings.TrimRight(d.Children[i*textSize:(i+1)*textSize], ".")
		path := step(p.path, byte(i))
		own, err := c.child(p, byte(i))
		if err != nil {
			return nil, err
		}
		switch {
		case own.count() == 0 && stated == "":
		case stated == "":
			err = c.each(path, own, func(e *Entry) { differ[e.Owner] = true })
		case own.count() > 0 && digestOf(own) == stated:
		default:
			below = append(below, pair{path, own})
		}
		if err != nil {
			return nil, err
		}
	}
	return below, nil
}

func digestOf(n *Node) string {
	d := n.Digest()
	return short(d[:])
}

// child returns a child of the own node: made of the items of a leaf, if the node is one.
func (c *Comparison) child(p *pair, nibble byte) (*Node, error) {
	if p.own.Children != nil {
		if p.own.Children[nibble].Items == 0 {
			return &Node{}, nil
		}
		return c.Local(step(p.path, nibble))
	}
	n := &Node{}
	for i := range p.own.Items {
		if p.own.Items[i].nibble(len(p.path)) == nibble {
			n.Items = append(n.Items, p.own.Items[i])
		}
	}
	return n, nil
}

// each calls f with each entry below an own node.
func (c *Comparison) each(path []byte, n *Node, f func(*Entry)) error {
	for i := range n.Items {
		f(&n.Items[i])
	}
	if n.Children == nil {
		return nil
	}
	for i := range n.Children {
		own, err := c.child(&pair{path, n}, byte(i))
		if err == nil {
			err = c.each(step(path, byte(i)), own, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareLeaf compares the items in a leaf of the other tree with all own entries below it.
func (c *Comparison) compareLeaf(p *pair, d *Document, differ map[string]bool) error {
	type record struct{ owner, hash string }
	stated := map[record]bool{}
	for _, t := range d.Topics {
		for i := 1; i < len(t); i++ {
			stated[record{t[0], t[i]}] = true
		}
	}
	err := c.each(p.path, p.own, func(e *Entry) {
		own := record{e.Owner, short(e.Item[placeSize:])}
		if !stated[own] {
			differ[e.Owner] = true
		}
		delete(stated, own)
	})
	for r := range stated {
		differ[r.owner] = true
	}
	return err
}
